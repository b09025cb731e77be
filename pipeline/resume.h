/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the analysis of a source stood when its deltas were kept (pipeline/mark.h), or when it moved (pipeline/handover.h), so that a worker that
 * was killed, or the next one, goes on as if nothing had been: the open calls of every stream with their times, the ledger, the source's clock. Written by decode
 * (the source) and reduce (the streams) as bytes of marks, read by who starts again; nothing read is trusted.
 *
 * What is not told: which calls of an open trace have closed already, unless it moves (else it ends incomplete, with its calls and times
 * right), values of counters at the enters. Sends, receives and hand-offs of parts that have not gone up yet are told: a trace of several parts is one,
 * incomplete where a call tree of it was open.
 *
 *     status = mr_resume_add_stream(resume, id, bytes);       // MR_EFORMAT: damaged
 *     source->resume = resume;                                // owned by the source from now on
 *
 * Plain data; the thread that owns it.
 */
#ifndef MR_PIPELINE_RESUME_H
#define MR_PIPELINE_RESUME_H

#include "base/buffer.h"
#include "base/id.h"
#include "base/table.h"
#include "net/chunk.h"
#include "net/part.h"
#include "pipeline/batch.h"
#include "pipeline/sites.h"

#include <stdbool.h>
#include <stdint.h>

#define MR_RESUME_TRACES_MAX 2u /* open in a stream */
#define MR_RESUME_LANDINGS_MAX 8u
#define MR_RESUME_CALLS_MAX                                                              \
    262144u /* of a stream; as deep as reconstruct goes, which gives up one that was full */

/* Parts of a stream that may not have gone up: of its open roots, of the next one (NEXT), of what is attached. */
#define MR_RESUME_NEXT MR_RESUME_TRACES_MAX
#define MR_RESUME_ATTACHED (MR_RESUME_TRACES_MAX + 1)
#define MR_RESUME_PARTS_MAX (MR_RESUME_TRACES_MAX + 2)

#define MR_RESUME_CALL_FLAGS                                                             \
    (MR_EVENT_OUTER | MR_EVENT_ROOT | MR_EVENT_FAILED | MR_EVENT_UNKNOWN)

struct mr_resume_call {
    uint64_t enter_ns, child_ns;
    struct mr_id site_id;
    uint32_t site;  /* of the lane; set by decode */
    uint16_t flags; /* of MR_RESUME_CALL_FLAGS */
};

/* A call in whose frame an unwinder landed (FORMAT.md section 6.1, landing), and which is open. */
struct mr_resume_landing {
    uint32_t at; /* place on the stack */
    uint16_t tag;
};

struct mr_resume_part {
    uint32_t place;      /* number of the open root, outermost 0; NEXT, ATTACHED */
    bool is_ended;       /* its call tree has: path, node, times and status are set */
    struct mr_part part; /* but for id, source and shift_ns */
};

/* What reduce knows of parts (pipeline/filters/reduce_links.c). */
struct mr_resume_links {
    uint32_t nested, trees_outside, tree_count; /* of what is attached */
    bool is_attached;
    uint32_t part_count;
    struct mr_resume_part parts[MR_RESUME_PARTS_MAX]; /* by place */
    struct mr_part_edge *edges;                       /* owned; of parts that were read */
};

struct mr_resume_list {
    uint32_t first, count; /* in `children` */
};

/* A subtree that has ended, of an open call tree. */
struct mr_resume_node {
    struct mr_id site_id;
    uint32_t site;              /* of the lane; set by decode */
    struct mr_resume_list list; /* of nodes before it */
};

/*
 * Which calls of the open call tree have ended: of the only one, if it may become a shape still. Children as in pipeline/shapes.h, but
 * for the number, which is the place in `nodes`, from 1 on.
 */
struct mr_resume_lists {
    enum mr_exactness exactness;
    bool is_folded;
    uint32_t node_count, call_count;
    struct mr_resume_node *nodes; /* owned, as are the others */
    struct mr_resume_list *calls; /* of each open call, from the root on */
    uint64_t *children;
    uint32_t child_count, child_capacity;
};

struct mr_resume_stream {
    uint32_t id;
    uint64_t base_event, last, reduced, lost_sum; /* the ledger, as told */
    uint64_t closed;                              /* calls, outer frames not */
    uint64_t last_ns;                             /* of an event of it */
    uint64_t trace_calls[MR_RESUME_TRACES_MAX];   /* closed in its open traces so far */
    uint32_t trace_count;                         /* its open roots */
    bool is_base_unsure; /* as after a cut, or a loss that hid the nesting */
    uint32_t depth, outer_depth;
    struct mr_resume_call *calls; /* owned; outermost first */
    struct mr_resume_landing landings[MR_RESUME_LANDINGS_MAX]; /* outermost first */
    uint32_t landing_count;
    struct mr_resume_lists *lists; /* owned; NULL: not told */
    struct mr_resume_links *links; /* owned; NULL: it has none */
};

/* What decode knows of a source. Numbers alone, so that they can be kept as they are. */
struct mr_resume_source {
    uint64_t is_synced, first_ns, last_sync_ns, told_at_ns, note_version, clamped,
        clamped_told, last_ns;
    int64_t now_ns, max_ns, shift_ns;
    uint64_t loss_told[MR_LOSS_REASON_COUNT];
};

/* What the sites of open calls are; shared by all that is resumed. */
struct mr_resume_sites {
    struct mr_table ids;
    struct mr_buffer *items; /* owned */
    uint32_t count, capacity;
};

struct mr_resume {
    bool has_source; /* else what is told of it comes from its sender alone */
    struct mr_resume_source source;
    struct mr_resume_stream *streams; /* owned */
    uint32_t stream_count, stream_capacity;
    const struct mr_resume_sites *sites; /* borrowed, or: */
    struct mr_resume_sites own_sites;
};

/* `sites` NULL: it has its own. NULL: no memory. */
struct mr_resume *mr_resume_new(const struct mr_resume_sites *sites);
void mr_resume_free(struct mr_resume *resume); /* NULL allowed */
/* MR_EFORMAT; nothing is added then. */
enum mr_status mr_resume_set_source(struct mr_resume *resume, struct mr_span bytes);
enum mr_status mr_resume_add_stream(struct mr_resume *resume, uint32_t id,
                                    struct mr_span bytes);
/* To its own sites. MR_ENOMEM, MR_ELIMIT. */
enum mr_status mr_resume_add_site(struct mr_resume *resume, struct mr_id id,
                                  struct mr_span bytes);

enum mr_status mr_resume_put_source(struct mr_buffer *buffer,
                                    const struct mr_resume_source *source);
enum mr_status mr_resume_put_stream(struct mr_buffer *buffer,
                                    const struct mr_resume_stream *stream);

#define MR_RESUME_SHORT_SIZE 56u
/*
 * The same without its open calls, where there is no room for them: who goes on with it counts their enters as lost (budget), and does not
 * know its base. False: damaged.
 */
bool mr_resume_shorten(struct mr_span bytes, uint8_t out[MR_RESUME_SHORT_SIZE]);

/* resume_lists.c: `calls` are there from the root on. MR_ENOMEM; taking: MR_EFORMAT, damaged. `lists` is the caller's whatever comes of it. */
enum mr_status mr_resume_put_lists(struct mr_buffer *buffer,
                                   const struct mr_resume_lists *lists);
enum mr_status mr_resume_take_lists(struct mr_span *rest, uint32_t calls,
                                    struct mr_resume_lists **lists);
void mr_resume_free_lists(struct mr_resume_lists *lists); /* NULL allowed */
/* Another child of a list, which is the last that got one. MR_ENOMEM. */
enum mr_status mr_resume_lists_add(struct mr_resume_lists *lists,
                                   struct mr_resume_list *list, uint64_t child);

/* resume_links.c: the end of a stream's bytes. MR_ENOMEM; taking: MR_EFORMAT, damaged. `links` is the caller's whatever comes of it. */
enum mr_status mr_resume_put_links(struct mr_buffer *buffer,
                                   const struct mr_resume_links *links);
enum mr_status mr_resume_take_links(struct mr_span bytes, struct mr_resume_links **links);
void mr_resume_free_links(struct mr_resume_links *links); /* NULL allowed */

void mr_resume_sites_init(struct mr_resume_sites *sites);
void mr_resume_sites_fini(struct mr_resume_sites *sites);
enum mr_status mr_resume_sites_add(struct mr_resume_sites *sites, struct mr_id id,
                                   struct mr_span bytes);
/* The bytes that tell what a site is. MR_ENOMEM. */
enum mr_status mr_resume_put_site(struct mr_buffer *buffer, const struct mr_site *site);
/* The number that a lane has for the site; MR_SITE_UNKNOWN where it is not told, damaged, or finds no room. */
uint32_t mr_resume_site(const struct mr_resume_sites *sites, struct mr_id id,
                        struct mr_sites *lane);

#endif
