/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends, receives and hand-offs: call trees that are parts of a trace (reduce_links.c). Not for others than reduce.
 */
#ifndef MR_PIPELINE_FILTERS_REDUCE_LINKS_H
#define MR_PIPELINE_FILTERS_REDUCE_LINKS_H

#include "pipeline/filters/reduce_stream.h"

struct mr_reduce;
struct mr_shape;
struct mr_resume_links;

/* reduce_links.c. _link: a WORD or LINK of any stream; the others where it has links. */
enum mr_status mr_reduce_link(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                              const struct mr_event *event);
/* The innermost call has just become the root of a call tree. */
enum mr_status mr_reduce_links_open(struct mr_reduce *reduce,
                                    struct mr_reduce_stream *stream);
/* The innermost call tree ends; `shape`: NULL: none. */
enum mr_status mr_reduce_links_close(struct mr_reduce *reduce,
                                     struct mr_reduce_stream *stream,
                                     const struct mr_shape *shape,
                                     const struct mr_event *close, bool is_incomplete);
/* The open call tree is none after all: its root is an outer frame. */
enum mr_status mr_reduce_links_drop(struct mr_reduce *reduce,
                                    struct mr_reduce_stream *stream);
/* The stream ends. */
enum mr_status mr_reduce_links_end(struct mr_reduce *reduce,
                                   struct mr_reduce_stream *stream);
/* What is not told yet (pipeline/resume.h), borrowed from the stream. False: nothing. */
bool mr_reduce_links_give(const struct mr_reduce_stream *stream,
                          struct mr_resume_links *given);
/* Goes on with what was given, in a stream whose open calls are there again. MR_ENOMEM. */
enum mr_status mr_reduce_links_take(struct mr_reduce_stream *stream,
                                    const struct mr_resume_links *from);
void mr_reduce_links_free(struct mr_reduce_stream *stream);

#endif
