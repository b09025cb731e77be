/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper thread: what may allocate or take the loader's lock, and so must not be
 * done by the writer: looking for modules that came or went, resolving names of hosts.
 * Nobody waits for it without end: the writer at the end of the program and who opens a
 * module with patchable sites, wait for 100 ms and a second at most.
 *
 * field                 written by        read by        access
 * addresses, _count     helper            writer         before has_addresses [P]
 * has_addresses         helper            writer         release store [P], acquire [C]
 * scanned               helper, writer    both           the helper's while is_scanned
 *                                                        is 0: [F]-[C], [P]-[C]
 * scan_wanted           any thread        helper         relaxed add; a wake follows
 * scan_done             helper            any thread     release store [D], acquire [E]
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
#include "probe/sites.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#define SCAN_NS (100 * MR_MILLISECOND_NS)
#define RECORDER_SAMPLE_TURNS 10 /* of SCAN_NS */
#define RECORDER_PRUNE_TURNS 100
#define RESOLVE_NS MR_SECOND_NS
#define FORK_WAIT_NS (100 * MR_MILLISECOND_NS)
/* Milliseconds on a machine with a free processor. */
#define MEET_NS MR_SECOND_NS
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
    uint64_t deadline_ns = mr_clock_monotonic_ns() + FORK_WAIT_NS;

    mr_store_seq_cst(&probe->is_forking, 1);
    while (mr_load_seq_cst(&probe->is_scanning) && mr_clock_monotonic_ns() < deadline_ns)
        mr_sleep_ns(FORK_SLEEP_NS);
}

void mr_helper_after_fork(struct mr_probe *probe, bool is_child)
{
    if (is_child)
        mr_store_seq_cst(&probe->is_scanning, 0);
    mr_store_seq_cst(&probe->is_forking, 0);
}

static void scan(struct mr_probe *probe)
{
    uint32_t wanted = mr_load_relaxed(&probe->scan_wanted);
    bool has_changed;
    uint64_t now;

    if (mr_load_acquire(&probe->is_scanned) || !enter_loader(probe)) /* [C] */
        return;
    now = mr_modules_generation();
    has_changed = now != probe->generation;
    if (has_changed) {
        mr_modules_scan(&probe->scanned);
        mr_modules_number(&probe->scanned, &probe->windows);
        probe->generation = now;
        if (!probe->recorder.header)
            mr_store_release(&probe->is_scanned, 1); /* [P] */
    }
    leave_loader(probe);
    if (probe->recorder.header && has_changed)
        mr_recorder_modules(&probe->recorder, &probe->scanned);
    mr_store_release(&probe->scan_done, wanted); /* [D] */
    if (has_changed)
        mr_sites_modules_changed();
}

static void wake_both(struct mr_probe *probe)
{
    mr_futex_wake(&probe->stop_wanted); /* the helper waits there */
    mr_store_relaxed(&probe->pool.shared.sleeping, 0);
    mr_futex_wake(&probe->pool.shared.sleeping);
}

void mr_helper_meet_module(struct mr_probe *probe)
{
    uint64_t deadline_ns = mr_clock_monotonic_ns() + MEET_NS;
    uint32_t wanted;

    if (mr_thread_self.flags & MR_THREAD_OWN)
        return;
    wanted = mr_add_relaxed(&probe->scan_wanted, 1) + 1;
    /* is_full relaxed: a hint. */
    while (mr_clock_monotonic_ns() < deadline_ns && !mr_load_relaxed(&probe->is_full) &&
           ((int32_t)(mr_load_acquire(&probe->scan_done) - wanted) < 0 || /* [E] */
            mr_load_acquire(&probe->is_scanned))) {                       /* [C] */
        wake_both(probe);
        mr_sleep_ns(FORK_SLEEP_NS);
    }
}

/* Policy overwrite: what a stranger must find, and what others left where we write. */
static void tend_recorder(struct mr_probe *probe, uint64_t turn)
{
    if (!probe->recorder.header)
        return;
    if (turn % RECORDER_SAMPLE_TURNS == 1) /* the first after 100 ms */
        mr_recorder_sample(&probe->recorder);
    if (turn % RECORDER_PRUNE_TURNS == 0 && !probe->source.is_forked)
        mr_recorder_prune_beside(&probe->recorder, probe->config.recorder_keep);
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

/* Modules that came since the last scan: without it, what ran in them has no names. */
static void scan_last(struct mr_probe *probe)
{
    uint64_t deadline_ns = mr_clock_monotonic_ns() + SCAN_NS;

    while (mr_load_acquire(&probe->is_scanned) && /* [C] the writer has the one before */
           mr_clock_monotonic_ns() < deadline_ns)
        mr_sleep_ns(MR_MILLISECOND_NS / 10);
    scan(probe);
    mr_store_release(&probe->is_helper_done, 1); /* [L] */
}

static void *helper_main(void *argument)
{
    struct mr_probe *probe = argument;
    uint64_t resolve_at_ns = 0, turn = 0;
    bool is_warned = false;

    mr_thread_self.flags = MR_THREAD_OWN;
    (void)prctl(PR_SET_NAME, "millrace-names");
    while (!mr_load_acquire(&probe->stop_wanted)) {
        uint64_t now_ns = mr_clock_monotonic_ns();

        if (!mr_load_relaxed(&probe->has_addresses) && now_ns >= resolve_at_ns) {
            resolve(probe);
            resolve_at_ns = now_ns + RESOLVE_NS;
        }
        scan(probe);
        tend_recorder(probe, turn++);
        mr_futex_wait(&probe->stop_wanted, 0, SCAN_NS);
        if (!is_warned && !probe->source.is_forked && mr_sites_are_as_started())
            warn_of_globs(probe);
        is_warned = true;
    }
    scan_last(probe);
    return NULL;
}

enum mr_status mr_helper_start(struct mr_probe *probe)
{
    mr_store_relaxed(&probe->is_helper_done, 0); /* before there is the thread */
    return mr_own_thread(probe, helper_main);
}

enum mr_status mr_own_thread(struct mr_probe *probe, void *(*start)(void *))
{
    uint64_t mask = mr_signals_block();
    pthread_attr_t attributes;
    pthread_t thread;
    int failure = pthread_attr_init(&attributes);

    if (failure == 0) {
        (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        /* Ours passes it through: nothing is recorded yet. So do those of tools. */
        failure = pthread_create(&thread, &attributes, start, probe);
        (void)pthread_attr_destroy(&attributes);
    }
    mr_signals_restore(mask);
    return failure == 0 ? MR_OK : MR_ENOMEM;
}
