/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `millrace bench chain`, in two: real chains that are run (chain_run.c), and what is made of it (chain.c): events per second
 * of processor time, how many senders a level carries, and a model of many hosts. One thread.
 *
 * A chain is `workers` of level 1, one worker on each level above, and a master; programs are spread over the workers. What each
 * process took is the kernel's account of it, from its start to its end, so other load on the machine does not count.
 */
#ifndef MR_BENCH_CHAIN_H
#define MR_BENCH_CHAIN_H

#include "bench/build.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define MR_CHAIN_WORKERS_MAX 4
#define MR_CHAIN_LEVELS_MAX 3

struct mr_chain_case {
    uint32_t workers, levels;
};

struct mr_chain_load {
    const char *program, *folder; /* the compiled one; where the chain's files go */
    uint32_t programs;
    uint64_t requests; /* of each thread */
};

struct mr_chain_result {
    uint64_t events, lost; /* as the master's ledger has them */
    double wall_s;         /* of the programs */
    double level_s[MR_CHAIN_LEVELS_MAX +
                   1]; /* processor time of each level, then the master */
};

/* MR_EIO when something does not start or end well, or the ledger does not balance; MR_END after Ctrl-C. */
enum mr_status mr_chain_run(const struct mr_chain_case *which,
                            const struct mr_chain_load *load,
                            struct mr_chain_result *result, struct mr_error *error);

#endif
