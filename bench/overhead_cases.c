/* SPDX-License-Identifier: Apache-2.0 */
/* What is measured: phases x doors x clocks at the point that the options give; peers; sweeps from there. */
#include "bench/overhead.h"

#include "bench/machine.h"
#include "bench/names.h"
#include "bench/probe_counters.h"
#include "bench/self_check.h"
#include "probe/ring.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define QUICK_CALLS 100000
#define QUICK_LOOPS 3
#define SWEEP_SHARE 10 /* a sweep's case makes 1/10 of the root calls */
#define SWEEP_NS 3e9   /* and no more than take about so long */
#define CALL_NS 60.0   /* a traced call, about */
#define LINK_MBIT 500  /* of the seed's cloud */
#define CALLS_LEAST 2000
#define PEERS_MAX 16

const char *const mr_phase_names[MR_PHASE_COUNT] = {
    "none", "inactive", "collecting", "writing", "reconstruction", "reduction"};

const struct mr_overhead_metric mr_overhead_metrics[MR_OVERHEAD_MEASURES] = {
#define MR_OVERHEAD_MEASURE(name, metric, unit) {metric, unit},
#include "bench/overhead_measures.def"
#undef MR_OVERHEAD_MEASURE
};

enum sweep { SWEEP_DEPTH, SWEEP_THREADS, SWEEP_METHOD, SWEEP_RING, SWEEP_LINK, SWEEPS };
static const char *const sweep_names[SWEEPS] = {"depth", "threads", "method", "ring",
                                                "link"};

/* What was chosen; variants: a bit for each of mr_variants, java: for each of mr_java_systems. */
struct choice {
    uint32_t phases, variants, clocks, java, sweeps;
};

static enum mr_status choose_peers(const char *text, struct choice *choice,
                                   struct mr_error *error)
{
    const char *names[PEERS_MAX] = {NULL};
    size_t count = 0, at[PEERS_MAX];
    uint32_t mask;
    enum mr_status status;

    for (size_t i = 0; i < mr_variant_count; i++)
        if (mr_variants[i].kind == MR_VARIANT_RIVAL) {
            at[count] = i;
            names[count++] = mr_variants[i].name;
        }
    for (size_t i = 0; i < mr_java_system_count; i++)
        if (mr_java_systems[i].is_peer) {
            at[count] = mr_variant_count + i;
            names[count++] = mr_java_systems[i].name;
        }
    status = mr_names_choose("--peer", text, names, count, &mask, error);
    for (size_t i = 0; i < count && status == MR_OK; i++)
        if (mask >> i & 1) {
            if (at[i] < mr_variant_count)
                choice->variants |= UINT32_C(1) << at[i];
            else
                choice->java |= UINT32_C(1) << (at[i] - mr_variant_count);
        }
    return status;
}

static enum mr_status choose(const struct mr_overhead_options *options,
                             struct choice *choice, struct mr_error *error)
{
    enum mr_status status;

    *choice = (struct choice){.phases = 0};
    status = mr_names_choose("--phase", options->phases, mr_phase_names, MR_PHASE_COUNT,
                             &choice->phases, error);
    if (status == MR_OK)
        status = mr_variants_choose("--door", options->doors, MR_VARIANT_DOOR,
                                    &choice->variants, error);
    if (status == MR_OK)
        status = mr_probe_clocks_choose(options->clocks, &choice->clocks, error);
    if (status == MR_OK)
        status = choose_peers(options->peers, choice, error);
    if (status == MR_OK)
        status = mr_names_choose("--sweep", options->sweeps, sweep_names, SWEEPS,
                                 &choice->sweeps, error);
    if (status == MR_OK && choice->clocks == 0)
        status = mr_error_set(error, MR_EUSAGE, "--clock: choose at least one");
    return status;
}

/* What is made of the times of single root calls. */
static enum mr_status check_timing(const struct mr_overhead_options *options,
                                   struct mr_error *error)
{
    if (options->timing == 0 || (!options->self_check && !options->raw))
        return MR_OK;
    return mr_error_set(error, MR_EUSAGE,
                        "%s needs the times of single root calls, and --timing whole "
                        "takes none: leave one of them out",
                        options->self_check ? "--self-check" : "--raw");
}

/* As the probe has it: there it would be a run that recorded nothing. */
static enum mr_status check_ring(const struct mr_overhead_options *options,
                                 struct mr_error *error)
{
    if (options->ring_bytes == 0 || (options->ring_bytes >= MR_RING_BYTES_MIN &&
                                     options->ring_bytes <= MR_RING_BYTES_MAX))
        return MR_OK;
    return mr_error_set(error, MR_EUSAGE,
                        "--ring-size: %" PRIu64 " is out of range (0, or 4K to 1G)",
                        options->ring_bytes);
}

enum mr_status mr_overhead_check(struct mr_overhead_options *options,
                                 struct mr_error *error)
{
    struct choice choice;
    enum mr_status status = choose(options, &choice, error);

    if (status == MR_OK)
        status = check_timing(options, error);
    if (status == MR_OK)
        status = check_ring(options, error);
    if (status == MR_OK)
        status = mr_probe_counters_check("--counters", options->counters, error);
    if (options->quick && options->calls > QUICK_CALLS)
        options->calls = QUICK_CALLS;
    if (options->quick && options->loops > QUICK_LOOPS)
        options->loops = QUICK_LOOPS;
    return status;
}

static void name_case(struct mr_overhead_case *which, const char *policy)
{
    const struct mr_overhead_point *point = &which->point;
    const char *system = which->java ? which->java->name : which->variant->name;
    const char *clock = which->clock ? which->clock->name : "none";
    char extra[48] = "";

    if (which->java)
        clock = which->java->clock;
    else if (which->variant->kind == MR_VARIANT_RIVAL)
        clock = which->variant->clock;
    if (which->java || which->variant->kind != MR_VARIANT_DOOR ||
        which->phase < MR_PHASE_COLLECTING)
        policy = which->java ? which->java->policy : "none";
    if (point->ring_bytes > 0)
        (void)snprintf(extra, sizeof(extra), "-r%" PRIu64 "k", point->ring_bytes / 1024);
    if (point->is_slow_link)
        (void)snprintf(extra + strlen(extra), sizeof(extra) - strlen(extra), "-%dmbit",
                       LINK_MBIT);
    (void)snprintf(which->name, sizeof(which->name),
                   "%s/%s%s/%s/%s/d%" PRIu64 "-t%" PRIu64 "-m%" PRIu64 "%s",
                   mr_phase_names[which->phase], system,
                   which->added_ns > 0 ? "-self-check" : "", clock, policy, point->depth,
                   point->threads, point->method_ns, extra);
}

static enum mr_status add_case(struct mr_overhead_bench *bench,
                               const struct mr_overhead_case *which)
{
    static const char *const policies[] = {"block", "drop"};
    struct mr_overhead_case *added = &bench->cases[bench->case_count];

    if (bench->case_count == MR_OVERHEAD_CASES_MAX)
        return MR_ELIMIT;
    *added = *which;
    name_case(added, policies[bench->options.policy]);
    for (size_t i = 0; i < bench->case_count; i++)
        if (strcmp(bench->cases[i].name, added->name) == 0)
            return MR_OK; /* a sweep's point that is there already */
    bench->case_count++;  /* freed with the bench */
    added->spread = mr_spread_new();
    for (int i = 0; i < MR_OVERHEAD_MEASURES; i++) {
        added->values[i] = malloc(bench->options.loops * sizeof(double));
        if (!added->values[i] || !added->spread)
            return MR_ENOMEM;
        for (uint64_t loop = 0; loop < bench->options.loops; loop++)
            added->values[i][loop] = (double)NAN;
    }
    return MR_OK;
}

void mr_overhead_free_cases(struct mr_overhead_bench *bench)
{
    for (size_t i = 0; i < bench->case_count; i++) {
        mr_spread_free(bench->cases[i].spread);
        for (int j = 0; j < MR_OVERHEAD_MEASURES; j++)
            free(bench->cases[i].values[j]);
    }
}

/* Built where it is not yet; told and left out where it cannot be. *is_there says. */
static enum mr_status need(struct mr_overhead_bench *bench,
                           const struct mr_variant *variant, bool *is_there)
{
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status = mr_overhead_build(bench, variant, &error);

    *is_there = status == MR_OK;
    if (status == MR_OK || status == MR_END)
        return status;
    mr_bench_report_skip(&bench->report, "%s: %s", variant->name, error.text);
    return MR_OK;
}

/* `none` needs a program without a tracer, `inactive` is one with a door that is off. */
static enum mr_status add_phases(struct mr_overhead_bench *bench, uint32_t phases,
                                 uint32_t clocks, struct mr_overhead_case which)
{
    const struct mr_variant *door = which.variant;
    enum mr_status status = MR_OK;

    for (int phase = 0; phase < MR_PHASE_COUNT && status == MR_OK; phase++) {
        if (!(phases >> phase & 1))
            continue;
        which.phase = (enum mr_phase)phase;
        which.variant = phase == MR_PHASE_NONE ? mr_variant_plain(door) : door;
        which.clock = NULL;
        if (phase < MR_PHASE_COLLECTING) {
            status = add_case(bench, &which);
            continue;
        }
        for (size_t i = 0; i < mr_probe_clock_count && status == MR_OK; i++) {
            which.clock = &mr_probe_clocks[i];
            if (clocks >> i & 1)
                status = add_case(bench, &which);
        }
    }
    return status;
}

static uint64_t calls_of(const struct mr_overhead_bench *bench,
                         const struct mr_overhead_point *point)
{
    double each_ns = (double)point->method_ns + (double)point->depth * CALL_NS;
    double calls = (double)bench->options.calls / SWEEP_SHARE;

    calls = fmin(calls, SWEEP_NS / each_ns);
    return calls > CALLS_LEAST ? (uint64_t)calls : CALLS_LEAST;
}

/* What is sent nowhere knows no link. */
static const uint32_t linked_phases =
    UINT32_C(1) << MR_PHASE_WRITING | UINT32_C(1) << MR_PHASE_REDUCTION;

static enum mr_status add_point(struct mr_overhead_bench *bench,
                                const struct choice *choice,
                                const struct mr_variant *door,
                                struct mr_overhead_point point)
{
    static const uint32_t swept = UINT32_C(1) << MR_PHASE_NONE |
                                  UINT32_C(1) << MR_PHASE_COLLECTING |
                                  UINT32_C(1) << MR_PHASE_REDUCTION;
    uint32_t phases = choice->phases & swept;
    struct mr_overhead_case which = {.variant = door, .is_swept = true};

    if (point.is_slow_link)
        phases = choice->phases & linked_phases;
    if (point.ring_bytes > 0)
        phases &= ~(UINT32_C(1) << MR_PHASE_NONE);
    if (!point.is_slow_link) /* there buffers hold what a few calls make */
        point.calls = calls_of(bench, &point);
    which.point = point;
    return add_phases(bench, phases, choice->clocks, which);
}

static enum mr_status add_link(struct mr_overhead_bench *bench,
                               const struct choice *choice, const struct mr_variant *door,
                               struct mr_overhead_point point)
{
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status;

    if (!(choice->phases & linked_phases)) {
        mr_bench_report_skip(&bench->report, "sweep link: nothing is sent in the phases "
                                             "chosen; writing and reduction do");
        return MR_OK;
    }
    status = bench->link.is_up ? MR_OK : mr_link_up(&bench->link, LINK_MBIT, &error);
    if (status == MR_END)
        return MR_END;
    if (status != MR_OK) {
        mr_bench_report_skip(&bench->report,
                             "sweep link: no slow link can be made here: %s", error.text);
        return MR_OK;
    }
    point.is_slow_link = true;
    return add_point(bench, choice, door, point);
}

/* Each sweep from the point of the options, which is measured anyway. */
static enum mr_status add_sweeps(struct mr_overhead_bench *bench,
                                 const struct choice *choice,
                                 const struct mr_variant *door,
                                 struct mr_overhead_point base)
{
    static const uint64_t depths[] = {1, 2, 5, 10, 20, 50, 100};
    static const uint64_t methods[] = {0, 100, 1000, 10000, 100000};
    static const uint64_t rings[] = {16, 64, 256, 1024, 4096}; /* KiB */
    struct mr_overhead_point point = base;
    enum mr_status status = MR_OK;

    for (size_t i = 0; choice->sweeps >> SWEEP_DEPTH & 1 && i < MR_ARRAY_COUNT(depths) &&
                       status == MR_OK;
         i++, point = base) {
        point.depth = depths[i];
        status = add_point(bench, choice, door, point);
    }
    for (uint64_t threads = 1;
         choice->sweeps >> SWEEP_THREADS & 1 &&
         threads <= 2 * (uint64_t)mr_machine_cpus() && status == MR_OK;
         threads *= 2, point = base) {
        point.threads = threads;
        status = add_point(bench, choice, door, point);
    }
    for (size_t i = 0; choice->sweeps >> SWEEP_METHOD & 1 &&
                       i < MR_ARRAY_COUNT(methods) && status == MR_OK;
         i++, point = base) {
        point.method_ns = methods[i];
        status = add_point(bench, choice, door, point);
    }
    for (size_t i = 0;
         choice->sweeps >> SWEEP_RING & 1 && i < MR_ARRAY_COUNT(rings) && status == MR_OK;
         i++, point = base) {
        point.ring_bytes = rings[i] * 1024;
        status = add_point(bench, choice, door, point);
    }
    if (choice->sweeps >> SWEEP_LINK & 1 && status == MR_OK)
        status = add_link(bench, choice, door, base);
    return status;
}

static enum mr_status add_door(struct mr_overhead_bench *bench,
                               const struct choice *choice,
                               const struct mr_variant *variant,
                               const struct mr_overhead_point *point)
{
    struct mr_overhead_case which = {.variant = variant, .point = *point};
    bool is_there = false, has_plain = false;
    enum mr_status status = need(bench, variant, &is_there);

    if (status == MR_OK && is_there)
        status = need(bench, mr_variant_plain(variant), &has_plain);
    if (status != MR_OK || !is_there || !has_plain)
        return status;
    if (variant->kind == MR_VARIANT_RIVAL) {
        status = add_phases(bench, choice->phases & UINT32_C(1) << MR_PHASE_NONE, 0,
                            which); /* of its compiler */
        which.phase = MR_PHASE_WRITING;
        return status == MR_OK ? add_case(bench, &which) : status;
    }
    status = add_phases(bench, choice->phases, choice->clocks, which);
    return status == MR_OK ? add_sweeps(bench, choice, variant, *point) : status;
}

/* The untraced program in Java stands beside those that are monitored. */
static enum mr_status add_java(struct mr_overhead_bench *bench,
                               const struct choice *choice,
                               const struct mr_overhead_point *point)
{
    enum mr_status status = MR_OK;

    for (size_t i = 0; i < mr_java_system_count && status == MR_OK; i++) {
        const struct mr_java_system *system = &mr_java_systems[i];
        struct mr_overhead_case which = {.java = system,
                                         .phase = system->is_peer ? MR_PHASE_WRITING
                                                                  : MR_PHASE_NONE,
                                         .point = *point};
        struct mr_error error = MR_ERROR_NONE;

        if (choice->java == 0 || (system->is_peer && !(choice->java >> i & 1)))
            continue;
        status = mr_java_prepare(&bench->java, system, &error);
        if (status == MR_OK) {
            status = add_case(bench, &which);
        } else if (status != MR_END) {
            mr_bench_report_skip(&bench->report, "%s: %s", system->name, error.text);
            status = MR_OK;
        }
    }
    return status;
}

/* Each phase twice: as it is, and with the time that is added. `none` needs no door that can be had. */
static enum mr_status add_self_check(struct mr_overhead_bench *bench,
                                     const struct choice *choice,
                                     const struct mr_overhead_point *point)
{
    struct mr_overhead_case which = {.variant = &mr_variants[0], .point = *point};
    uint32_t none = choice->phases & UINT32_C(1) << MR_PHASE_NONE;
    bool is_there = false;
    enum mr_status status = need(bench, which.variant, &is_there);

    for (int added = 0; added < 2 && is_there && status == MR_OK; added++) {
        which.added_ns = added ? MR_SELF_CHECK_NS : 0;
        status = add_phases(bench, none, 0, which);
    }
    for (size_t i = 0; i < mr_variant_count && status == MR_OK; i++) {
        which.variant = &mr_variants[i];
        is_there = false;
        if (choice->variants >> i & 1 && which.variant->kind == MR_VARIANT_DOOR)
            status = need(bench, which.variant, &is_there);
        for (int added = 0; added < 2 && is_there && status == MR_OK; added++) {
            which.added_ns = added ? MR_SELF_CHECK_NS : 0;
            status = add_phases(bench, choice->phases & ~none, choice->clocks, which);
        }
    }
    return status;
}

enum mr_status mr_overhead_add_all(struct mr_overhead_bench *bench,
                                   struct mr_error *error)
{
    const struct mr_overhead_options *options = &bench->options;
    const struct mr_overhead_point point = {.depth = options->depth,
                                            .threads = options->threads,
                                            .method_ns = options->method_ns,
                                            .ring_bytes = options->ring_bytes,
                                            .calls = options->calls};
    struct choice choice;
    enum mr_status status = choose(options, &choice, error);

    mr_probe_clocks_leave_out(&choice.clocks, mr_machine_cpus(), &bench->report);
    mr_probe_counters_leave_out(options->counters, &bench->report);
    if (status == MR_OK && options->self_check)
        return add_self_check(bench, &choice, &point);
    for (size_t i = 0; i < mr_variant_count && status == MR_OK; i++)
        if (choice.variants >> i & 1)
            status = add_door(bench, &choice, &mr_variants[i], &point);
    return status == MR_OK ? add_java(bench, &choice, &point) : status;
}
