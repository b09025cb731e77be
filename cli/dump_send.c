/* SPDX-License-Identifier: Apache-2.0 */
/* Copies rings and sends them, as the probe of a living program would have sent them. */
#include "cli/dump.h"

#include "base/clock.h"
#include "cli/signals.h"
#include "net/endpoint.h"
#include "net/sender.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRIES_MAX 200 /* at a ring that is overwritten while it is copied */
#define TRY_NS (100 * MR_MICROSECOND_NS)
#define FRAME_SIZE MR_WIRE_MAX_FRAME_MIN
#define OUTBOX_SIZE ((size_t)16 << 20)
#define POLL_NS (100 * MR_MILLISECOND_NS)
#define SILENCE_NS (30 * MR_SECOND_NS) /* without any progress: nobody takes it */
#define NAMED_RUN 16                   /* of which none is there: there are no more */

struct sending {
    const struct mr_recorder_view *view;
    struct mr_sender sender;
    struct mr_recorder_texts texts;
    struct mr_source_info info;
    uint64_t acked, progress_ns;
    struct mr_dict_writer dict;
    bool is_dict_open;
};

static enum mr_status copy_one(const struct mr_recorder_view *view, uint32_t number,
                               struct mr_recorder_copy *copy)
{
    const struct timespec pause = {.tv_nsec = (long)TRY_NS};
    enum mr_status status = MR_AGAIN;

    for (int i = 0; i < TRIES_MAX && status == MR_AGAIN; i++) {
        if (i > 0)
            (void)nanosleep(&pause, NULL);
        status = mr_recorder_copy_ring(view, number, copy);
    }
    return status;
}

static void add_up(struct mr_dump_copies *copies, const struct mr_recorder_copy *copy)
{
    copies->overwritten += copy->overwritten + copy->events_before;
    copies->streams_before += copy->streams_before;
    copies->torn += copy->torn;
}

enum mr_status mr_dump_copy(const struct mr_recorder_view *view,
                            struct mr_dump_copies *copies, struct mr_error *error)
{
    uint32_t count = mr_recorder_view_rings(view);

    memset(copies, 0, sizeof(*copies));
    copies->items = calloc(count ? count : 1, sizeof(*copies->items));
    if (!copies->items)
        return mr_error_set(error, MR_ENOMEM, "no memory");
    for (uint32_t i = 0; i < count; i++) {
        struct mr_recorder_copy *copy = &copies->items[copies->count];
        enum mr_status status = copy_one(view, i, copy);

        if (status == MR_ENOMEM)
            return mr_error_set(error, MR_ENOMEM, "no memory");
        if (status == MR_OK) {
            add_up(copies, copy);
            copies->count++;
        } else if (status != MR_ENOTFOUND) {
            copies->unread++;
        }
    }
    for (uint32_t i = 0; i < MR_LOSS_REASON_COUNT; i++)
        copies->lost += mr_recorder_view_lost(view, i);
    return MR_OK;
}

void mr_dump_copies_fini(struct mr_dump_copies *copies)
{
    for (uint32_t i = 0; i < copies->count; i++)
        mr_recorder_copy_fini(&copies->items[i]);
    free(copies->items);
    copies->items = NULL;
    copies->count = 0;
}

static size_t on_hello(void *context, const struct mr_custody_hello *custody,
                       uint8_t *out, size_t capacity)
{
    struct sending *sending = context;
    struct mr_hello hello = {.sender = sending->sender.config.incarnation,
                             .role = MR_ROLE_PROBE,
                             .oldest = custody->acked + 1,
                             .custody = *custody,
                             .token = "",
                             .source = sending->info};

    return mr_hello_put(&hello, out, capacity);
}

static enum mr_status no_answer(const struct sending *sending, struct mr_error *error)
{
    return mr_error_set(error, MR_EIO, "nobody takes the events: %s",
                        sending->sender.last_error.text[0]
                            ? sending->sender.last_error.text
                            : "no acknowledgement");
}

/* MR_EIO when nothing was acknowledged for too long. */
static enum mr_status poll_once(struct sending *sending, struct mr_error *error)
{
    uint64_t now_ns = mr_clock_monotonic_ns();

    if (mr_signals_taken())
        return mr_error_set(error, MR_END, "interrupted");
    (void)mr_sender_poll(&sending->sender, POLL_NS);
    if (sending->sender.oldest_sequence != sending->acked) {
        sending->acked = sending->sender.oldest_sequence;
        sending->progress_ns = now_ns;
    }
    return now_ns - sending->progress_ns < SILENCE_NS ? MR_OK : no_answer(sending, error);
}

static enum mr_status reserve(struct sending *sending, uint8_t **out,
                              struct mr_error *error)
{
    enum mr_status status = MR_OK;

    while (!(*out = mr_sender_reserve(&sending->sender, FRAME_SIZE)) && status == MR_OK)
        status = poll_once(sending, error);
    return status;
}

static void close_dict(struct sending *sending)
{
    size_t size = sending->is_dict_open ? mr_dict_writer_finish(&sending->dict) : 0;

    sending->is_dict_open = false;
    if (size > 0)
        (void)mr_sender_commit(&sending->sender, MR_FRAME_DICT, 0, size);
}

static enum mr_status open_dict(struct sending *sending, struct mr_error *error)
{
    uint8_t *out;
    enum mr_status status = reserve(sending, &out, error);

    if (status != MR_OK)
        return status;
    mr_dict_writer_init(&sending->dict, out, FRAME_SIZE);
    sending->is_dict_open = true;
    return MR_OK;
}

static enum mr_status put(struct sending *sending, const struct mr_dict_item *item,
                          struct mr_error *error)
{
    enum mr_status status = MR_OK;

    if (!sending->is_dict_open)
        status = open_dict(sending, error);
    if (status != MR_OK || mr_dict_put(&sending->dict, item) == MR_OK)
        return status;
    close_dict(sending);
    status = open_dict(sending, error);
    if (status == MR_OK && mr_dict_put(&sending->dict, item) != MR_OK)
        status = mr_error_set(error, MR_EFORMAT, "a name in the recorder is too long");
    return status;
}

static enum mr_status put_module(struct sending *sending, uint32_t number,
                                 const struct mr_recorder_module *module, uint32_t gone,
                                 struct mr_error *error)
{
    struct mr_dict_item item = {
        .kind = MR_DICT_MODULE,
        .module = {.epoch = module->epoch,
                   .module = number,
                   .site_base = module->site_base,
                   .size = module->sites,
                   .flags = module->is_executable ? MR_MODULE_EXECUTABLE : 0,
                   .address = module->address,
                   .bias = module->bias,
                   .build_id = mr_span_of(module->build_id, module->build_id_size),
                   .path = module->path}};
    enum mr_status status = put(sending, &item, error);

    if (status != MR_OK || gone == 0)
        return status;
    item = (struct mr_dict_item){.kind = MR_DICT_MODULE_GONE,
                                 .module_gone = {.epoch = gone, .module = number}};
    return put(sending, &item, error);
}

static enum mr_status put_modules(struct sending *sending, struct mr_error *error)
{
    enum mr_status status = MR_OK;

    for (uint32_t i = 0; i < sending->view->module_count && status == MR_OK; i++) {
        struct mr_recorder_module module;

        if (mr_recorder_view_module(sending->view, i, &module))
            status = put_module(sending, i, &module, module.epoch_gone, error);
    }
    return status;
}

static enum mr_status put_named(struct sending *sending, struct mr_error *error)
{
    enum mr_status status = MR_OK;
    uint32_t absent = 0;

    for (uint32_t i = 0; absent < NAMED_RUN && status == MR_OK; i++) {
        struct mr_named_entry entry;
        struct mr_dict_item item = {.kind = MR_DICT_NAMED_SITE};

        if (i == sending->view->named_max)
            break;
        /* Pages come as they are used: who looks further makes pages. */
        absent = i % NAMED_RUN == 0 ? 0 : absent;
        if (!mr_recorder_view_named(sending->view, i, &entry)) {
            absent++;
            continue;
        }
        item.named_site = (struct mr_dict_named_site){.site = MR_SITE_FIRST_NAMED + i,
                                                      .line = entry.line,
                                                      .flags = entry.flags,
                                                      .name = entry.name,
                                                      .file = entry.file};
        status = put(sending, &item, error);
    }
    return status;
}

static enum mr_status put_streams(struct sending *sending,
                                  const struct mr_dump_copies *copies,
                                  struct mr_error *error)
{
    enum mr_status status = MR_OK;

    for (uint32_t i = 0; i < copies->count && status == MR_OK; i++) {
        const struct mr_recorder_copy *copy = &copies->items[i];
        struct mr_dict_item item = {.kind = MR_DICT_STREAM,
                                    .stream = {.stream = copy->stream,
                                               .tid = copy->tid,
                                               .start_site = copy->start_site,
                                               .name = copy->name}};

        status = put(sending, &item, error);
    }
    return status;
}

/* Without a stream; those of threads whose rings others have now were overwritten. */
static enum mr_status put_losses(struct sending *sending,
                                 const struct mr_dump_copies *copies,
                                 struct mr_error *error)
{
    enum mr_status status = MR_OK;

    for (uint32_t reason = 0; reason < MR_LOSS_REASON_COUNT && status == MR_OK;
         reason++) {
        struct mr_dict_item item = {
            .kind = MR_DICT_SOURCE_LOSS,
            .source_loss = {.reason = reason,
                            .events = mr_recorder_view_lost(sending->view, reason)}};

        for (uint32_t i = 0; reason == MR_LOSS_OVERWRITTEN && i < copies->count; i++)
            item.source_loss.events += copies->items[i].events_before;
        if (item.source_loss.events > 0)
            status = put(sending, &item, error);
    }
    return status;
}

static enum mr_status put_note(struct sending *sending, enum mr_note key, uint64_t value,
                               struct mr_error *error)
{
    char text[24];
    struct mr_dict_item item = {.kind = MR_DICT_NOTE,
                                .note = {.key = mr_note_name(key), .value = text}};

    (void)snprintf(text, sizeof(text), "%" PRIu64, value);
    return put(sending, &item, error);
}

static enum mr_status put_depth(struct sending *sending, struct mr_error *error)
{
    uint64_t skipped;
    uint32_t limit = mr_recorder_view_depth(sending->view, &skipped);
    enum mr_status status;

    if (limit == 0)
        return MR_OK;
    status = put_note(sending, MR_NOTE_DEPTH_LIMIT, limit, error);
    return status == MR_OK ? put_note(sending, MR_NOTE_DEPTH_SKIPPED, skipped, error)
                           : status;
}

static enum mr_status send_dictionary(struct sending *sending,
                                      const struct mr_dump_copies *copies,
                                      struct mr_error *error)
{
    enum mr_status status = put_modules(sending, error);

    if (status == MR_OK)
        status = put_named(sending, error);
    if (status == MR_OK)
        status = put_streams(sending, copies, error);
    if (status == MR_OK)
        status = put_losses(sending, copies, error);
    if (status == MR_OK)
        status = put_depth(sending, error);
    close_dict(sending);
    return status;
}

/* As many chunks as a frame takes; *is_done: there are no more. */
static enum mr_status send_frame(struct sending *sending, struct mr_recorder_copy *copy,
                                 bool *is_done, struct mr_error *error)
{
    uint8_t *out;
    enum mr_status status = reserve(sending, &out, error);
    size_t size = 0;

    if (status != MR_OK)
        return status;
    while (!*is_done && FRAME_SIZE - size >= MR_RECORDER_CHUNK_MIN) {
        size_t chunk = mr_recorder_chunk(copy, out + size, FRAME_SIZE - size);

        *is_done = chunk == 0;
        size += chunk;
    }
    if (size > 0)
        (void)mr_sender_commit(&sending->sender, MR_FRAME_CHUNKS, 0, size);
    (void)mr_sender_poll(&sending->sender, 0);
    return MR_OK;
}

static enum mr_status send_copies(struct sending *sending, struct mr_dump_copies *copies,
                                  struct mr_error *error)
{
    enum mr_status status = MR_OK;

    for (uint32_t i = 0; i < copies->count && status == MR_OK; i++) {
        struct mr_recorder_copy *copy = &copies->items[i];
        bool is_done = false;

        while (!is_done && status == MR_OK)
            status = send_frame(sending, copy, &is_done, error);
        copies->events += copy->events - copy->overwritten - copy->torn;
    }
    return status;
}

static enum mr_status connect_to(struct sending *sending, const char *endpoint,
                                 struct mr_error *error)
{
    struct mr_sender_config config = {.outbox_size = OUTBOX_SIZE,
                                      .max_frame = FRAME_SIZE,
                                      .now_ns_seed = mr_clock_monotonic_ns(),
                                      .hello = on_hello,
                                      .context = sending};
    struct mr_endpoints endpoints;
    enum mr_status status = mr_endpoints_parse(endpoint, &endpoints, error);

    if (status == MR_OK)
        status = mr_endpoints_resolve(&endpoints, config.addresses, &config.address_count,
                                      error);
    if (status != MR_OK)
        return status;
    /* A source of its own each time: its frames are numbered from 1. */
    config.outbox = malloc(OUTBOX_SIZE);
    if (!config.outbox || mr_id_random(&config.incarnation) != MR_OK ||
        mr_sender_init(&sending->sender, &config) != MR_OK) {
        free(config.outbox);
        return mr_error_set(error, MR_EIO, "no memory, or no random numbers");
    }
    return MR_OK;
}

static enum mr_status finish(struct sending *sending, struct mr_error *error)
{
    enum mr_status status = MR_OK;

    while (!mr_sender_is_drained(&sending->sender) && status == MR_OK)
        status = poll_once(sending, error);
    if (status == MR_OK &&
        mr_sender_finish(&sending->sender, MR_BYE_FINISHED,
                         mr_clock_monotonic_ns() + SILENCE_NS) != MR_OK)
        status = no_answer(sending, error);
    return status;
}

enum mr_status mr_dump_send(const struct mr_recorder_view *view,
                            struct mr_dump_copies *copies, const char *endpoint,
                            struct mr_error *error)
{
    struct sending *sending = calloc(1, sizeof(*sending));
    enum mr_status status;

    if (!sending)
        return mr_error_set(error, MR_ENOMEM, "no memory");
    sending->view = view;
    sending->progress_ns = mr_clock_monotonic_ns();
    mr_recorder_view_source(view, &sending->texts, &sending->info);
    mr_recorder_view_clock(view, &sending->info.clock);
    status = connect_to(sending, endpoint, error);
    if (status != MR_OK) {
        free(sending);
        return status;
    }
    status = send_dictionary(sending, copies, error);
    if (status == MR_OK)
        status = send_copies(sending, copies, error);
    if (status == MR_OK)
        status = finish(sending, error);
    free(sending->sender.config.outbox);
    mr_sender_fini(&sending->sender);
    free(sending);
    return status;
}
