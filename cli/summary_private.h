/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a report share: summary_text.c is the whole, summary_*.c parts of it. */
#ifndef MR_CLI_SUMMARY_PRIVATE_H
#define MR_CLI_SUMMARY_PRIVATE_H

#include "cli/render.h"
#include "cli/summary_text.h"

#include <jansson.h>

/*
 * The time of one call, or the sum over `calls`. What a clock of ticks cannot tell from 0
 * is a bound: "<= 4.00 µs" for one call below a tick, a tick for each of calls that sum up to 0.
 */
const char *mr_summary_time(const struct mr_summary *summary, uint64_t ns, uint64_t calls,
                            char text[MR_RENDER_SIZE]);

/* Lines about clocks, where there is something to be told. */
enum mr_status mr_summary_put_clocks(const struct mr_summary *summary,
                                     struct mr_buffer *out);

/* Functions of which calls were counted and not recorded (MILLRACE_PRUNE), where there are. */
enum mr_status mr_summary_put_pruned(const struct mr_summary *summary,
                                     struct mr_buffer *out);

/*
 * Where over half of the calls have short bodies: the ten functions with most of them,
 * and how to leave them out. Nothing where it is fewer.
 */
enum mr_status mr_summary_put_cheap(const struct mr_summary *summary,
                                    struct mr_buffer *out);

/* The table of joined traces; nothing where no part was ever seen. */
enum mr_status mr_summary_put_traces(const struct mr_summary *summary,
                                     const struct mr_view *view, struct mr_buffer *out);

/* A line about the slowest trace that is kept; nothing where none is. */
enum mr_status mr_summary_put_kept(const struct mr_summary *summary,
                                   struct mr_buffer *out);
/* JSON has signed numbers: what is greater is the greatest of them. */
json_int_t mr_summary_number(uint64_t value);
/* Names come from other people's programs: of what is no UTF-8 each byte is '?'. */
json_t *mr_summary_text_json(const char *text);
/* What is open, and where the oldest of each entry point is; nothing where nothing is. */
enum mr_status mr_summary_put_open(const struct mr_summary *summary,
                                   struct mr_buffer *out);
json_t *mr_summary_open_json(const struct mr_summary *summary);
json_t *mr_summary_kept_json(const struct mr_summary *summary);

#endif
