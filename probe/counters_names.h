/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of counters to what the kernel calls them: its own (probe/counters.def), "rHEX"
 * for a processor's raw event, and all that libpfm4 knows, where libpfm.so.4 is
 * installed. "NAME:u" counts in user mode alone, as in perf.
 *
 *     status = mr_counter_resolve("page-faults", &event, &error);
 *
 * At the start of a program alone: it allocates and may load a library.
 */
#ifndef MR_PROBE_COUNTERS_NAMES_H
#define MR_PROBE_COUNTERS_NAMES_H

#include "base/error.h"
#include "net/control.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_counter_event {
    char name[MR_COUNTER_NAME_MAX + 1]; /* shown: one for all names of an event */
    const char *unit;                   /* "1" or "ns" */
    uint32_t type;
    uint64_t config, config1, config2;
    bool is_user_only;   /* leaves out what happens in the kernel */
    bool is_kernel_only; /* happens nowhere else */
    bool is_software;
};

/* MR_OK; MR_ENOTFOUND with one line that says which name may be meant. */
enum mr_status mr_counter_resolve(const char *name, struct mr_counter_event *event,
                                  struct mr_error *error);

/* Appends ":u" to the name. */
void mr_counter_name_user_only(struct mr_counter_event *event);

/* counters_pfm.c. MR_ENOTFOUND, and what libpfm4 said or that it is not there. */
enum mr_status mr_counter_resolve_pfm(const char *name, struct mr_counter_event *event,
                                      struct mr_error *error);

#endif
