/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane keeps outside the process (pipeline/spool.h), and how it goes on with what it finds there. */
#include "base/log.h"
#include "net/bytes.h"
#include "net/control.h"
#include "pipeline/resume.h"
#include "pipeline/source.h"
#include "worker/lane_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define FULL_WAIT_US 10000
#define TYPE_AT 5 /* in a frame's header, FORMAT.md section 2 */
#define LENGTH_AT 8
#define SEQUENCE_AT 16

static void log_full(const struct mr_error *error)
{
    static struct mr_log_limit limit = MR_LOG_LIMIT(10 * MR_SECOND_NS);

    (void)mr_log_limited(&limit, MR_LOG_ERROR,
                         "%s: senders wait until there is room (docs/OPERATIONS.md)",
                         error->text);
}

enum mr_status mr_lane_recovered_new(struct mr_spool_found *found,
                                     struct mr_lane_recovered **recovered)
{
    struct mr_lane_recovered *made = calloc(1, sizeof(*made));
    enum mr_status status;

    if (!made)
        return MR_ENOMEM;
    status = mr_hello_get(found->hello, &made->hello, NULL);
    if (status != MR_OK) {
        free(made);
        return status;
    }
    made->kept = found->sender;
    made->position = found->position;
    made->frames = found->frames;
    mr_buffer_init(&found->frames, 0);
    made->resume = found->resume;
    found->resume = NULL;
    made->dicts = found->dicts;
    made->dict_count = found->dict_count;
    found->dicts = NULL;
    found->dict_count = 0;
    *recovered = made;
    return MR_OK;
}

void mr_lane_recovered_free(struct mr_lane_recovered *recovered)
{
    mr_hello_free(&recovered->hello);
    mr_buffer_fini(&recovered->frames);
    mr_resume_free(recovered->resume);
    for (uint32_t i = 0; i < recovered->dict_count; i++)
        mr_buffer_fini(&recovered->dicts[i]);
    free(recovered->dicts);
    free(recovered);
}

/* The dictionary, as a sender repeats it. */
static void push_dicts(struct mr_lane *lane, struct mr_lane_sender *sender,
                       const struct mr_lane_recovered *from)
{
    for (uint32_t i = 0; i < from->dict_count; i++) {
        const struct mr_frame frame = {.type = MR_FRAME_DICT,
                                       .payload = mr_buffer_span(&from->dicts[i])};

        mr_lane_push_frame(lane, sender, &frame);
    }
}

static void adopt_source(struct mr_lane *lane, struct mr_lane_sender *sender,
                         struct mr_lane_recovered *from)
{
    if (mr_source_new(&from->hello.hello, lane->config.group_by_host, &sender->source) !=
        MR_OK) {
        mr_log_error("%s: no memory for a sender of the spool", lane->config.name);
        return;
    }
    sender->source->serial = from->position.serial;
    sender->source->is_continuation = true;
    sender->source->resume = from->resume;
    from->resume = NULL;
    push_dicts(lane, sender, from);
}

/* False: there is no room. */
static bool adopt(struct mr_lane *lane, struct mr_lane_recovered *from)
{
    struct mr_lane_sender *sender = mr_senders_add(&lane->senders, from->kept->id);

    if (!sender)
        return false;
    sender->custody = from->position.custody;
    sender->next_sequence = sender->custody.taken + 1;
    sender->held = from->frames;
    mr_buffer_init(&from->frames, 0);
    sender->held_sequence = mr_load_acquire(&from->kept->covered) + 1; /* [C] */
    sender->away_ns = lane->now_ns;
    sender->has_left = from->position.has_left;
    sender->bye_reason = from->position.bye_reason;
    sender->is_recovered = true;
    /* What a worker below has told is with an earlier process of ours; what that one asked of a probe may never have come. */
    sender->lacks_dictionary = true;
    if (from->position.serial)
        adopt_source(lane, sender, from); /* before `kept`: its dictionary is there */
    sender->kept = from->kept;
    sender->kept->serial = from->position.serial;
    if (sender->custody.state == MR_CUSTODY_CLOSED)
        mr_store_release(&sender->kept->limit, sender->custody.taken);
    if (sender->source) {
        (void)mr_lane_push_settled(lane, sender);
    } else if (sender->held.size > 0) { /* no order of writing leads here */
        mr_log_error(
            "--spool %s: frames of a source that has ended; they are lost and counted",
            mr_spool_folder(lane->config.spool));
        mr_lane_give_up(lane, sender);
    }
    return true;
}

void mr_lane_adopt(struct mr_lane *lane)
{
    while (lane->config.recovered) {
        struct mr_lane_recovered *from = lane->config.recovered;

        if (!adopt(lane, from))
            break;
        lane->config.recovered = from->next;
        mr_lane_recovered_free(from);
    }
}

void mr_lane_count_left(struct mr_lane *lane)
{
    uint64_t left = 0;

    for (struct mr_lane_recovered *at = lane->config.recovered; at; at = at->next)
        left++;
    if (left == 0)
        return;
    mr_lane_count(&lane->config.counters->senders_left, left);
    mr_log_error("%s: no room for %" PRIu64 " senders of the spool (--max-senders): what "
                 "they have waits for room, and so do they",
                 lane->config.name, left);
}

bool mr_lane_is_left(const struct mr_lane *lane, struct mr_id id)
{
    const struct mr_lane_recovered *at = lane->config.recovered;

    while (at && !mr_id_equal(at->kept->id, id))
        at = at->next;
    return at != NULL;
}

void mr_lane_free_left(struct mr_lane *lane)
{
    while (lane->config.recovered) {
        struct mr_lane_recovered *from = lane->config.recovered;

        lane->config.recovered = from->next;
        mr_lane_recovered_free(from);
    }
}

static struct mr_spool_position position_of(const struct mr_lane_sender *sender)
{
    return (struct mr_spool_position){.custody = sender->custody,
                                      .serial =
                                          sender->source ? sender->source->serial : 0,
                                      .has_left = sender->has_left,
                                      .bye_reason = sender->bye_reason};
}

bool mr_lane_keep_sender(struct mr_lane *lane, struct mr_lane_sender *sender,
                         const struct mr_connection *connection, bool begins)
{
    struct mr_hello hello = connection->hello.hello;
    struct mr_spool_position position;
    struct mr_error error = MR_ERROR_NONE;
    uint8_t *payload;
    size_t size;
    enum mr_status status = MR_ENOMEM;

    if (!lane->config.spool)
        return true;
    if (!sender->kept)
        sender->kept = mr_spool_sender(lane->config.spool, sender->id);
    payload = malloc(MR_WIRE_MAX_CONTROL);
    if (sender->kept && payload) {
        if (sender->source->serial == 0)
            sender->source->serial = ++sender->kept->serial;
        hello.token = "";
        position = position_of(sender);
        size = mr_hello_put(&hello, payload, MR_WIRE_MAX_CONTROL);
        status = mr_spool_put_sender(lane->config.spool, sender->kept, &position,
                                     mr_span_of(payload, size), begins, &error);
    }
    free(payload);
    if (status != MR_OK)
        log_full(&error);
    return status == MR_OK;
}

void mr_lane_keep_state(struct mr_lane *lane, const struct mr_lane_sender *sender)
{
    const struct mr_spool_position position = position_of(sender);
    struct mr_error error = MR_ERROR_NONE;

    if (!lane->config.spool || !sender->kept)
        return;
    if (sender->custody.state == MR_CUSTODY_CLOSED)
        mr_store_release(&sender->kept->limit, sender->custody.taken);
    if (mr_spool_move_sender(lane->config.spool, sender->kept, &position, &error) !=
        MR_OK)
        log_full(&error);
}

bool mr_lane_has_kept_end(const struct mr_lane_sender *sender)
{
    return sender->source || !sender->kept ||
           mr_load_acquire(&sender->kept->over) >= sender->kept->serial; /* [C] */
}

bool mr_lane_is_covered(const struct mr_lane_sender *sender)
{
    return !sender->kept || (mr_spool_covers(sender->kept, sender->custody.settled) &&
                             mr_lane_has_kept_end(sender));
}

bool mr_lane_forgets(struct mr_lane *lane, struct mr_lane_sender *sender)
{
    struct mr_error error = MR_ERROR_NONE;

    if (!sender->kept)
        return true;
    if (!mr_lane_is_covered(sender))
        return false;
    if (mr_spool_forget_sender(lane->config.spool, sender->kept, &error) != MR_OK) {
        log_full(&error);
        return false;
    }
    sender->kept = NULL;
    return true;
}

static size_t whole_size(struct mr_span bytes)
{
    return MR_WIRE_HEADER_SIZE + (size_t)mr_get_u32(bytes.data + LENGTH_AT);
}

/* Neither control frames nor what came before, or stands out of custody, need room; SETTLE, which makes some, is one of them. */
static bool needs_room(const struct mr_conn *conn, const uint8_t *frame)
{
    return mr_frame_is_data(frame[TYPE_AT]) &&
           mr_get_u64(frame + SEQUENCE_AT) >= conn->next_sequence;
}

/*
 * What the next frame takes that mr_conn_next() may give out; 0: none is here as a whole. Not all that has come: it may be
 * more than a file of the spool, and each frame would begin one.
 */
static size_t next_size(const struct mr_conn *conn)
{
    struct mr_span bytes =
        mr_span_of(conn->input + conn->input_start, conn->input_end - conn->input_start);

    while (bytes.size >= MR_WIRE_HEADER_SIZE && !needs_room(conn, bytes.data)) {
        if (!mr_span_skip(&bytes, whole_size(bytes)))
            return 0;
    }
    if (bytes.size < MR_WIRE_HEADER_SIZE || bytes.size < whole_size(bytes))
        return 0;
    return whole_size(bytes);
}

bool mr_lane_has_room(struct mr_lane *lane, const struct mr_connection *connection)
{
    size_t size;

    if (!connection->sender || !connection->sender->kept)
        return true;
    size = next_size(&connection->conn);
    return size == 0 || mr_spool_log_reserve(lane->config.log, size) == MR_OK;
}

enum mr_status mr_lane_keep_frame(struct mr_lane *lane, struct mr_lane_sender *sender,
                                  const struct mr_frame *frame)
{
    struct mr_span whole = {frame->payload.data - MR_WIRE_HEADER_SIZE,
                            MR_WIRE_HEADER_SIZE + frame->payload.size};

    if (!sender->kept)
        return MR_OK;
    return mr_spool_log_append(lane->config.log, sender->kept, sender->custody.epoch,
                               frame->sequence, whole);
}

/* Whether a frame tells what is needed to read later ones, and not only how a source is. */
static bool is_lasting(struct mr_span payload)
{
    struct mr_dict_reader reader;
    struct mr_dict_item item;
    enum mr_status status = mr_dict_open(&reader, payload, NULL);
    bool lasts = false;

    if (status != MR_OK)
        return false;
    while (!lasts && mr_dict_next(&reader, &item, NULL) == MR_OK)
        lasts = mr_spool_keeps_item(&item);
    mr_dict_close(&reader);
    return lasts;
}

/* It must be kept before it is covered: where there is no room, the lane stands still until there is. */
void mr_lane_keep_dict(struct mr_lane *lane, const struct mr_lane_sender *sender,
                       const struct mr_frame *frame)
{
    struct mr_error error = MR_ERROR_NONE;

    if (!sender->kept || frame->type != MR_FRAME_DICT ||
        sender->source->role != MR_ROLE_PROBE || !is_lasting(frame->payload))
        return;
    while (mr_spool_put_dict(lane->config.spool, sender->kept, sender->source->serial,
                             frame->sequence, frame->payload, &error) == MR_ELIMIT &&
           !mr_load_acquire(&lane->stop_at_ns)) { /* [T] in lane.c */
        log_full(&error);
        mr_error_clear(&error);
        (void)usleep(FULL_WAIT_US);
    }
    if (error.status != MR_OK)
        mr_log_error("%s: %s", lane->config.name, error.text);
}
