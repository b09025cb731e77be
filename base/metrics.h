/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Prometheus text format, version 0.0.4, as /metrics of master and worker speak it
 * (https://prometheus.io/docs/instrumenting/exposition_formats/). Every name begins with millrace_. A buffer past its limit
 * stays as it is: what does not fit is left out.
 *
 *     mr_metrics_put(&out, "paths", "gauge", "Paths.", 7);
 *     mr_metrics_head(&out, "lost_total", "counter", "Events lost, by reason.");
 *     mr_metrics_labels(&out, "lost_total", 1, (const char *[]){"reason", "budget"});
 *     mr_metrics_value(&out, 3);
 */
#ifndef MR_BASE_METRICS_H
#define MR_BASE_METRICS_H

#include <stdint.h>

#include "base/buffer.h"

#define MR_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* "# HELP" and "# TYPE": once per name, before all its values. type: counter, gauge. */
void mr_metrics_head(struct mr_buffer *out, const char *name, const char *type,
                     const char *help);
/* The name with `count` pairs of label and value; any text may be a value. */
void mr_metrics_labels(struct mr_buffer *out, const char *name, unsigned count,
                       const char *const *pairs);
/* Behind labels, or a bare name: the value, and the end of the line. */
void mr_metrics_value(struct mr_buffer *out, uint64_t value);
void mr_metrics_real(struct mr_buffer *out, double value);
/* All of a metric that has no labels. */
void mr_metrics_put(struct mr_buffer *out, const char *name, const char *type,
                    const char *help, uint64_t value);
void mr_metrics_put_seconds(struct mr_buffer *out, const char *name, const char *type,
                            const char *help, uint64_t ns);

#endif
