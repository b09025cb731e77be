/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of requests for exemplars; what is read can be written again, the same. */
#include <stdlib.h>

#include "base/assert.h"
#include "net/wanted.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_again(const struct mr_wanted_list *list)
{
    static struct mr_wanted_list again;
    static uint8_t out[MR_WANTED_SIZE_MAX];
    size_t size = mr_wanted_put(list, out);

    MR_ASSERT(size <= sizeof(out));
    MR_ASSERT(mr_wanted_get(mr_span_of(out, size), &again) == MR_OK);
    MR_ASSERT(again.count == list->count);
    for (uint32_t i = 0; i < list->count; i++)
        MR_ASSERT(mr_wanted_is_same(&again.items[i], &list->items[i]) &&
                  again.items[i].left_ms == list->items[i].left_ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct mr_wanted_list list;

    if (mr_wanted_get(mr_span_of(data, size), &list) == MR_OK)
        write_again(&list);
    return 0;
}
