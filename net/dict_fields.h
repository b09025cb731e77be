/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/dict_fields.def as a table. Inside net/ only.
 *
 *     fields = mr_dict_fields_of(kind, &count);
 *     for (i = 0; i < count; i++) put(fields[i].type, (const char *)item + fields[i].offset);
 */
#ifndef MR_NET_DICT_FIELDS_H
#define MR_NET_DICT_FIELDS_H

#include <stdint.h>

#include "net/control.h"
#include "net/wire.h"

enum mr_dict_field_type {
    MR_FIELD_U32,
    MR_FIELD_U64,
    MR_FIELD_TEXT,
    MR_FIELD_BYTES,
    MR_FIELD_ID,
    MR_FIELD_CHOICE, /* an enum */
};

struct mr_dict_field {
    uint8_t kind;    /* enum mr_dict_kind */
    uint8_t type;    /* enum mr_dict_field_type */
    uint16_t offset; /* in struct mr_dict_item */
    uint32_t max;
};

/* The fields of an item of this kind; NULL for an unknown kind. */
const struct mr_dict_field *mr_dict_fields_of(uint64_t kind, uint32_t *count);

#endif
