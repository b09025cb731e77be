/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The msgpack payloads: HELLO (docs/FORMAT.md section 3) and DICT (section 5).
 *
 * Writing uses only msgpack-c's inline packers into memory of the caller: no malloc, so the probe's writer may do it.
 * Reading (mr_hello_get, mr_dict_*) checks the whole payload first, then allocates once, at most the payload's size: for
 * the strings. It belongs to workers and master.
 */
#ifndef MR_NET_CONTROL_H
#define MR_NET_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"
#include "base/span.h"
#include "base/status.h"
#include "net/custody.h"

#define MR_TEXT_MAX                                                                      \
    4096 /* bytes of any string in HELLO or DICT; longer ones are cut by writers, refused by readers */
#define MR_ATTRIBUTES_MAX 32

enum mr_role { MR_ROLE_PROBE = 0, MR_ROLE_WORKER = 1 };
enum mr_clock_kind { MR_CLOCK_TSC = 0, MR_CLOCK_CNTVCT = 1, MR_CLOCK_MONOTONIC = 2 };
enum mr_policy { MR_POLICY_DROP = 0, MR_POLICY_BLOCK = 1, MR_POLICY_OVERWRITE = 2 };
const char *mr_clock_kind_name(enum mr_clock_kind kind);
const char *mr_policy_name(enum mr_policy policy);

/* ns = realtime_ns + ((t - ticks) * mult >> shift), FORMAT.md section 3. */
struct mr_clock_info {
    enum mr_clock_kind kind;
    uint32_t mult;
    uint8_t shift;
    uint64_t ticks;
    uint64_t realtime_ns;
};
/* Unix ns of a time in ticks. */
uint64_t mr_clock_info_ns(const struct mr_clock_info *clock, uint64_t ticks);

struct mr_attribute {
    const char *key, *value;
};

/* Strings are borrowed, zero-terminated, never NULL ("" where absent). */
struct mr_source_info {
    const char *host, *app, *version, *exe;
    uint32_t pid;
    uint64_t start_ns;
    struct mr_clock_info clock;
    const char *clock_warning;     /* why it is not the clock asked for */
    uint32_t tick_ns, tick_events; /* of clock hybrid, FORMAT.md section 3; else 0 */
    enum mr_policy policy;
    uint32_t attribute_count;
    struct mr_attribute attributes[MR_ATTRIBUTES_MAX];
};

struct mr_hello {
    struct mr_id sender;
    enum mr_role role;
    uint32_t level;
    uint64_t oldest;
    const char *token;            /* "" where absent */
    struct mr_source_info source; /* role probe only */
    struct mr_custody_hello custody;
    bool takes_wanted;   /* WANTED may be sent to it (net/wanted.h) */
    uint32_t resume_max; /* bytes of RESUME payloads that it keeps in all; 0: none */
};

/* Size of the payload, or 0 when it does not fit. */
size_t mr_hello_put(const struct mr_hello *hello, uint8_t *out, size_t capacity);

/* Owns the strings that hello points to; free with mr_hello_free(). */
struct mr_hello_message {
    struct mr_hello hello;
    void *memory;
};
enum mr_status mr_hello_get(struct mr_span payload, struct mr_hello_message *message,
                            struct mr_error *error);
void mr_hello_free(struct mr_hello_message *message);

/* The items of a DICT frame. Numbers are those of FORMAT.md. */
enum mr_dict_kind {
    MR_DICT_MODULE = 1,
    MR_DICT_MODULE_GONE = 2,
    MR_DICT_NAMED_SITE = 3,
    MR_DICT_STREAM = 4,
    MR_DICT_LABEL_KEY = 5,
    MR_DICT_COUNTER = 6,
    MR_DICT_SYNC = 7,
    MR_DICT_STRING = 8,
    MR_DICT_SOURCE_LOSS = 9,
    MR_DICT_LINK = 10,
    MR_DICT_TICKER = 11,
    MR_DICT_PRUNED = 12,
    MR_DICT_SITE = 16,
    MR_DICT_SCOPE = 17,
    MR_DICT_SOURCE = 18,
    MR_DICT_OUTER = 19,
    MR_DICT_NODE = 20,
    MR_DICT_SPAN_COUNTER = 21,
    MR_DICT_NOTE = 22,
};

#define MR_BUILD_ID_MAX 64
#define MR_MODULE_EXECUTABLE 1u
#define MR_COUNTER_NAME_MAX 63
#define MR_PRUNED_NOW 1u     /* else it is recorded again */
#define MR_PRUNED_COUNTED 2u /* `calls` is every one of them */
#define MR_NAMED_SITE_ROOT 1u
#define MR_NAMED_SITE_OUTER 2u

enum mr_site_type { MR_SITE_FUNCTION = 0, MR_SITE_SPAN = 1 };
enum mr_site_quality {
    MR_QUALITY_OFFSET = 0,
    MR_QUALITY_SYMBOL = 1,
    MR_QUALITY_DEBUG = 2
};
enum mr_exactness {
    MR_EXACTNESS_FOLDED = 0,
    MR_EXACTNESS_EXACT = 1,
    MR_EXACTNESS_SET = 2
};
enum mr_source_state { MR_SOURCE_LIVE = 0, MR_SOURCE_FINISHED = 1, MR_SOURCE_DIED = 2 };

/*
 * Of what workers say of one source the higher rank holds. That it has finished it said itself; that it died is what a
 * worker makes of it that it did not come back there, and it may have gone elsewhere.
 */
static inline unsigned mr_source_state_rank(unsigned state)
{
    return state == MR_SOURCE_FINISHED ? 2 : state == MR_SOURCE_DIED ? 1 : 0;
}

struct mr_dict_module {
    uint32_t epoch, module, site_base, size, flags;
    uint64_t address, bias;
    struct mr_span build_id;
    const char *path;
};
struct mr_dict_module_gone {
    uint32_t epoch, module;
};
struct mr_dict_named_site {
    uint32_t site, line, flags;
    const char *name, *file;
};
struct mr_dict_stream {
    uint32_t stream, tid, start_site, kind;
    const char *name;
};
struct mr_dict_label_key {
    uint32_t key, type;
    const char *name;
};
struct mr_dict_counter {
    uint32_t counter; /* its place in counter records; without a meaning where absent */
    uint32_t flags;   /* 0 */
    const char *name, *unit;
    const char *absent; /* why it does not count, or not on all threads; "": it does */
};
struct mr_dict_sync {
    uint64_t ticks, realtime_ns, error_ticks;
};
struct mr_dict_ticker { /* of clock hybrid; all cumulative but the gap of p99 */
    uint64_t ticks, gap_p99_ticks, gap_max_ticks, cpu_ns;
};
struct mr_dict_pruned { /* FORMAT.md section 5; `calls` is cumulative */
    uint32_t site, epoch, flags;
    uint64_t ticks, calls, limit_ns;
};
struct mr_dict_string {
    uint32_t index;
    const char *text;
};
struct mr_dict_source_loss {
    uint32_t reason;
    uint64_t events;
};
struct mr_dict_link {
    uint32_t encoding, reason; /* enum mr_encoding, enum mr_encoding_reason; or newer */
    uint64_t events, bytes;
};
struct mr_dict_site {
    struct mr_id id;
    enum mr_site_type type;
    const char *module; /* path as its source saw it; of a span: the application */
    struct mr_span build_id;
    uint64_t offset;
    const char *name, *file;
    uint32_t line;
    enum mr_site_quality quality;
};
struct mr_dict_scope {
    struct mr_id id;
    const char *app, *version, *host;
};
struct mr_dict_source {
    struct mr_id id, scope, worker;
    const char *host, *app, *version, *exe;
    uint32_t pid;
    uint64_t start_ns, end_ns;
    enum mr_clock_kind clock;
    enum mr_source_state state;
    enum mr_policy policy;
};
struct mr_dict_outer {
    struct mr_id scope, site;
    uint32_t why; /* 0 start of thread, 1 option, 2 learned */
};
struct mr_dict_node {
    struct mr_id id, site;
    enum mr_exactness exactness;
    struct mr_span
        children; /* FORMAT.md section 5; walk with mr_node_child_next() in net/ids.h */
};
struct mr_dict_span_counter {
    struct mr_id scope, id;
    const char *name, *unit, *absent; /* as of a probe's counter */
};

/* Something worth knowing about a source or a scope, or about a site of it. */
struct mr_dict_note {
    struct mr_id about, site; /* site zero: about the whole */
    const char *key, *value;  /* keys: MR_NOTES; a value that is a number is decimal */
    uint64_t version;         /* of the same key, the greatest holds */
};

/*
 * Keys of notes: name in code, in the item, whether the value is a number.
 * Of a source, clock:
 */
#define MR_NOTES(X)                                                                      \
    X(CLOCK_WARNING, "clock_warning", false) /* why it is not the one asked for */       \
    X(TICK_NS, "tick_ns", true)              /* clock hybrid: FORMAT.md section 3 */     \
    X(TICK_EVENTS, "tick_events", true)                                                  \
    X(TICK_GAP_P99_NS, "tick_gap_p99_ns", true) /* between ticks, weighed by time */     \
    X(TICK_GAP_MAX_NS, "tick_gap_max_ns", true)                                          \
    X(TICKER_CPU_NS, "ticker_cpu_ns", true)     /* what the ticker took */               \
    X(DRIFT_NS, "clock_drift_ns", true)         /* wall clock less ours, last seen */    \
    X(DRIFT_MAX_NS, "clock_drift_max_ns", true) /* the furthest */                       \
    X(TIMES_CLAMPED, "times_clamped", true)     /* inversions */                         \
    /* Of a source, depth limit; its probe tells them: */                                \
    X(DEPTH_LIMIT, "depth_limit", true)                                                  \
    X(DEPTH_SKIPPED, "depth_skipped", true) /* calls below it, not recorded */           \
    /* Of a source, its link: how it sends, and why (net/encoding.h). */                 \
    X(ENCODING, "encoding", false)                                                       \
    X(ENCODING_REASON, "encoding_reason", false)                                         \
    X(SENT_EVENTS, "sent_events", true) /* its own account; its version, too */          \
    /* Of a site of a source: it is, or was, pruned. */                                  \
    X(PRUNED_SINCE_NS, "pruned_since_ns", true) /* Unix; the last time */                \
    X(PRUNED_UNTIL_NS, "pruned_until_ns", true) /* recorded again; 0: not yet */         \
    X(PRUNED_BELOW_NS, "pruned_below_ns", true) /* its median call took less */          \
    X(PRUNED_CALLS, "pruned_calls", true)       /* not recorded, each one counted */
enum mr_note {
#define X(name, text, is_number) MR_NOTE_##name,
    MR_NOTES(X)
#undef X
        MR_NOTE_COUNT
};
const char *mr_note_name(enum mr_note note);
bool mr_note_is_number(enum mr_note note);

struct mr_dict_item {
    enum mr_dict_kind kind;
    union {
        struct mr_dict_module module;
        struct mr_dict_module_gone module_gone;
        struct mr_dict_named_site named_site;
        struct mr_dict_stream stream;
        struct mr_dict_label_key label_key;
        struct mr_dict_counter counter;
        struct mr_dict_sync sync;
        struct mr_dict_string string;
        struct mr_dict_source_loss source_loss;
        struct mr_dict_link link;
        struct mr_dict_site site;
        struct mr_dict_scope scope;
        struct mr_dict_source source;
        struct mr_dict_outer outer;
        struct mr_dict_node node;
        struct mr_dict_span_counter span_counter;
        struct mr_dict_ticker ticker;
        struct mr_dict_pruned pruned;
        struct mr_dict_note note;
    };
};

/*
 * Writing a DICT payload into memory of the caller, no malloc:
 *
 *     struct mr_dict_writer writer;
 *     mr_dict_writer_init(&writer, out, capacity);
 *     if (mr_dict_put(&writer, &item) == MR_AGAIN) { send what is there, start another }
 *     size = mr_dict_writer_finish(&writer);           // 0 when no item was put
 */
struct mr_dict_writer {
    uint8_t *out;
    size_t capacity, size;
    uint32_t count;
};
void mr_dict_writer_init(struct mr_dict_writer *writer, uint8_t *out, size_t capacity);
/* MR_OK; MR_AGAIN when it does not fit any more (nothing is written). */
enum mr_status mr_dict_put(struct mr_dict_writer *writer,
                           const struct mr_dict_item *item);
size_t mr_dict_writer_finish(struct mr_dict_writer *writer);

/*
 * Reading. Strings and spans of an item are valid until the reader is closed. MR_END after the last item; unknown kinds
 * are skipped and counted in `unknown`.
 */
struct mr_dict_reader {
    void *memory;         /* strings and byte strings of the items; owned */
    size_t used, size;    /* of memory */
    struct mr_span rest;  /* of the payload, borrowed until the last mr_dict_next() */
    uint32_t next, count; /* items */
    uint64_t unknown;
};
/* MR_OK, MR_EFORMAT (reader is closed then), MR_ENOMEM. */
enum mr_status mr_dict_open(struct mr_dict_reader *reader, struct mr_span payload,
                            struct mr_error *error);
enum mr_status mr_dict_next(struct mr_dict_reader *reader, struct mr_dict_item *item,
                            struct mr_error *error);
void mr_dict_close(struct mr_dict_reader *reader);

#endif
