/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine under a benchmark: what the hypervisor took from it, and what it is. One
 * thread.
 *
 *     struct mr_machine_ticks before, after;
 *     mr_machine_ticks(&before); ... mr_machine_ticks(&after);
 *     if (mr_machine_steal(&before, &after) > 0.01) ...      // discard what was measured
 */
#ifndef MR_BENCH_MACHINE_H
#define MR_BENCH_MACHINE_H

#include "base/buffer.h"
#include "base/status.h"

#include <stdint.h>

/* Of all processors, in the kernel's ticks. */
struct mr_machine_ticks {
    uint64_t total, steal, idle; /* idle: waiting for disks included */
};

/* From the text of /proc/stat. MR_EFORMAT. */
enum mr_status mr_machine_ticks_parse(const char *text, struct mr_machine_ticks *ticks);
/* Now; zeros where /proc/stat cannot be read, which makes a steal of 0. */
void mr_machine_ticks(struct mr_machine_ticks *ticks);
/* The stolen share of the time between, 0 to 1. */
double mr_machine_steal(const struct mr_machine_ticks *before,
                        const struct mr_machine_ticks *after);

/* The share of the time between, 0 to 1, that neither was idle or stolen nor is in own_s, our own seconds of CPU time. */
double mr_machine_others(const struct mr_machine_ticks *before,
                         const struct mr_machine_ticks *after, double own_s);
/* CPU time of this process, and of those that it started and that ended. */
double mr_machine_own_s(void);

/* The calling thread, and what it starts from then on, is kept off a processor, if there is another; -1: nothing. */
void mr_machine_leave_cpu(int cpu);

/* Processors that this process may use. */
uint32_t mr_machine_cpus(void);

#define MR_MACHINE_MODEL_SIZE 96
/*
 * What tells processors apart whose names do not, from /proc/cpuinfo's text; NULL: it does
 * not tell, as on other processors than x86's.
 */
const char *mr_machine_model(const char *cpuinfo, char out[MR_MACHINE_MODEL_SIZE]);
/*
 * Appends the members of a JSON object, without its braces: processor, processor_model,
 * cpus, kernel, memory_kib, governor, tick_clock. What is not known is null. The buffer's
 * failures.
 */
enum mr_status mr_machine_describe(struct mr_buffer *out);

/* Appends `text` as a JSON string with its quotes, or null for NULL. */
enum mr_status mr_bench_json_text(struct mr_buffer *out, const char *text);

#endif
