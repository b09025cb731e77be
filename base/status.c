/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <stddef.h>

struct status_row {
    const char *name;
    const char *text;
};

static const struct status_row rows[] = {
#define MR_STATUS(constant, name, text) {name, text},
#include "base/status.def"
#undef MR_STATUS
};

static const struct status_row unknown = {"unknown", "unknown status"};

static const struct status_row *row_of(enum mr_status status)
{
    /* Through size_t: a negative value that someone cast is out of range as well. */
    return (size_t)status < MR_STATUS_COUNT ? &rows[status] : &unknown;
}

const char *mr_status_name(enum mr_status status)
{
    return row_of(status)->name;
}

const char *mr_status_text(enum mr_status status)
{
    return row_of(status)->text;
}
