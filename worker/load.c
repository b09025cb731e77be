/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/load.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/process.h"

/* Of what was gained since the last sample, the busiest thread's; a thread begins at a filter with a pipe. */
static uint64_t gain(uint64_t before[MR_GRAPH_NODES_MAX], const struct mr_graph *graph)
{
    struct mr_filter_stats stats[MR_GRAPH_NODES_MAX];
    uint32_t count = mr_graph_stats(graph, stats, MR_GRAPH_NODES_MAX), thread = 0;
    uint64_t now[MR_GRAPH_NODES_MAX] = {0}, most_ns = 0;

    for (uint32_t i = 0; i < count && i < MR_GRAPH_NODES_MAX; i++) {
        if (i > 0 && stats[i].pipe_capacity > 0)
            thread++;
        now[thread] += stats[i].busy_ns;
    }
    for (uint32_t i = 0; i <= thread; i++) {
        if (now[i] - before[i] > most_ns)
            most_ns = now[i] - before[i];
        before[i] = now[i];
    }
    return most_ns;
}

static double share(uint64_t part_ns, uint64_t whole_ns)
{
    double of_it = (double)part_ns / (double)whole_ns;

    return of_it > 1 ? 1 : of_it;
}

static double smooth(double before, double now, bool is_first)
{
    return is_first ? now : (before + now) / 2;
}

bool mr_worker_load_sample(struct mr_worker_load *load, struct mr_graph *const *graphs,
                           uint32_t graph_count, uint64_t now_ns)
{
    uint64_t since_ns = now_ns - load->sampled_ns, cpu_ns = mr_process_cpu_ns();
    bool is_first = load->sampled_ns == 0;
    uint32_t threads = load->lane_threads ? load->lane_threads : graph_count - 1;
    double lanes = 0, trunk = 0;

    MR_ASSERT(graph_count >= 2 && graph_count <= MR_WORKER_LOAD_PARTS);
    if (!is_first && since_ns < MR_SECOND_NS)
        return false;
    for (uint32_t i = 0; i < graph_count; i++) {
        double busy = share(gain(load->busy_ns[i], graphs[i]), since_ns);

        if (i + 1 == graph_count)
            trunk = busy;
        else
            lanes += busy / threads;
    }
    load->utilisation =
        smooth(load->utilisation, lanes > trunk ? lanes : trunk, is_first);
    load->process = smooth(
        load->process, share(cpu_ns - load->cpu_ns, since_ns * mr_process_processors()),
        is_first);
    load->cpu_ns = cpu_ns;
    load->sampled_ns = now_ns;
    return true;
}
