/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a performance engineer reads first: a summary (master/summary.h) as text or as one JSON object.
 * Used by record, at the end of the run, and by report, from what the run left. One thread.
 *
 *     mr_summary_text(summary, &run, &view, &out);
 *
 * Nothing that was lost, cut or estimated is left out: loss and ledger always have a line, a quantile
 * shows its error, a table that is cut says of how many rows.
 */
#ifndef MR_CLI_SUMMARY_TEXT_H
#define MR_CLI_SUMMARY_TEXT_H

#include "base/buffer.h"
#include "cli/run.h"
#include "master/summary.h"

#include <stddef.h>

enum mr_view_sort { MR_SORT_SELF, MR_SORT_TOTAL, MR_SORT_CALLS, MR_SORT_NAME };
#define MR_VIEW_SORTS "self|total|calls|name"

struct mr_view {
    size_t functions, entries; /* rows; 0: no table */
    enum mr_view_sort sort;    /* of the functions */
    size_t width;              /* of a line; 0: any */
};

/* Sorts summary->functions in place. `run` may be NULL: not known. The buffer's failures. */
enum mr_status mr_summary_text(struct mr_summary *summary, const struct mr_run *run,
                               const struct mr_view *view, struct mr_buffer *out);
enum mr_status mr_summary_json(struct mr_summary *summary, const struct mr_run *run,
                               const struct mr_view *view, struct mr_buffer *out);

/* Sorts the rows by what `sort` says, then by name. */
void mr_summary_sort(struct mr_summary *summary, enum mr_view_sort sort);

#endif
