/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of DICT items of kinds 16 to 20 in one block of memory each: fields first,
 * strings behind.
 *
 *     block = mr_dict_copy_new(&item, &bytes);      // NULL: no memory, or another kind
 *     mr_dict_copy_get(MR_DICT_SITE, block, &item); // item borrows from the block
 *     free(block);
 */
#ifndef MR_PIPELINE_DICT_COPY_H
#define MR_PIPELINE_DICT_COPY_H

#include <stddef.h>

#include "net/control.h"

/* Bytes that a copy takes; 0 for a kind that is not 16 to 20. */
size_t mr_dict_copy_size(const struct mr_dict_item *item);
/* Owned by the caller, freed with free(). */
void *mr_dict_copy_new(const struct mr_dict_item *item);
void mr_dict_copy_get(enum mr_dict_kind kind, const void *block,
                      struct mr_dict_item *item);

#endif
