/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker counts about its connections (worker/counters.def). Any thread adds and reads,
 * relaxed: numbers for people, ordered with nothing.
 *
 *     mr_add_relaxed(&counters->refused, 1);
 */
#ifndef MR_WORKER_COUNTERS_H
#define MR_WORKER_COUNTERS_H

#include "base/atomics.h"

#include <stdint.h>

struct mr_worker_counters {
#define MR_WORKER_COUNTER(name, meaning) _Atomic uint64_t name;
#include "worker/counters.def"
#undef MR_WORKER_COUNTER
};

#endif
