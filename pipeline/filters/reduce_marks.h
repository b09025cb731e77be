/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the spool must know with a delta (reduce_marks.c; nothing happens where marks are not asked for), what a stream that moves
 * takes along (reduce_handover.c), and streams that go on from either. Not for others than reduce.
 */
#ifndef MR_PIPELINE_FILTERS_REDUCE_MARKS_H
#define MR_PIPELINE_FILTERS_REDUCE_MARKS_H

#include "base/buffer.h"
#include "pipeline/filters/reduce_stream.h"

struct mr_reduce;
struct mr_resume_links;
struct mr_resume_lists;
struct mr_resume_stream;

struct mr_reduce_marks {
    struct mr_buffer entries; /* since the last mark that was emitted */
    size_t last_at;           /* where the entries of last_source begin in it */
    struct mr_id last_source; /* zero: they are not the last ones */
    struct mr_buffer scratch;
    uint8_t *told; /* by site: the spool knows what it is */
    uint32_t told_capacity;
    uint64_t emitted_ns;
    bool is_amid; /* a frame: what was gained is more than what marks cover */
};

void mr_reduce_marks_init(struct mr_reduce *reduce);
void mr_reduce_marks_fini(struct mr_reduce *reduce);
/* A MARK of decode: takes the batch. */
enum mr_status mr_reduce_marks_take(struct mr_reduce *reduce, struct mr_batch *batch);
/* LANDED_IN. MR_ENOMEM. */
enum mr_status mr_reduce_marks_landing(struct mr_reduce_stream *stream,
                                       const struct mr_event *event);
/* The stream has been told, and ended if it is no more. */
enum mr_status mr_reduce_marks_stream(struct mr_reduce *reduce,
                                      const struct mr_reduce_stream *stream);
enum mr_status mr_reduce_marks_end(struct mr_reduce *reduce,
                                   const struct mr_source *source);
/* All that was gained has been told: tells what that covers. */
enum mr_status mr_reduce_marks_emit(struct mr_reduce *reduce);
/*
 * Where the stream stands, which is not over: `given->calls` is the caller's to free; `*links` is there for what it has of them, all
 * else in it is borrowed. MR_ENOMEM.
 */
enum mr_status mr_reduce_give_stream(const struct mr_reduce *reduce,
                                     const struct mr_reduce_stream *stream,
                                     struct mr_resume_links *links,
                                     struct mr_resume_stream *given);
/*
 * The stream ends here, at `ns`, as another receiver goes on with it: nothing that is open is counted, but where it finds no room.
 * MR_ENOMEM.
 */
enum mr_status mr_reduce_hand_over(struct mr_reduce *reduce,
                                   struct mr_reduce_stream *stream, uint64_t ns);
/* reduce_lists.c: what of the only open call tree has ended; NULL in `*lists`: that is not to be told. MR_ENOMEM. */
enum mr_status mr_reduce_lists_give(const struct mr_reduce *reduce,
                                    const struct mr_reduce_stream *stream,
                                    struct mr_resume_lists **lists);
/* The calls of `from` are open again. False: its call tree cannot become a shape. */
bool mr_reduce_lists_take(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                          const struct mr_resume_stream *from);
/* A new stream goes on where another process stood. */
enum mr_status mr_reduce_resume(struct mr_reduce *reduce,
                                struct mr_reduce_stream *stream);

#endif
