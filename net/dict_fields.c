/* SPDX-License-Identifier: Apache-2.0 */
#include "net/dict_fields.h"

#include <assert.h>
#include <stddef.h>

#include "base/compiler.h"

/* A CHOICE is read and written as the 4 bytes of its number. */
static_assert(sizeof(enum mr_clock_kind) == sizeof(uint32_t) &&
                  sizeof(enum mr_site_type) == sizeof(uint32_t),
              "enums are of 4 bytes");

static const struct mr_dict_field fields[] = {
/* NOLINTBEGIN(bugprone-macro-parentheses): the member of offsetof() takes none */
#define FIELD(kind, member, field, type, max)                                            \
    {MR_DICT_##kind, MR_FIELD_##type, offsetof(struct mr_dict_item, member.field), (max)},
#include "net/dict_fields.def"
#undef FIELD
    /* NOLINTEND(bugprone-macro-parentheses) */
};

const struct mr_dict_field *mr_dict_fields_of(uint64_t kind, uint32_t *count)
{
    const struct mr_dict_field *first = NULL;

    *count = 0;
    for (size_t i = 0; i < MR_ARRAY_COUNT(fields); i++) {
        if (fields[i].kind != kind)
            continue;
        first = first ? first : &fields[i];
        ++*count;
    }
    return first;
}
