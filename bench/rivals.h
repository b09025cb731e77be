/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other tracers of C programs: how one is run, and what it recorded. They are variants (variants.h), which call these.
 * One thread.
 *
 *     struct mr_rivals rivals = {.build = &build};   // and a folder that is theirs
 *     status = variant->begin(&rivals, &argv, &env, &error);
 *     ... run argv, then the program's own words, in rivals.folder ...
 *     variant->end(&rivals, &events, &bytes);
 *     mr_rivals_stop(&rivals);
 */
#ifndef MR_BENCH_RIVALS_H
#define MR_BENCH_RIVALS_H

#include "bench/variants.h"

#include <limits.h>
#include <sys/types.h>

struct mr_rivals {
    const struct mr_build *build;
    char folder[PATH_MAX]; /* where they write; emptied after each run */
    pid_t session_daemon;  /* LTTng's, if we had to start one */
};

/* How each is run, which environment.json tells; each file and folder of theirs is below `folder`. */
#define MR_RIVAL_UFTRACE "uftrace record -d"
#define MR_RIVAL_LTTNG_EVENTS "lttng_ust_cyg_profile_fast:*"
#define MR_RIVAL_LTTNG_ENV "LD_PRELOAD=liblttng-ust-cyg-profile-fast.so.1"
#define MR_RIVAL_XRAY "patch_premain=true xray_mode=xray-fdr"
#define MR_RIVAL_XRAY_FDR "XRAY_FDR_OPTIONS=func_duration_threshold_us=0"

/* MR_EIO ... */
enum mr_status mr_rival_uftrace_begin(struct mr_rivals *rivals, struct mr_words *argv,
                                      struct mr_words *env, struct mr_error *error);
void mr_rival_uftrace_end(struct mr_rivals *rivals, double *events, double *bytes);
enum mr_status mr_rival_lttng_begin(struct mr_rivals *rivals, struct mr_words *argv,
                                    struct mr_words *env, struct mr_error *error);
void mr_rival_lttng_end(struct mr_rivals *rivals, double *events, double *bytes);
/* The number in "Warning: 123 events were discarded", in what `lttng stop` says; 0 where it says nothing of it. */
double mr_rival_lttng_discarded(const char *text);
enum mr_status mr_rival_xray_begin(struct mr_rivals *rivals, struct mr_words *argv,
                                   struct mr_words *env, struct mr_error *error);
void mr_rival_xray_end(struct mr_rivals *rivals, double *events, double *bytes);

/*
 * MR_ENOTFOUND, with the loader's word: what was to be preloaded into the program that ran is not on this machine. It ran as if
 * nobody traced it, and its numbers are no tracer's.
 */
enum mr_status mr_rival_check_loaded(struct mr_command *command, struct mr_error *error);

/* Appends "name": {"version", "cflags", "words"}, ... of the rivals among `used`, a bit for each of mr_variants. */
enum mr_status mr_rivals_describe(const struct mr_rivals *rivals, uint32_t used,
                                  struct mr_buffer *out);
/* Allowed where nothing was started. */
void mr_rivals_stop(struct mr_rivals *rivals);

#endif
