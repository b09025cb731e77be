/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metrics.h"

#include "base/clock.h"
#include "base/text.h"

#include <inttypes.h>

void mr_metrics_head(struct mr_buffer *out, const char *name, const char *type,
                     const char *help)
{
    (void)mr_buffer_append_format(out, "# HELP millrace_%s %s\n# TYPE millrace_%s %s\n",
                                  name, help, name, type);
}

/*
 * Backslash and quote are escaped, as the format asks; control characters, and what is no UTF-8, for which a scraper refuses all
 * of it, become '?'.
 */
static void put_text(struct mr_buffer *out, const char *value)
{
    size_t start = out->size;

    for (; *value; value++) {
        if (*value == '\\' || *value == '"')
            (void)mr_buffer_append_byte(out, '\\');
        (void)mr_buffer_append_byte(out,
                                    (unsigned char)*value < ' ' ? '?' : (uint8_t)*value);
    }
    if (out->size > start)
        mr_text_make_valid((char *)out->data + start, out->size - start);
}

void mr_metrics_labels(struct mr_buffer *out, const char *name, unsigned count,
                       const char *const *pairs)
{
    (void)mr_buffer_append_format(out, "millrace_%s", name);
    for (size_t i = 0; i < count; i++) {
        (void)mr_buffer_append_format(out, "%c%s=\"", i ? ',' : '{', pairs[2 * i]);
        put_text(out, pairs[2 * i + 1]);
        (void)mr_buffer_append_byte(out, '"');
    }
    if (count)
        (void)mr_buffer_append_byte(out, '}');
}

void mr_metrics_value(struct mr_buffer *out, uint64_t value)
{
    (void)mr_buffer_append_format(out, " %" PRIu64 "\n", value);
}

void mr_metrics_real(struct mr_buffer *out, double value)
{
    (void)mr_buffer_append_format(out, " %.9f\n", value);
}

void mr_metrics_put(struct mr_buffer *out, const char *name, const char *type,
                    const char *help, uint64_t value)
{
    mr_metrics_head(out, name, type, help);
    mr_metrics_labels(out, name, 0, NULL);
    mr_metrics_value(out, value);
}

void mr_metrics_put_seconds(struct mr_buffer *out, const char *name, const char *type,
                            const char *help, uint64_t ns)
{
    mr_metrics_head(out, name, type, help);
    mr_metrics_labels(out, name, 0, NULL);
    mr_metrics_real(out, (double)ns / (double)MR_SECOND_NS);
}
