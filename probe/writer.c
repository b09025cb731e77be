/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field          written by        read by     access
 * flush_wanted,  any thread        we          release [P], acquire [C]; futexes
 *  stop_wanted
 * flush_done,    we                any thread  release [P], acquire [C]; futexes
 *  stopped
 * sleeping       we; ring owners   both        relaxed, see probe/ring.c
 * events_*,      we                stats       release after what they count, acquire
 *  lost[]
 * Rings: probe/ring.c, probe/drain.c, probe/announce.c.
 * Progress: the loop never waits for a thread of the program.
 */
#include "probe/writer.h"

#include "base/clock.h"
#include "probe/futex.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define TIMER_SLACK_NS 1000UL
/* 1 MiB of frames between two looks at the network. */
#define ROUNDS_PER_IO 16
/* While events come, the longest wait for the network before the rings are seen again. */
#define BUSY_WAIT_NS (100 * MR_MICROSECOND_NS)
#define BUSY_NS (5 * MR_MILLISECOND_NS)
/* Words wait for a look at the modules, or for the dictionary to have what it found. */
#define HELD_WAIT_NS (100 * MR_MICROSECOND_NS)
/*
 * Clock hybrid. A number of the ticker's that is not older, while we run: it has a
 * processor of its own. Between two looks at the clock: we were taken off ours; and for how
 * long we sleep then, as with other clocks.
 */
#define TICKER_BESIDE_NS (8 * MR_MICROSECOND_NS) /* two ticks or more */
#define AWAY_NS (20 * MR_MICROSECOND_NS)
#define YIELD_NS (2 * MR_MILLISECOND_NS)
/* Sleeps of an idle writer; a ring that fills wakes it. */
#define IDLE_MIN_NS MR_MILLISECOND_NS
/* At the end of the program, for the helper to see what modules there are: it may be kept out. */
#define LAST_LOOK_NS (100 * MR_MILLISECOND_NS)
/* The same where events wait for it. */
#define LAST_LOOK_HELD_NS MR_SECOND_NS
#define IDLE_MAX_NS (10 * MR_MILLISECOND_NS)
/* While recording is off; heartbeats are due each second. */
#define IDLE_OFF_NS (100 * MR_MILLISECOND_NS)

/* A flush waits for words behind holes no longer: each holds them up for a tenth of that (MR_DRAIN_HOLE_NS). */
#define FLUSH_HOLES_NS MR_SECOND_NS

/*
 * When rings wait for a receiver on this host that is fast (probe/standing.h): for so long the outbox has had no room; or, where
 * threads then wait and nothing is lost, a quarter of it was taken.
 */
#define STANDING_NS (100 * MR_MILLISECOND_NS)
#define STANDING_BLOCK_NS MR_STANDING_PERIOD_NS
#define STANDING_BLOCK_BYTES (MR_WRITER_OUTBOX / 4)

static bool is_drainable(const struct mr_ring *ring)
{
    uint32_t state = mr_load_acquire(&ring->state);

    return ring->is_announced && !ring->done.is_last &&
           (state == MR_RING_OWNED || state == MR_RING_CLOSED);
}

static void note_chunk(struct mr_writer *writer, const struct mr_ring *ring,
                       uint64_t bytes)
{
    mr_place_meet(&writer->place, mr_load_relaxed(&ring->cpu));
    writer->frame_chunks++;
    writer->pass.fills_soon |=
        bytes >= ring->capacity * sizeof(uint64_t) / MR_PACE_RING_SHARE;
}

/* Every ring once, beginning where the last frame got full, so that none starves. */
static void stage_rings(struct mr_writer *writer, uint64_t now_ns)
{
    struct mr_ring *first = mr_load_acquire(&writer->probe->pool.rings);
    struct mr_ring *start = writer->next_ring ? writer->next_ring : first, *ring = start;

    writer->frame_chunks = 0;
    while (ring) {
        uint64_t before = writer->frame.size;

        if (is_drainable(ring) &&
            mr_drain_ring(&writer->frame, ring, writer->epochs.newest, now_ns))
            note_chunk(writer, ring, writer->frame.size - before);
        ring = ring->next ? ring->next : first;
        if (ring == start ||
            writer->frame.capacity - writer->frame.size < MR_DRAIN_ROOM_MIN)
            break;
    }
    writer->next_ring = ring;
}

static void publish(struct mr_writer *writer, const struct mr_drain_totals *totals)
{
    struct mr_probe *probe = writer->probe;

    for (size_t i = 0; i < MR_LOSS_REASON_COUNT; i++)
        if (totals->lost[i])
            (void)mr_add_relaxed(&probe->lost[i], totals->lost[i]);
    mr_writer_tell_link(writer);
    mr_store_release(&probe->events_written, writer->events);
}

static enum mr_round commit_frame(struct mr_writer *writer)
{
    struct mr_drain_frame *frame = &writer->frame;
    uint16_t flags;
    size_t size;

    if (frame->size == 0)
        return MR_ROUND_EMPTY;
    if (mr_announce_is_stale(writer)) { /* a site in it was named after we announced */
        mr_drain_abort(frame);
        return MR_ROUND_MOVED;
    }
    size = mr_writer_encode(writer, &flags);
    mr_writer_commit(writer, MR_FRAME_CHUNKS, flags, size, frame->totals.events);
    mr_repeat_note_ended(writer);
    mr_drain_commit(frame, &writer->probe->pool);
    mr_drain_tick(frame);
    writer->pass.bytes += frame->size;
    if (writer->frame_chunks > writer->pass.rings)
        writer->pass.rings = writer->frame_chunks;
    publish(writer, &frame->totals);
    return MR_ROUND_MOVED;
}

/* Whether rings wait, although there is room. */
static bool holds_back(struct mr_writer *writer, uint64_t now_ns)
{
    struct mr_sender *sender = &writer->sender;
    bool is_blocking = writer->probe->config.policy == MR_POLICY_BLOCK, holds = false;
    struct mr_standing_look look = {.now_ns = now_ns,
                                    .is_long = writer->is_out_of_room,
                                    .patience_ns =
                                        is_blocking ? STANDING_BLOCK_NS : STANDING_NS};

    writer->is_out_of_room = false;
    if (writer->has_sender && writer->is_near && sender->state == MR_SENDER_OPEN) {
        look.held = mr_sender_held(sender);
        look.is_long |= is_blocking && look.held >= STANDING_BLOCK_BYTES;
        look.acked = sender->stats.bytes_sent - sender->unacked_bytes;
        holds = mr_standing_step(&writer->standing, &look);
    } else {
        mr_standing_reset(&writer->standing);
    }
    sender->window = writer->standing.stands ? MR_STANDING_WINDOW : 0;
    return holds;
}

/* One frame. */
static enum mr_round round_once(struct mr_writer *writer, uint64_t now_ns)
{
    uint8_t *payload;

    if (!mr_announce(writer, now_ns))
        return MR_ROUND_FULL;
    payload = mr_writer_reserve(writer);
    if (!payload)
        return MR_ROUND_FULL;
    mr_writer_open_frame(writer, payload);
    stage_rings(writer, now_ns);
    return commit_frame(writer);
}

/*
 * Behind a frame of `bytes`. Those of clock hybrid are small, so it shows more exactly; so it does where several rings were
 * taken from, of which another frame would have what came since, a little of each.
 */
static bool leaves_something(const struct mr_writer *writer, uint64_t bytes)
{
    if (mr_writer_is_hybrid(writer))
        return bytes + MR_DRAIN_ROOM_MIN > MR_WRITER_FRAME_HYBRID;
    if (writer->frame_chunks > 1)
        return bytes + MR_DRAIN_ROOM_MIN > MR_WRITER_FRAME;
    return bytes >= MR_WRITER_FRAME / 2;
}

/*
 * Until the rings are empty. A frame that did not get full left nothing behind; to look
 * again at once would be to take words one by one out of the hands of who writes them, and
 * their cache lines with them.
 */
static enum mr_round rounds(struct mr_writer *writer, uint64_t now_ns)
{
    enum mr_round round = MR_ROUND_MOVED;

    for (int i = 0; i < ROUNDS_PER_IO && round == MR_ROUND_MOVED; i++) {
        uint64_t before = writer->pass.bytes;

        if (holds_back(writer, now_ns))
            return MR_ROUND_HELD;
        round = round_once(writer, now_ns);
        writer->is_out_of_room |= round == MR_ROUND_FULL;
        mr_store_relaxed(&writer->probe->is_full, round == MR_ROUND_FULL); /* a hint */
        if (writer->flush_rounds_left > 0 && round == MR_ROUND_MOVED)
            writer->flush_rounds_left--;
        if (i > 0 && round == MR_ROUND_EMPTY)
            return MR_ROUND_MOVED;
        writer->pass.has_more = leaves_something(writer, writer->pass.bytes - before);
        if (writer->pass.bytes > before && !writer->pass.has_more)
            break;
    }
    return round;
}

/*
 * Enough frames to empty every ring as it is now, however the threads go on: what a ring
 * has may take two of them, the second for the words that were too new for the first.
 */
static uint32_t flush_rounds(struct mr_writer *writer)
{
    struct mr_ring *ring = mr_load_acquire(&writer->probe->pool.rings);
    uint64_t bytes = mr_writer_frame_bytes(writer);

    for (; ring; ring = ring->next)
        bytes += ring->capacity * sizeof(uint64_t) + MR_DRAIN_ROOM_MIN;
    return (uint32_t)(3 * bytes / mr_writer_frame_bytes(writer)) + 2;
}

/*
 * Whether words may be left that were there when the flush began: they wait for a look at the modules, or behind an event that may never
 * come (drain.c). Where threads leave such again and again it ends nevertheless.
 */
static bool is_ring_held(const struct mr_writer *writer, uint64_t now_ns)
{
    const struct mr_ring *ring = mr_load_acquire(&writer->probe->pool.rings);

    if (writer->epochs.is_held)
        return true;
    while (ring && ring->hole_polls == 0)
        ring = ring->next;
    return ring && now_ns - writer->flush_started_ns < FLUSH_HOLES_NS;
}

/* A flush begins, is drained, is acknowledged. */
static void flush_step(struct mr_writer *writer, enum mr_round round, uint64_t now_ns)
{
    struct mr_probe *probe = writer->probe;
    uint32_t wanted = mr_load_acquire(&probe->flush_wanted); /* [C] */
    uint32_t done = mr_load_relaxed(&probe->flush_done);

    if (writer->flush_started == done) {
        if (wanted == done)
            return;
        writer->flush_started = wanted;
        writer->flush_started_ns = now_ns;
        writer->flush_rounds_left = flush_rounds(writer);
        writer->flush_sequence = 0;
        return; /* what was seen of the rings until now was before the request */
    }
    if (writer->flush_sequence == 0 && writer->has_sender &&
        (round == MR_ROUND_EMPTY || writer->flush_rounds_left == 0) &&
        !is_ring_held(writer, now_ns)) {
        writer->flush_rounds_left = 0;
        writer->flush_sequence = writer->sender.next_sequence;
    }
    if (writer->flush_sequence &&
        writer->sender.oldest_sequence >= writer->flush_sequence) {
        mr_store_release(&probe->flush_done, writer->flush_started); /* [P] */
        mr_futex_wake(&probe->flush_done);
    }
}

/* Begun, and the rings not seen since. */
static bool is_flush_young(const struct mr_writer *writer)
{
    return writer->flush_started != mr_load_relaxed(&writer->probe->flush_done) &&
           writer->flush_sequence == 0;
}

static bool is_flush_held(const struct mr_writer *writer, uint64_t now_ns)
{
    return is_flush_young(writer) && is_ring_held(writer, now_ns);
}

static void sleep_until_event(struct mr_writer *writer, uint64_t ns)
{
    struct mr_probe *probe = writer->probe;
    _Atomic uint32_t *sleeping = &probe->pool.shared.sleeping;

    mr_writer_rest(writer);
    mr_store_seq_cst(sleeping, 1);
    if (!mr_load_seq_cst(&probe->stop_wanted) &&
        mr_load_seq_cst(&probe->flush_wanted) == writer->flush_started)
        mr_futex_wait(sleeping, 1, ns);
    mr_store_relaxed(sleeping, 0);
}

/*
 * Just after events came we look again soon; else we sleep, longer and longer. With
 * frames under way the network is waited for, for less time than a ring takes to fill.
 */
static void idle(struct mr_writer *writer, uint64_t now_ns)
{
    bool is_drained = !writer->has_sender || mr_sender_is_drained(&writer->sender);
    bool is_waiting;

    if (now_ns - writer->moved_at_ns < BUSY_NS && !is_drained && writer->is_calibrated) {
        (void)mr_writer_io(writer, now_ns, BUSY_WAIT_NS);
        return;
    }
    is_waiting = !is_drained && writer->sender.state == MR_SENDER_OPEN;
    sleep_until_event(writer, is_waiting ? IDLE_MIN_NS : writer->idle_ns);
    if (writer->idle_ns <
        (mr_load_relaxed(&writer->probe->is_on) ? IDLE_MAX_NS : IDLE_OFF_NS))
        writer->idle_ns *= 2;
}

static void nap(struct mr_writer *writer, uint64_t ns)
{
    mr_writer_rest(writer);
    if (ns < MR_PACE_WAKEABLE_NS)
        mr_sleep_ns(ns);
    else
        sleep_until_event(writer, ns);
}

/*
 * Clock hybrid: waits awake and ticks, where the ticker does not, having no processor but
 * ours; to change with it for each nap would cost a tenth of the time in ticks. Whoever
 * else wants the processor gets it: then this is left off for a while, and all the time
 * while a receiver on this host is behind. False: not waited.
 */
static bool wait_ticking(struct mr_writer *writer, uint64_t ns)
{
    uint64_t start = mr_clock_ticks(), now = start, last;
    uint64_t away = mr_tick_span(AWAY_NS), wait = mr_tick_span(ns);

    if (!mr_writer_is_hybrid(writer) || ns >= MR_PACE_WAKEABLE_NS || wait == 0 ||
        start < writer->yield_until || writer->sender.window > 0 ||
        mr_tick_has_ticked(&writer->probe->ticker, TICKER_BESIDE_NS))
        return false;
    do {
        mr_drain_tick(&writer->frame);
        mr_cpu_relax();
        last = now;
        now = mr_clock_ticks();
        if (now - last > away) {
            writer->yield_until = now + mr_tick_span(YIELD_NS);
            break;
        }
    } while (now - start < wait);
    return true;
}

static void pace(struct mr_writer *writer)
{
    uint64_t ns =
        mr_pace_after(&writer->pace, &writer->pass, mr_writer_is_hybrid(writer));

    if (ns > 0 && !wait_ticking(writer, ns))
        nap(writer, ns);
}

/* Words wait for the helper, which may not have heard the last time. */
static void ask_for_look(struct mr_writer *writer)
{
    if (writer->epochs.is_look_wanted)
        mr_helper_ask(writer->probe);
    writer->epochs.is_look_wanted = false;
}

static void run_once(struct mr_writer *writer)
{
    uint64_t now_ns = mr_clock_monotonic_ns();
    enum mr_round round;
    bool has_moved;

    writer->pass = (struct mr_pass){0};
    writer->epochs.is_held = false;
    mr_drain_tick(&writer->frame);
    mr_place_begin(&writer->place);
    round = rounds(writer, now_ns);
    ask_for_look(writer);
    has_moved = mr_writer_io(writer, now_ns, 0);
    mr_writer_tell_acked(writer);
    flush_step(writer, round, now_ns);
    if (round == MR_ROUND_MOVED) {
        writer->moved_at_ns = now_ns;
        mr_tick_want(&writer->probe->ticker);
        writer->idle_ns = IDLE_MIN_NS;
        if (writer->pass.bytes >= MR_PACE_BYTES) {
            mr_place_settle(&writer->place, now_ns);
            mr_tick_keep_off(&writer->probe->ticker, &writer->place.busy, now_ns);
        }
        if (!is_flush_young(writer))
            pace(writer);
    } else if (round == MR_ROUND_HELD ||
               (round == MR_ROUND_FULL && writer->is_calibrated)) {
        if (!has_moved) /* else there may be room by now */
            (void)mr_writer_io(writer, now_ns, IDLE_MIN_NS); /* events cannot help */
    } else if (!has_moved && (writer->epochs.is_held || is_flush_held(writer, now_ns))) {
        mr_writer_rest(writer);
        mr_sleep_ns(HELD_WAIT_NS);
    } else if (!has_moved && !is_flush_young(writer)) {
        idle(writer, now_ns);
    }
}

/* The streams that still run end with their source. False: no room yet. */
static bool end_streams(struct mr_writer *writer)
{
    struct mr_ring *ring = mr_load_acquire(&writer->probe->pool.rings);

    for (; ring; ring = ring->next) {
        uint8_t *payload;

        if (mr_load_acquire(&ring->state) != MR_RING_OWNED || !ring->is_announced ||
            ring->done.is_last)
            continue;
        payload = mr_writer_reserve(writer);
        if (!payload)
            return false;
        mr_writer_open_frame(writer, payload);
        if (mr_drain_source_end(&writer->frame, ring, writer->epochs.newest))
            (void)commit_frame(writer);
        if (!ring->done.is_last)
            return false;
    }
    return true;
}

/* How many events there were, in the last frame of all: what was lost on the way is known by it. False: no room yet. */
static bool tell_account(struct mr_writer *writer, uint64_t now_ns)
{
    if (writer->link_events != writer->events)
        writer->is_link_told = false;
    return mr_announce(writer, now_ns);
}

/* Also such as are not sent, and may have to wait for what is known of modules. */
static bool has_events(const struct mr_writer *writer)
{
    const struct mr_ring *ring = mr_load_acquire(&writer->probe->pool.rings);
    bool is_used = writer->events > 0;

    for (; ring && !is_used; ring = ring->next) {
        uint32_t state = mr_load_acquire(&ring->state);

        is_used = state == MR_RING_OWNED || state == MR_RING_CLOSED;
    }
    return is_used;
}

static void run_to_end(struct mr_writer *writer)
{
    uint64_t start_ns = mr_clock_monotonic_ns();
    bool is_done = false;

    mr_store_relaxed(&writer->probe->pool.shared.draining, 0); /* nobody waits for us */
    writer->sync_at_ns = 0; /* one more: the drift of the whole run */
    writer->end = mr_patience_begin();
    while (!is_done && mr_writer_may_wait(writer)) {
        uint64_t now_ns = mr_clock_monotonic_ns();
        /* Looked at before the round that announces what was found; [C] pairs with [L] in helper.c. */
        bool is_looked = mr_load_acquire(&writer->probe->is_helper_done) ||
                         now_ns - start_ns >
                             (writer->epochs.is_held ? LAST_LOOK_HELD_NS : LAST_LOOK_NS);
        enum mr_round round;

        writer->epochs.is_over = is_looked;
        writer->epochs.is_held = false;
        round = rounds(writer, now_ns);
        if (round == MR_ROUND_EMPTY && is_looked && !writer->epochs.is_held &&
            end_streams(writer) && tell_account(writer, now_ns))
            is_done = writer->is_calibrated || !writer->has_sender;
        if (!mr_writer_io(writer, now_ns, is_done ? 0 : BUSY_WAIT_NS) &&
            round != MR_ROUND_MOVED && !is_done)
            mr_sleep_ns(BUSY_WAIT_NS);
        /* A child that never had an event has nobody to say goodbye to. */
        if (writer->probe->source.is_forked && !has_events(writer) &&
            !writer->is_calibrated)
            return;
    }
    mr_writer_finish(writer);
    mr_writer_tell_acked(writer);
}

static void *writer_main(void *argument)
{
    struct mr_probe *probe = argument;
    struct mr_writer *writer = probe->writer;

    mr_own_thread_begin(probe, "millrace");
    (void)prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS); /* of this thread */
    mr_place_shorten_slices();
    while (!mr_load_acquire(&probe->stop_wanted)) /* [C] */
        run_once(writer);
    run_to_end(writer);
    mr_writer_rest(writer);
    mr_store_release(&probe->stopped, 1); /* [P] */
    mr_futex_wake(&probe->stopped);
    return NULL;
}

static void *map(uint64_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static bool make_writer(struct mr_probe *probe)
{
    struct mr_writer *writer = map(sizeof(*writer));

    if (!writer)
        return false;
    writer->outbox = map(MR_WRITER_OUTBOX + MR_WRITER_RESUME);
    if (!writer->outbox || !mr_writer_encode_init(writer)) {
        if (writer->outbox)
            (void)munmap(writer->outbox, MR_WRITER_OUTBOX + MR_WRITER_RESUME);
        (void)munmap(writer, sizeof(*writer));
        return false;
    }
    probe->writer = writer;
    return true;
}

/*
 * Started where tracing starts (the library's constructor, or fork's handler in the
 * child), not at the first event: starting a thread allocates, and the first event may
 * come from inside malloc, with its lock held.
 */
enum mr_status mr_writer_start(struct mr_probe *probe)
{
    if (!probe->writer && !make_writer(probe))
        return MR_ENOMEM;
    probe->writer->probe = probe;
    probe->writer->idle_ns = IDLE_MIN_NS;
    probe->writer->should_flush = mr_arch_should_flush();
    probe->writer->epochs.newest = 1;
    probe->writer->epochs.changes = &probe->changes;
    if (mr_changes_attach(&probe->changes, &probe->writer->modules) != MR_OK)
        return MR_ENOMEM;
    probe->writer->next_module = probe->writer->modules.count;
    mr_epochs_learn(&probe->writer->epochs, &probe->writer->modules);
    mr_writer_choose_first(probe->writer);
    mr_store_relaxed(&probe->pool.shared.pid, probe->source.pid);
    if (mr_own_thread(probe, writer_main) != MR_OK)
        return MR_ENOMEM;
    mr_store_relaxed(&probe->pool.shared.draining, 1);
    return MR_OK;
}

void mr_writer_after_fork(struct mr_probe *probe)
{
    struct mr_writer *writer = probe->writer;
    struct mr_writer_scratch *scratch;
    uint8_t *outbox;

    if (!writer)
        return;
    if (writer->has_sender)
        mr_writer_abandon(writer);
    outbox = writer->outbox;
    scratch = writer->scratch;
    mr_writer_encode_after_fork(writer);
    /* Fresh pages instead of copies; nobody else has these. */
    (void)madvise(outbox, MR_WRITER_OUTBOX + MR_WRITER_RESUME, MADV_DONTNEED);
    (void)madvise(writer, sizeof(*writer), MADV_DONTNEED);
    writer->outbox = outbox;
    writer->scratch = scratch;
}
