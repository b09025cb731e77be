/* SPDX-License-Identifier: Apache-2.0 */
/* What `millrace bench probe` can measure. */
#include "bench/probe.h"

const char *const mr_workload_names[MR_WORKLOAD_COUNT] = {"tiny",   "rec10", "body",
                                                          "sqlite", "start", "stamps"};
const char *const mr_sink_names[MR_SINK_COUNT] = {"off", "control", "recorder", "discard",
                                                  "tcp", "compact", "worker"};
