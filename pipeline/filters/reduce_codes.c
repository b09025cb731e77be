/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/filters/reduce_codes.h"

#include "pipeline/filters/reduce_private.h"

void mr_reduce_make_codes(struct mr_reduce *reduce)
{
    const struct mr_template_vectors *vectors = reduce->templates.vectors;
    const uint32_t count = reduce->event_count;
    uint32_t at = 0;

    if (vectors)
        at = vectors->make_codes(reduce->events, count, reduce->codes);
    for (; at < count; at++)
        reduce->codes[at] = mr_code_of(&reduce->events[at]);
    reduce->has_codes = true;
}
