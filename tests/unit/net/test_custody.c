/* SPDX-License-Identifier: Apache-2.0 */
#include "net/custody.h"

#include "tests/unit/net/net_test.h"

/*
 * A world of one sender, two receivers and the register, as in tests/model/custody.pml, but with net/custody.c at the
 * receivers and many frames: random steps, then quiet. Each frame must have been used exactly once.
 */
enum { FRAMES = 40, RECEIVERS = 2, CONNECTIONS = 64, EPOCHS = 80, PIPE = 16 };

struct connection {
    int receiver;
    bool is_open_here; /* at the sender */
    bool is_greeted;   /* its HELLO was answered, or refused */
    struct mr_custody_hello hello;
    uint64_t up[PIPE];   /* frames; SETTLE is the sequence + FRAMES + 1 */
    uint64_t down[PIPE]; /* ACKs */
    uint64_t welcome_next, welcome_epoch;
    uint32_t up_count, down_count;
};

struct receiver {
    struct mr_id id;
    struct mr_custody custody;
    int connection; /* -1: none */
    int waiting;    /* a HELLO, -1: none */
};

struct world {
    struct mr_test_random random;
    struct receiver receivers[RECEIVERS];
    struct connection connections[CONNECTIONS];
    int connection_count, current; /* of the sender */
    struct mr_custody_hello sender;
    uint64_t settled; /* told */
    bool is_welcome;
    uint64_t decided[EPOCHS]; /* 1 + position; 0: not */
    uint32_t used[FRAMES + 1];
    uint32_t doubts; /* positions that the register had to decide between two askers */
    bool is_ending;
};

static uint64_t draw(struct world *w, uint64_t limit)
{
    return mr_test_random_below(&w->random, limit);
}

static void use(struct world *w, uint64_t from, uint64_t to)
{
    for (uint64_t frame = from + 1; frame <= to; frame++)
        assert_int_equal(++w->used[frame], 1);
}

static uint64_t decide(struct world *w, uint64_t epoch, uint64_t position)
{
    assert_true(epoch < EPOCHS);
    if (w->decided[epoch] == 0)
        w->decided[epoch] = 1 + position;
    w->doubts += w->decided[epoch] != 1 + position;
    return w->decided[epoch] - 1;
}

static void connect_sender(struct world *w)
{
    struct connection *c = &w->connections[w->connection_count];

    if (w->current >= 0 || w->connection_count == CONNECTIONS)
        return;
    *c = (struct connection){.receiver = (int)draw(w, RECEIVERS), .is_open_here = true};
    w->sender.attempt++;
    c->hello = w->sender;
    w->sender.was_shown = true;
    w->is_welcome = false;
    w->current = w->connection_count++;
}

static void hang_up(struct world *w)
{
    if (w->current >= 0)
        w->connections[w->current].is_open_here = false;
    w->current = -1;
}

static void send_something(struct world *w)
{
    struct connection *c = &w->connections[w->current];

    if (!w->is_welcome || c->up_count == PIPE)
        return;
    if (w->settled < w->sender.acked) {
        w->settled = w->sender.acked;
        c->up[c->up_count++] = FRAMES + 1 + w->settled;
    } else if (w->sender.sent < FRAMES) {
        c->up[c->up_count++] = ++w->sender.sent;
    }
}

static void hear_something(struct world *w)
{
    struct connection *c = &w->connections[w->current];

    if (c->welcome_next && !w->is_welcome) {
        assert_true(c->welcome_next > w->sender.acked);
        w->sender.acked = w->sender.sent = c->welcome_next - 1;
        w->sender.epoch = c->welcome_epoch;
        w->sender.custodian = w->receivers[c->receiver].id;
        w->sender.was_shown = false;
        w->settled = 0;
        w->is_welcome = true;
    } else if (w->is_welcome && c->down_count) {
        w->sender.acked = c->down[0];
        memmove(c->down, c->down + 1, --c->down_count * sizeof(c->down[0]));
    }
}

static void part(struct receiver *r)
{
    if (r->connection < 0)
        return;
    mr_custody_break(&r->custody);
    r->connection = -1;
}

static void welcome(struct world *w, struct receiver *r, int index)
{
    w->connections[index].welcome_next = r->custody.taken + 1;
    w->connections[index].welcome_epoch = r->custody.epoch;
    r->connection = index;
    r->waiting = -1;
}

static void claim(struct world *w, struct receiver *r)
{
    uint64_t settled = r->custody.settled;

    if (r->custody.state == MR_CUSTODY_BROKEN && !mr_custody_claim(&r->custody))
        return;
    if (r->custody.state != MR_CUSTODY_CLAIMING || draw(w, 2)) /* not answered yet */
        return;
    mr_custody_decide(&r->custody, decide(w, r->custody.epoch, r->custody.taken));
    use(w, settled, r->custody.settled);
}

static void greet(struct world *w, struct receiver *r, int index)
{
    struct mr_custody_hello *hello = &w->connections[index].hello;

    r->waiting = -1;
    switch (mr_custody_greet(&r->custody, r->id, hello)) {
    case MR_CUSTODY_GO_ON:
        welcome(w, r, index);
        break;
    case MR_CUSTODY_BEGIN:
        mr_custody_begin(&r->custody, hello, hello->sent);
        welcome(w, r, index);
        break;
    case MR_CUSTODY_ASK:
        mr_custody_begin(&r->custody, hello, decide(w, hello->epoch, hello->acked));
        welcome(w, r, index);
        break;
    case MR_CUSTODY_CLAIM_FIRST:
        r->waiting = index;
        claim(w, r);
        break;
    case MR_CUSTODY_STALE:
        w->connections[index].is_open_here = false;
        if (w->current == index)
            w->current = -1;
        break;
    }
}

/* Any HELLO that has not been looked at, an old one as well. */
static void take_hello(struct world *w, struct receiver *r)
{
    int first = (int)draw(w, (uint64_t)w->connection_count + 1);

    for (int i = first; i < w->connection_count; i++) {
        struct connection *c = &w->connections[i];

        if (c->is_greeted || &w->receivers[c->receiver] != r)
            continue;
        c->is_greeted = true;
        part(r);
        greet(w, r, i);
        return;
    }
}

static void take_bytes(struct world *w, struct receiver *r)
{
    struct connection *c = &w->connections[r->connection];
    uint64_t what = c->up[0], settled = r->custody.settled;

    if (c->up_count == 0) {
        if (!c->is_open_here)
            part(r);
        else if (c->down_count == 0) /* an ACK that found no room is made up for */
            c->down[c->down_count++] = r->custody.taken;
        return;
    }
    memmove(c->up, c->up + 1, --c->up_count * sizeof(c->up[0]));
    if (what <= FRAMES) {
        mr_custody_take(&r->custody, what);
        if (c->down_count < PIPE)
            c->down[c->down_count++] = what;
    } else if (mr_custody_settle(&r->custody, what - FRAMES - 1)) {
        use(w, settled, r->custody.settled);
    }
}

static void step_receiver(struct world *w, struct receiver *r)
{
    uint64_t what = draw(w, 10);

    if (r->connection >= 0 && (what < 6 || w->is_ending))
        take_bytes(w, r);
    else if (r->connection >= 0 && what == 6)
        part(r); /* it takes the sender for gone */
    else if (r->custody.state == MR_CUSTODY_BROKEN ||
             r->custody.state == MR_CUSTODY_CLAIMING)
        claim(w, r);
    if (r->waiting >= 0 && r->custody.state == MR_CUSTODY_CLOSED)
        greet(w, r, r->waiting);
    else if (what > 7 || (w->is_ending && r->waiting < 0))
        take_hello(w, r);
}

/* The receiver has left it: nothing is heard on it any more. */
static bool is_left(const struct world *w)
{
    const struct connection *c = &w->connections[w->current];
    const struct receiver *r = &w->receivers[c->receiver];

    return c->is_greeted && r->connection != w->current && r->waiting != w->current;
}

static void step_sender(struct world *w)
{
    uint64_t what = draw(w, 12);

    if (w->current < 0)
        connect_sender(w);
    else if ((what == 0 && !w->is_ending) || is_left(w))
        hang_up(w);
    else if (what < 7)
        send_something(w);
    else
        hear_something(w);
}

static bool is_quiet(const struct world *w)
{
    for (int i = 0; i < RECEIVERS; i++) {
        const struct receiver *r = &w->receivers[i];

        if (r->custody.state == MR_CUSTODY_BROKEN ||
            r->custody.state == MR_CUSTODY_CLAIMING ||
            r->custody.settled < r->custody.taken)
            return false;
    }
    return w->sender.acked == FRAMES;
}

static uint32_t run_world(uint64_t seed)
{
    static struct world w;

    memset(&w, 0, sizeof(w));
    w.random = (struct mr_test_random){seed};
    w.current = -1;
    w.sender.is_told = true;
    for (int i = 0; i < RECEIVERS; i++)
        w.receivers[i] = (struct receiver){
            .id = {7, (uint64_t)i + 1}, .connection = -1, .waiting = -1};
    for (int i = 0; i < 4000 && !(w.is_ending && is_quiet(&w)); i++) {
        w.is_ending = i > 300 || w.connection_count > CONNECTIONS - 12;
        step_sender(&w);
        step_receiver(&w, &w.receivers[draw(&w, RECEIVERS)]);
    }
    assert_true(is_quiet(&w));
    for (int frame = 1; frame <= FRAMES; frame++)
        assert_int_equal(w.used[frame], 1);
    return w.doubts;
}

static void each_frame_is_used_once_whatever_breaks(void **state)
{
    uint64_t seed = mr_test_random_new().state, doubts = 0;

    (void)state;
    for (uint64_t i = 0; i < 20000; i++)
        doubts += run_world(seed + i);
    print_message("%llu positions were claimed by one and asked for by another\n",
                  (unsigned long long)doubts);
    assert_true(doubts > 100); /* else this tested nothing */
}

static void what_was_shown_elsewhere_does_not_go_on(void **state)
{
    struct mr_custody custody = {.state = MR_CUSTODY_VOID};
    const struct mr_id self = {1, 1};
    struct mr_custody_hello hello = {.is_told = true, .attempt = 1};

    (void)state;
    assert_int_equal(mr_custody_greet(&custody, self, &hello), MR_CUSTODY_BEGIN);
    mr_custody_begin(&custody, &hello, 0);
    mr_custody_take(&custody, 1);
    mr_custody_take(&custody, 2);
    assert_false(mr_custody_settle(&custody, 3)); /* never taken */
    assert_true(mr_custody_settle(&custody, 1));
    assert_false(mr_custody_settle(&custody, 1));
    mr_custody_break(&custody);
    hello = (struct mr_custody_hello){.is_told = true,
                                      .attempt = 3,
                                      .custodian = self,
                                      .epoch = 1,
                                      .acked = 1,
                                      .sent = 2};
    hello.was_shown = true;
    assert_int_equal(mr_custody_greet(&custody, self, &hello), MR_CUSTODY_CLAIM_FIRST);
    hello.was_shown = false;
    assert_int_equal(mr_custody_greet(&custody, self, &hello), MR_CUSTODY_GO_ON);
    mr_custody_break(&custody);
    hello.attempt = 2;
    assert_int_equal(mr_custody_greet(&custody, self, &hello), MR_CUSTODY_STALE);
    assert_true(mr_custody_claim(&custody));
    mr_custody_decide(&custody, 1);
    assert_int_equal(custody.taken, 1);
    assert_int_equal(custody.state, MR_CUSTODY_CLOSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_frame_is_used_once_whatever_breaks),
        cmocka_unit_test(what_was_shown_elsewhere_does_not_go_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
