/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper thread: what may allocate or take the loader's lock, and so must not be
 * done by the writer: looking for modules that came or went, resolving names of hosts.
 * Nobody waits for it without end: the writer at the end of the program for 100 ms, words
 * of the first events of a module for five seconds at most.
 *
 * field                 written by        read by        access
 * addresses, _count     helper            writer         the helper's while has_addresses
 *                                                        is 0: [G]-[H], [P]-[C]
 * has_addresses         helper, writer    both           set by the helper [P], acquire [C];
 *                                                        0 by the writer, who wants new
 *                                                        ones: release [G], acquire [H]
 * is_helper_done        helper            writer         release store [L], acquire in writer.c
 * is_scanning           helper            forking thread sequentially consistent with
 * is_forking            forking thread    helper         each other (Dekker)
 * Invariant: a process is not copied while the helper holds the loader's lock, or the
 * child would find it locked for ever; but for a fork by who holds that lock itself,
 * which goes on after FORK_WAIT_NS.
 */
#include "probe/registry.h"

#include "base/clock.h"
#include "probe/futex.h"
#include "probe/patience.h"
#include "probe/sites.h"

#include <stdio.h>
#include <string.h>

#define LOOK_NS (100 * MR_MILLISECOND_NS)
#define RECORDER_SAMPLE_TURNS 10 /* of LOOK_NS */
#define RECORDER_PRUNE_TURNS 100
/* Names that are not known yet, and those that the writer wants to know anew. */
#define RESOLVE_NS MR_SECOND_NS
#define FORK_WAIT_NS (100 * MR_MILLISECOND_NS)
#define FORK_SLEEP_NS (20 * MR_MICROSECOND_NS)

static bool enter_loader(struct mr_probe *probe)
{
    mr_store_seq_cst(&probe->is_scanning, 1);
    if (!mr_load_seq_cst(&probe->is_forking))
        return true;
    mr_store_seq_cst(&probe->is_scanning, 0);
    return false;
}

static void leave_loader(struct mr_probe *probe)
{
    mr_store_seq_cst(&probe->is_scanning, 0);
}

void mr_helper_before_fork(struct mr_probe *probe)
{
    struct mr_patience patience = mr_patience_begin();

    mr_store_seq_cst(&probe->is_forking, 1);
    while (mr_load_seq_cst(&probe->is_scanning) &&
           mr_patience_left(&patience, FORK_WAIT_NS) > 0)
        mr_sleep_ns(FORK_SLEEP_NS);
}

void mr_helper_after_fork(struct mr_probe *probe, bool is_child)
{
    if (is_child)
        mr_store_seq_cst(&probe->is_scanning, 0);
    mr_store_seq_cst(&probe->is_forking, 0);
}

static void look(struct mr_probe *probe)
{
    uint64_t now;

    if (!enter_loader(probe))
        return;
    now = mr_modules_generation();
    (void)mr_changes_look(probe, false);
    leave_loader(probe);
    if (now != probe->generation)
        mr_sites_modules_changed();
    probe->generation = now;
}

/* Again and again until it has looked: where it does not wait, the wake is lost. */
void mr_helper_ask(struct mr_probe *probe)
{
    mr_futex_wake(&probe->stop_wanted);
}

/* Policy overwrite: what a stranger must find, and what others left where we write. */
static void tend_recorder(struct mr_probe *probe, uint64_t turn)
{
    if (!probe->recorder.header)
        return;
    mr_recorder_depth(&probe->recorder, &probe->depth);
    if (turn % RECORDER_SAMPLE_TURNS == 1) /* the first after 100 ms */
        mr_recorder_sample(&probe->recorder);
    if (turn % RECORDER_PRUNE_TURNS == 0 && !probe->source.is_forked)
        mr_recorder_prune_beside(&probe->recorder, probe->config.recorder_keep);
}

/* It asks the loader where functions lie. */
static void look_for_cheap(struct mr_probe *probe)
{
    if (!enter_loader(probe))
        return;
    mr_prune_look(probe);
    leave_loader(probe);
}

/* getaddrinfo() may load modules of libc: it too is kept apart from forks. */
static void resolve(struct mr_probe *probe)
{
    struct mr_error error = MR_ERROR_NONE;

    if (!enter_loader(probe))
        return;
    if (mr_endpoints_resolve(&probe->config.endpoints, probe->addresses,
                             &probe->address_count, &error) == MR_OK)
        mr_store_release(&probe->has_addresses, 1); /* [P] */
    leave_loader(probe);
}

/* By now the program's modules have come; those of dlopen() may still match. */
static void warn_of_globs(struct mr_probe *probe)
{
    char glob[128], line[256];
    uint32_t at = 0;

    while (mr_sites_unmatched(&at, glob, sizeof(glob))) {
        int size = snprintf(line, sizeof(line),
                            "millrace: MILLRACE_ONLY or MILLRACE_EXCEPT: no function "
                            "that can be traced is named %s\n",
                            glob);

        if (size > 0 && mr_own_fd_is_there(&probe->error_output))
            (void)!write(probe->error_output.fd, line, strlen(line));
    }
}

static void *helper_main(void *argument)
{
    struct mr_probe *probe = argument;
    uint64_t resolve_at_ns = 0, turn = 0;
    bool is_warned = false;

    mr_own_thread_begin(probe, "millrace-names");
    while (!mr_load_acquire(&probe->stop_wanted)) {
        uint64_t now_ns = mr_clock_monotonic_ns();

        if (!mr_load_acquire(&probe->has_addresses) /* [H] */ &&
            now_ns >= resolve_at_ns) {
            resolve(probe);
            resolve_at_ns = now_ns + RESOLVE_NS;
        }
        look(probe);
        tend_recorder(probe, turn++);
        look_for_cheap(probe);
        mr_last_thread_look(probe);
        mr_futex_wait(&probe->stop_wanted, 0, LOOK_NS);
        if (!is_warned && !probe->source.is_forked && mr_sites_are_as_started())
            warn_of_globs(probe);
        is_warned = true;
    }
    look(probe);                                 /* what came since has names, too */
    mr_store_release(&probe->is_helper_done, 1); /* [L] */
    return NULL;
}

enum mr_status mr_helper_start(struct mr_probe *probe)
{
    mr_store_relaxed(&probe->is_helper_done, 0); /* before there is the thread */
    return mr_own_thread(probe, helper_main);
}
