/* SPDX-License-Identifier: Apache-2.0 */
/* Marks; what was read is written as the same bytes, and what cannot be read is left as it was. */
#include "base/assert.h"
#include "pipeline/mark.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_span rest = mr_span_of(data, size);
    struct mr_buffer again;
    struct mr_mark mark;

    mr_buffer_init(&again, SIZE_MAX);
    while (mr_mark_next(&rest, &mark)) {
        MR_ASSERT(mark.kind > 0 && mark.kind < MR_MARK_KIND_COUNT);
        MR_ASSERT(mr_mark_put(&again, &mark) == MR_OK);
        MR_ASSERT(again.size + rest.size == size);
    }
    MR_ASSERT(rest.size == 0 || rest.data == data + again.size);
    MR_ASSERT(mr_span_equal(mr_buffer_span(&again), mr_span_of(data, size - rest.size)));
    mr_buffer_fini(&again);
    return 0;
}
