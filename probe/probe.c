/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probe's life: start (constructor), fork, end (destructor), and requests from the
 * program.
 *
 * field            written by            read by      access
 * mr_probe         constructor           any thread   before mr_probe_active [P]
 * mr_probe_active, constructor, switch,  any thread   release store [P]; hooks read it
 *  clock,           end                               relaxed and depend on it: before
 *  hook_clock                                         it is first set, all stands
 * flush_*, stop_*  see probe/writer.c
 * is_running       who starts            any thread   release, after the threads began;
 *                                                     acquire
 *
 * Without MILLRACE_ENDPOINT, policy overwrite and MILLRACE_CONTROL, the constructor reads
 * the environment and returns: no memory, no thread, no handler. With control alone,
 * there is its thread and no other, and no ring, until recording is switched on.
 */
#include "net/encoding.h"
#include "probe/registry.h"

#include "base/clock.h"
#include "base/text.h"
#include "probe/control.h"
#include "probe/futex.h"
#include "probe/hook.h"
#include "probe/hook_filter.h"
#include "probe/include/millrace/probe.h"
#include "probe/sites.h"
#include "probe/switch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

MR_HIDDEN struct mr_probe *mr_probe;
MR_EXPORT unsigned char mr_probe_active;

void mr_probe_set_active(bool is_active)
{
    uint32_t clock = is_active ? (uint32_t)mr_probe->clock.mode : 0;

    mr_hook_set_clock(clock);                      /* [P] */
    mr_arch_store_u8(&mr_probe_active, is_active); /* [P] */
}

/* One line: what was asked for and cannot be had. */
static void say(const char *prefix, const char *text)
{
    char line[MR_ERROR_TEXT_SIZE + 64];
    int printed = snprintf(line, sizeof(line), "millrace: %s%s", prefix, text);
    size_t size = printed < 0 ? 0 : (size_t)printed;

    if (size > sizeof(line) - 1)
        size = sizeof(line) - 1;
    size = mr_text_make_plain(line, size);
    line[size++] = '\n'; /* in place of the terminating zero */
    (void)!write(STDERR_FILENO, line, size);
}

static void remark(const char *text)
{
    say("", text);
}

static struct mr_probe *map_probe(void)
{
    void *memory = mmap(NULL, sizeof(struct mr_probe), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static enum mr_status identify(struct mr_probe *probe, bool is_forked)
{
    struct mr_source *source = &probe->source;

    if (mr_id_random(&source->id) != MR_OK)
        return MR_EIO;
    source->pid = (uint32_t)syscall(SYS_getpid);
    source->is_forked = is_forked;
    source->start_ns = mr_clock_realtime_ns();
    mr_clock_sample(probe->clock.mode, &source->first_sample);
    if (gethostname(source->host, sizeof(source->host) - 1) != 0)
        (void)strcpy(source->host, "localhost");
    return MR_OK;
}

static void learn_modules(struct mr_probe *probe)
{
    const struct mr_module_table *known = &probe->changes.known;

    mr_changes_start(&probe->changes, &probe->windows);
    probe->generation = probe->changes.generation;
    mr_hook_state.windows = probe->windows;
    if (known->count > 0)
        probe->main_address = mr_main_address(&known->items[0]);
}

/* Policy overwrite: nothing is sent, so there is no writer. */
static bool is_recorder(const struct mr_probe *probe)
{
    return probe->config.policy == MR_POLICY_OVERWRITE;
}

static enum mr_status configure(struct mr_probe *probe, struct mr_error *error)
{
    struct mr_config *config = &probe->config;
    char exe[MR_MODULE_PATH_SIZE] = "";
    enum mr_status status;
    ssize_t size = readlink(MR_MODULE_EXE, exe, sizeof(exe) - 1);

    (void)size;
    status = mr_config_parse(environ, exe, config, error);
    if (status != MR_OK)
        return status;
    probe->stripes = probe->own_stripes;
    mr_pool_init(&probe->pool, config->ring_bytes, config->memory_bytes);
    probe->pool.shared.policy = config->policy;
    probe->pool.shared.block_timeout_ns = config->block_timeout_ns;
    if (mr_named_init(&probe->named) != MR_OK)
        return mr_error_set(error, MR_ENOMEM, "out of memory");
    return MR_OK;
}

static void start_counters(struct mr_probe *probe)
{
    const struct mr_config *config = &probe->config;

    if (config->counters[0] == '\0')
        return;
    if (is_recorder(probe)) {
        remark("MILLRACE_COUNTERS: the flight recorder (policy overwrite) keeps no "
               "counters");
        return;
    }
    if (mr_counters_start(&probe->counters, config->counters, remark))
        mr_hook_state.counted = config->is_counting_functions
                                    ? MR_COUNTED_SPANS | MR_COUNTED_FUNCTIONS
                                    : MR_COUNTED_SPANS;
}

/* Every event takes the way that counted ones take: who asks for no limit pays nothing. */
static void start_depth(struct mr_probe *probe)
{
    probe->depth.limit = probe->config.depth;
    if (probe->depth.limit > 0)
        mr_hook_state.counted |=
            MR_COUNTED_DEPTH | MR_COUNTED_SPANS | MR_COUNTED_FUNCTIONS;
}

/* After the modules are known. */
static enum mr_status start_recorder(struct mr_probe *probe, struct mr_error *error)
{
    struct mr_recorder *recorder = &probe->recorder;
    const struct mr_module_table *known = &probe->changes.known;
    const char *exe = known->count ? known->items[0].path : "";
    enum mr_status status =
        mr_recorder_open(recorder, &probe->config, &probe->source, exe, error);

    if (status == MR_OK && mr_named_move(&probe->named, recorder) != MR_OK)
        status = mr_error_set(error, MR_ENOMEM, "no memory for the flight recorder");
    if (status != MR_OK)
        return status;
    mr_recorder_warn(recorder, probe->clock.warning);
    mr_recorder_modules(recorder, known);
    probe->stripes = recorder->header->stripes;
    probe->pool.recorder = recorder;
    probe->pool.shared.epoch = &recorder->header->epoch;
    probe->pool.shared.is_original = recorder->is_original;
    mr_store_relaxed(&probe->pool.shared.pid, probe->source.pid);
    return MR_OK;
}

/* Before the helper, which resolves names. */
static void find_addresses(struct mr_probe *probe)
{
    if (mr_load_relaxed(&probe->has_addresses))
        return;
    probe->has_names = !is_recorder(probe) &&
                       !probe->config.is_discarding && /* else nobody is called */
                       mr_endpoints_numeric(&probe->config.endpoints, probe->addresses,
                                            &probe->address_count, NULL) != MR_OK;
    if (!probe->has_names)
        mr_store_release(&probe->has_addresses, 1);
}

enum mr_status mr_probe_run(struct mr_probe *probe, struct mr_error *error)
{
    mr_own_fd_make_room();
    find_addresses(probe);
    /*
     * Not in a forked child: the loader's lock may be that of another thread of its parent, for ever. What came just before waits
     * for the helper, as what comes later does.
     */
    if (!probe->source.is_forked)
        (void)mr_changes_look(probe, false);
    if (!is_recorder(probe) && mr_writer_start(probe) != MR_OK)
        return mr_error_set(error, MR_ENOMEM, "no thread could be started");
    /* Without it, every event reads the counter. */
    if (probe->clock.mode == MR_CLOCK_MODE_HYBRID)
        (void)mr_tick_start(probe);
    /* Without the helper, late modules and names of hosts are not known; the rest is. */
    (void)mr_helper_start(probe);
    mr_store_release(&probe->is_running, 1);
    return MR_OK;
}

/* Before anything of the probe reads a clock. */
static void choose_clock(struct mr_probe *probe)
{
    struct mr_clock_facts facts;

    mr_clock_facts(&facts);
    mr_clock_choose(probe->config.clock, &facts, &probe->clock);
    if (is_recorder(probe) && probe->clock.mode == MR_CLOCK_MODE_HYBRID) {
        probe->clock.mode = MR_CLOCK_MODE_COUNTER;
        (void)strcpy(probe->clock.warning, "clock hybrid is not for policy overwrite: "
                                           "clock tsc is used");
    }
    probe->config.clock = probe->clock.mode;
    if (probe->clock.warning[0])
        say("", probe->clock.warning);
}

static bool is_running(const struct mr_probe *probe)
{
    return probe && mr_load_acquire(&probe->is_running);
}

static void record_from_now_on(struct mr_probe *probe)
{
    mr_store_relaxed(&probe->is_on, 1);
    mr_probe_set_active(true);
}

static void before_fork(void)
{
    if (!mr_probe)
        return;
    /* In the child, this thread is the main one, whichever it was. */
    if (mr_thread_self.start_address == 0 &&
        (uint32_t)syscall(SYS_gettid) == mr_probe->main_tid)
        mr_thread_self.start_address = mr_probe->main_address;
    mr_switch_before_fork(mr_probe);
    mr_own_threads_before_fork(mr_probe);
    mr_helper_before_fork(mr_probe);
    mr_changes_before_fork(&mr_probe->changes);
    mr_sites_before_fork();
}

static void after_fork_in_parent(void)
{
    if (!mr_probe)
        return;
    mr_sites_after_fork();
    mr_changes_after_fork(&mr_probe->changes, false);
    mr_helper_after_fork(mr_probe, false);
    mr_switch_after_fork(mr_probe, false);
}

static void forget_parent(struct mr_probe *probe)
{
    mr_changes_after_fork(&probe->changes, true);
    mr_helper_after_fork(probe, true);
    mr_switch_after_fork(probe, true);
    mr_control_after_fork(probe);
    mr_own_threads_after_fork(probe);
    mr_store_relaxed(&probe->is_running, 0);
    mr_store_relaxed(&probe->is_on, 0);
    mr_interpose_after_fork();
    mr_writer_after_fork(probe);
    mr_tick_after_fork(probe);
    mr_thread_after_fork(&mr_thread_self);
    mr_counters_after_fork(&probe->counters);
    mr_depth_after_fork(&probe->depth);
    mr_pool_after_fork(&probe->pool);
    mr_prune_after_fork(probe);
    probe->stripes = probe->own_stripes;
    memset(probe->own_stripes, 0, sizeof(probe->own_stripes));
    for (size_t i = 0; i < MR_LOSS_REASON_COUNT; i++)
        mr_store_relaxed(&probe->lost[i], 0);
    mr_named_after_fork(&probe->named);
    mr_store_relaxed(&probe->events_written, 0);
    mr_store_relaxed(&probe->events_acked, 0);
    mr_store_relaxed(&probe->events_discarded, 0);
    mr_store_relaxed(&probe->flush_wanted, 0);
    mr_store_relaxed(&probe->flush_done, 0);
    mr_store_relaxed(&probe->pool.shared.sleeping, 0);
    mr_store_relaxed(&probe->pool.shared.draining, 0);
}

/* Its own file; the named sites move there before the parent's goes. */
static enum mr_status begin_recorder_anew(struct mr_probe *probe, struct mr_error *error)
{
    struct mr_recorder parents = probe->recorder;
    enum mr_status status = start_recorder(probe, error);

    mr_recorder_abandon(&parents);
    return status;
}

static bool begin_anew(struct mr_probe *probe)
{
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status = identify(probe, true);

    if (status == MR_OK && is_recorder(probe))
        status = begin_recorder_anew(probe, &error);
    probe->is_unusable = status != MR_OK;
    return status == MR_OK;
}

/*
 * The child is a source of its own; calls that were open in its parent are unknown. It
 * records if its parent did, and has a control socket of its own if its parent had one.
 */
static void after_fork_in_child(void)
{
    struct mr_error error = MR_ERROR_NONE;
    bool was_active = mr_probe_enabled();

    if (!mr_probe)
        return;
    mr_sites_after_fork();
    mr_probe_set_active(false);
    forget_parent(mr_probe);
    if (begin_anew(mr_probe) && was_active && mr_probe_run(mr_probe, &error) == MR_OK)
        record_from_now_on(mr_probe);
    if (mr_probe->control && !mr_load_relaxed(&mr_probe->stop_wanted))
        (void)mr_control_start(mr_probe, &error);
}

static enum mr_status start(struct mr_probe *probe, struct mr_error *error)
{
    enum mr_status status = configure(probe, error);

    if (status != MR_OK)
        return status;
    choose_clock(probe);
    if (identify(probe, false) != MR_OK)
        return mr_error_set(error, MR_EIO, "no random numbers from the system");
    probe->main_tid = probe->source.pid;
    mr_own_fd_remember(&probe->error_output, STDERR_FILENO);
    start_counters(probe);
    start_depth(probe);
    mr_prune_start(probe, remark);
    learn_modules(probe);
    if (is_recorder(probe))
        status = start_recorder(probe, error);
    if (status != MR_OK)
        return status;
    mr_thread_key_init(probe);
    if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0)
        return mr_error_set(error, MR_ENOMEM, "out of memory");
    if (!mr_config_has_endpoint(&probe->config) && !is_recorder(probe))
        return MR_OK;
    status = mr_probe_run(probe, error);
    probe->is_whole = probe->config.starts_on;
    if (status == MR_OK && probe->config.starts_on)
        record_from_now_on(probe);
    return status;
}

static void start_control(struct mr_probe *probe)
{
    struct mr_error error = MR_ERROR_NONE;

    if (probe->config.is_controlled && mr_control_start(probe, &error) != MR_OK)
        say("not attachable: ", error.text);
}

static bool try_start(void)
{
    struct mr_error error = MR_ERROR_NONE;

    mr_probe = map_probe();
    if (!mr_probe)
        (void)mr_error_set(&error, MR_ENOMEM, "out of memory");
    else
        (void)start(mr_probe, &error);
    if (error.status != MR_OK) {
        mr_probe = NULL;
        say("not tracing: ", error.text);
    }
    return mr_probe != NULL;
}

static void start_if_wanted(void)
{
    if (!mr_config_is_wanted(environ) || !try_start()) {
        mr_sites_start(NULL, MR_SITES_NEUTRAL);
        return;
    }
    mr_sites_start(mr_probe,
                   mr_load_relaxed(&mr_probe->is_on) ? MR_SITES_ON : MR_SITES_OFF);
    start_control(mr_probe); /* requests find everything there */
}

MR_CONSTRUCTOR static void probe_start(void)
{
    int saved_errno = errno;

    /* Who starts a set-user-id program must not have it read files or connect for them. */
    if (getauxval(AT_SECURE) != 0 || mr_config_is_disabled(environ))
        mr_sites_start(NULL, MR_SITES_LEAVE);
    else
        start_if_wanted();
    errno = saved_errno;
}

static void wait_for_writer(struct mr_probe *probe)
{
    uint64_t deadline_ns;

    mr_store_relaxed(&probe->pool.shared.sleeping, 0);
    mr_futex_wake(&probe->pool.shared.sleeping);
    /* The writer keeps to the time-out itself; a little more for its last words. */
    deadline_ns = mr_clock_monotonic_ns() + probe->config.exit_timeout_ns + MR_SECOND_NS;
    while (!mr_load_acquire(&probe->stopped) && mr_clock_monotonic_ns() < deadline_ns)
        mr_futex_wait(&probe->stopped, 0, MR_SECOND_NS / 10);
}

/*
 * A destructor of the library runs after those of the program and after what it gave
 * to atexit(), so that their calls are still recorded.
 */
MR_DESTRUCTOR static void probe_end(void)
{
    struct mr_probe *probe = mr_probe;

    if (!probe || (uint32_t)syscall(SYS_getpid) != probe->source.pid)
        return;
    mr_switch_end(probe);
    mr_probe_set_active(false);
    mr_control_end(probe);
    mr_store_release(&probe->stop_wanted, 1);
    mr_futex_wake(&probe->stop_wanted);
    mr_recorder_end(&probe->recorder);
    if (is_running(probe) && !is_recorder(probe))
        wait_for_writer(probe);
}

static bool wait_for_flush(struct mr_probe *probe, uint32_t ticket, uint64_t deadline_ns)
{
    for (;;) {
        uint32_t done = mr_load_acquire(&probe->flush_done);
        uint64_t now_ns = mr_clock_monotonic_ns();

        if ((int32_t)(done - ticket) >= 0)
            return true;
        if (now_ns >= deadline_ns)
            return false;
        mr_futex_wait(&probe->flush_done, done, deadline_ns - now_ns);
    }
}

bool mr_probe_flush_within(struct mr_probe *probe, uint64_t timeout_ns)
{
    uint32_t ticket;

    if (is_recorder(probe)) /* keeps all that it has where it is */
        return false;
    ticket = mr_add_acq_rel(&probe->flush_wanted, 1) + 1;
    mr_store_relaxed(&probe->pool.shared.sleeping, 0);
    mr_futex_wake(&probe->pool.shared.sleeping);
    return wait_for_flush(probe, ticket, mr_clock_monotonic_ns() + timeout_ns);
}

MR_EXPORT int mr_probe_flush(uint32_t timeout_ms)
{
    int saved_errno = errno;
    bool is_done = is_running(mr_probe) &&
                   mr_probe_flush_within(mr_probe, timeout_ms * MR_MILLISECOND_NS);

    errno = saved_errno;
    return is_done ? 0 : -1;
}

/* What the writer has counted, and what rings' owners have not written yet. */
uint64_t mr_probe_lost(const struct mr_probe *probe, uint32_t reason)
{
    uint64_t sum =
        mr_load_relaxed(&probe->lost[reason]) + mr_probe_source_lost(probe, reason);
    struct mr_ring *ring = mr_load_acquire(&probe->pool.rings);

    for (; ring; ring = ring->next)
        sum += mr_load_relaxed(&ring->pending[reason]);
    return sum;
}

MR_EXPORT int mr_probe_stats(struct mr_probe_counts *stats)
{
    const struct mr_probe *probe = mr_probe;

    memset(stats, 0, sizeof(*stats));
    if (!is_running(probe))
        return -1;
    stats->events_written = mr_load_acquire(&probe->events_written);
    stats->events_acked = mr_load_acquire(&probe->events_acked);
    stats->events_discarded = mr_load_acquire(&probe->events_discarded);
    stats->lost_ring_full = mr_probe_lost(probe, MR_LOSS_RING_FULL);
    stats->lost_block_timeout = mr_probe_lost(probe, MR_LOSS_BLOCK_TIMEOUT);
    stats->lost_budget = mr_probe_lost(probe, MR_LOSS_BUDGET);
    stats->lost_nested = mr_probe_lost(probe, MR_LOSS_NESTED);
    stats->lost_exit = mr_probe_lost(probe, MR_LOSS_EXIT);
    return 0;
}

MR_EXPORT int mr_probe_link(struct mr_probe_link_info *info)
{
    const struct mr_probe *probe = mr_probe;

    memset(info, 0, sizeof(*info));
    if (!mr_probe_enabled())
        return -1;
    /* Relaxed: numbers for people, each for itself. */
    info->encoding = mr_encoding_name(mr_load_relaxed(&probe->link.encoding));
    info->reason = mr_encoding_reason_text(mr_load_relaxed(&probe->link.reason));
    info->changes = mr_load_relaxed(&probe->link.changes);
    info->events = mr_load_relaxed(&probe->link.events);
    info->bytes = mr_load_relaxed(&probe->link.bytes);
    info->encode_ns = mr_load_relaxed(&probe->link.encode_ns);
    return 0;
}
