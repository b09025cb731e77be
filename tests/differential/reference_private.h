/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the reference; not for others. */
#ifndef MR_TESTS_DIFFERENTIAL_REFERENCE_PRIVATE_H
#define MR_TESTS_DIFFERENTIAL_REFERENCE_PRIVATE_H

#include "reference.h"

#define REF_SITE_UNKNOWN 0u /* number of the site that nobody told */
#define REF_NESTING_UNKNOWN UINT64_MAX

#define REF_EDGES 64u /* out of one part */

enum ref_reason { REF_BUDGET = 4, REF_FORMAT = 7, REF_REASONS = 16 };

struct ref_site {
    struct ref_id id;
    uint32_t flags; /* 1 root, 2 outer */
    bool is_announced, is_span;
    bool is_met; /* by a call, or as a thread's start */
};

struct ref_part;

struct ref_call {
    struct ref_call *parent, *first, *last, *next; /* calls that it made, in order */
    uint32_t site; /* as entered; of an unknown call: its true one, once it ends */
    uint64_t enter, leave; /* ns */
    bool is_outer, is_root, is_forced;
    /* Became an outer frame while it was open; of those that did at once, the outermost was the root, and knows what had ended. */
    bool is_learned, was_root;
    uint64_t learned_at, ended_calls, ended_ns;
    /* Since when no call around it, up to the outer frames, had a child that ended, as far as was looked; 0: it was not looked. */
    uint64_t watched, ended_children;
    bool is_unknown, is_failed, is_unwound, is_incomplete, is_broken;
    bool was_landed_in;    /* a landing went on in its frame */
    struct ref_part *part; /* of a root; of many there is none */
    uint64_t before;       /* calls of its stream, but outer frames, that had begun */
};

enum ref_edge_kind { REF_EDGE_NONE, REF_EDGE_MESSAGE, REF_EDGE_HAND_OFF, REF_EDGE_NEXT };

struct ref_edge {
    enum ref_edge_kind kind;
    struct ref_id key;
    uint64_t ns;
};

enum ref_status { REF_OK, REF_FAILED, REF_INCOMPLETE };

/* What one call tree is among those of its trace. */
struct ref_part {
    struct ref_id id, trace, path, node;
    bool has_trace, has_shape, is_stub, is_cut;
    const struct ref_call *root; /* that has ended; until its stream is over */
    const struct ref_stream *stream;
    uint64_t start, end;
    enum ref_status status;
    struct ref_edge in, out[REF_EDGES];
    uint32_t out_count;
    struct ref_part *next;
    /* reference_joined.c */
    struct ref_part *above, *below[REF_EDGES], *group;
    bool is_seen;
};

/* A frame of a landing: its function and its tag, and at which depth its call was found. */
struct ref_landing {
    uint32_t site, tag, depth;
};

#define REF_LANDINGS 8
#define REF_PLACES 8
#define REF_LEVELS 16 /* of calls that are watched */

struct ref_stream {
    uint32_t number;
    bool is_used, is_ended;
    struct ref_call forest; /* roots and outer frames hang here */
    struct ref_call *open;  /* innermost, or &forest */
    uint32_t depth;
    uint64_t too_deep;          /* calls that are open beyond the limit */
    uint32_t start_wire, start; /* site */
    uint64_t ticks, next_event, last, lost[REF_REASONS];
    uint64_t began,
        heard; /* its first call; when a watched call last had a child that ended, or was first watched */
    struct ref_place {
        uint32_t depth, site;
    } places[REF_PLACES]; /* roots that were learned */
    uint32_t place_count;
    bool is_unsure; /* nobody knows how deep the base is */
    uint64_t unsure_ns, unsure_roots;
    struct ref_landing landings[REF_LANDINGS + 1]; /* outermost first */
    uint32_t landing_count;
    uint64_t ended; /* calls */
    /* Links. The call under which others are roots, and how many attaches there were. */
    const struct ref_call *attach_call;
    uint32_t attaches;
    struct ref_part *attachment, *waiting; /* waiting: for the next call tree */
    uint32_t nested, trees_outside, attached_trees;
    uint64_t part_count;
    struct ref_stream *next;
};

struct ref_module {
    uint32_t epoch, site_base, size;
    uint64_t address, bias;
    const char *build_id;
};

struct ref_wire_name {
    uint32_t wire, site;
};

struct ref_outer_told {
    uint32_t site, why;
};

struct ref {
    struct ref_options options;
    struct ref_site *sites;
    uint32_t site_count;
    struct ref_module modules[64];
    uint32_t module_count;
    struct ref_wire_name *names;
    uint32_t name_count;
    struct ref_stream *streams;
    struct ref_outer_told outers[256];
    uint32_t outer_count;
    struct ref_rows *rows;
    struct ref_part *parts, **parts_end;
};

/* An event as it was read. */
enum ref_kind { REF_ENTER, REF_EXIT, REF_LOSS, REF_STATUS, REF_UNWIND, REF_OTHER };
struct ref_event {
    enum ref_kind kind;
    uint32_t site;
    uint64_t events, pops, pushes; /* LOSS; REF_NESTING_UNKNOWN */
    uint32_t reason;
    uint64_t value; /* STATUS: failed; UNWIND: depth that remains */
};

/* As it was read: of messages trace and span, of hand-offs the number in `span`. */
struct ref_link {
    enum ref_link_kind {
        REF_SEND,
        REF_RECEIVE,
        REF_CAPTURE,
        REF_ATTACH,
        REF_DETACH,
        REF_DONE
    } kind;
    struct ref_id trace;
    uint64_t span;
};

/* reference.c: by wire number, by address; REF_SITE_UNKNOWN. */
uint32_t ref_site_of(struct ref *ref, uint32_t epoch, uint32_t wire);
uint32_t ref_site_at(struct ref *ref, uint32_t epoch, uint64_t address);
struct ref_stream *ref_stream_of(struct ref *ref, uint32_t number);
/* At stream->ticks. */
void ref_take(struct ref *ref, struct ref_stream *stream, const struct ref_event *event);
/* Landings. A frame was left; it goes on in one, `is_first` the one landed in. False: it has no open call. */
void ref_leave_frame(struct ref *ref, struct ref_stream *stream,
                     const struct ref_landing *frame);
bool ref_land(struct ref *ref, struct ref_stream *stream, const struct ref_landing *frame,
              bool is_all_above_left, bool is_first);
void ref_end_stream(struct ref *ref, struct ref_stream *stream);
uint64_t ref_ns(const struct ref *ref, uint64_t ticks);

/* reference_rows.c */
struct ref_rows *ref_rows_new(void);
/* All that hangs below a stream's forest, which is over. */
void ref_count_stream(struct ref *ref, const struct ref_stream *stream);
void ref_open_rows(struct ref *ref, struct test_text *text);
void ref_write_rows(struct ref *ref, struct test_text *text); /* frees them */
/* Calls of the tree of `root` that have ended. */
uint64_t ref_count_ended(const struct ref_call *root);
bool ref_is_timed(const struct ref_call *call);
/* Of a root that is over: false if it has none. */
bool ref_shape_of(const struct ref *ref, const struct ref_call *root, struct ref_id *id,
                  enum ref_status *status);
#define REF_TIMES_TEXT 80
#define REF_HISTOGRAM_TEXT 8192
/* "sum,min,max"; "zeros;scale;first;count,count,..." */
void ref_times_text(char *out, const uint64_t *values, size_t count);
void ref_histogram_text(char *out, const uint64_t *values, size_t count);

/* reference_links.c */
void ref_take_link(struct ref *ref, struct ref_stream *stream,
                   const struct ref_link *link);
/* What was attached is so no longer. */
void ref_lose_links(struct ref *ref, struct ref_stream *stream);
void ref_lose_received(struct ref *ref, struct ref_stream *stream); /* by a loss */
/* It has just been entered; it has just been left, and so many roots are open around it; it is none after all. */
void ref_link_root(struct ref *ref, struct ref_stream *stream, struct ref_call *root);
void ref_link_root_over(struct ref *ref, struct ref_stream *stream, struct ref_call *root,
                        uint32_t outside);
void ref_link_learned(struct ref *ref, struct ref_stream *stream, struct ref_call *root);
void ref_end_links(struct ref *ref, struct ref_stream *stream);
void ref_settle_parts(struct ref *ref, const struct ref_stream *stream);

/* reference_joined.c: all parts and what they come to; frees them. */
void ref_write_parts(struct ref *ref, struct test_text *text);

/* reference_exemplars.c */
struct ref_exemplars;
/* A trace has been counted; `list` is of its entry point. `shape`: NULL: none. */
void ref_keep_trace(struct ref *ref, struct ref_exemplars **list,
                    const struct ref_stream *stream, const struct ref_call *root,
                    const struct ref_id *shape);
void ref_write_exemplars(struct test_text *text, const char *path,
                         struct ref_exemplars *list); /* frees them */

#endif
