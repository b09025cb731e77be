/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field         written by      read by     access
 * number        ticker, writer; any thread  relaxed: a hint by itself; what a thread
 *               forked child,               believes of it is bounded by MR_TICK_EVENTS
 *               end
 * stale_ticks,  ticker, once    any thread  relaxed: 0 before, then each read is alone
 *  pace_ticks
 * wanted,       writer; ticker  both        sequentially consistent with each other
 *  sleeping                                 (Dekker); a wake-up that is missed costs
 *                                           SLEEP_NS of precise times
 * cpu_ns, given ticker          writer      relaxed: a sum; a hint
 * own           ticker          writer      relaxed: sums, each for itself
 * beats         writer          writer
 * tid           ticker          writer      relaxed: 0 before its thread ends
 * place         writer          writer
 * Progress: nobody waits for the ticker. Checked by: tests/race/test_tick.c
 */
#include "probe/tick.h"

#include "probe/futex.h"
#include "probe/registry.h"

#include <time.h>
#include <unistd.h>

/* Numbers between two looks at the rest of the world: a millisecond. */
#define BURST (MR_MILLISECOND_NS / MR_TICK_NS)
/* Without an event for so many bursts, the ticker sleeps. */
#define BURSTS_IDLE_MAX 20
#define SLEEP_NS MR_SECOND_NS
/* Long enough for the length of a tick; times are made with the rate of probe/clock.h. */
#define PERIOD_NS MR_MILLISECOND_NS

/* `last` is the time of our last number; that of the new last one. */
static uint64_t burst(struct mr_ticker *ticker, uint64_t period, uint64_t last)
{
    uint64_t now = mr_clock_ticks();

    for (uint32_t i = 0; i < BURST; i++) {
        while (now - last < period) {
            mr_cpu_relax();
            now = mr_clock_ticks();
        }
        mr_tick_publish(&ticker->own, now);
        mr_store_relaxed(&ticker->given, now);
        last = now;
    }
    return last;
}

static void note_cpu(struct mr_ticker *ticker)
{
    struct timespec spent = {0, 0};

    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent) == 0)
        mr_store_relaxed(&ticker->cpu_ns,
                         (uint64_t)spent.tv_sec * MR_SECOND_NS + (uint64_t)spent.tv_nsec);
}

static void sleep_until_wanted(struct mr_ticker *ticker)
{
    mr_store_relaxed(&mr_tick.number, MR_TICK_NONE);
    mr_store_seq_cst(&ticker->sleeping, 1);
    if (!mr_load_seq_cst(&ticker->wanted))
        mr_futex_wait(&ticker->wanted, 0, SLEEP_NS);
    mr_store_relaxed(&ticker->sleeping, 0);
}

void mr_tick_want(struct mr_ticker *ticker)
{
    if (mr_load_relaxed(&ticker->wanted))
        return;
    mr_store_seq_cst(&ticker->wanted, 1);
    if (mr_load_seq_cst(&ticker->sleeping))
        mr_futex_wake(&ticker->wanted);
}

void mr_tick_keep_off(struct mr_ticker *ticker, const struct mr_cpu_mask *busy,
                      uint64_t now_ns)
{
    int32_t tid = mr_load_relaxed(&ticker->tid);

    if (tid == 0)
        return;
    mr_place_begin_of(&ticker->place, tid);
    ticker->place.busy = *busy;
    mr_place_settle(&ticker->place, now_ns);
}

/* Ticks in MR_TICK_NS. Takes PERIOD_NS from the start on; 0 when stopped before. */
static uint64_t measure_period(struct mr_probe *probe)
{
    const struct mr_clock_sample *first = &probe->source.first_sample;
    struct mr_clock_info info = {.kind = MR_CLOCK_TSC};
    struct mr_clock_sample sample;

    for (;;) {
        mr_clock_sample(probe->clock.mode, &sample);
        if (sample.raw_ns - first->raw_ns >= PERIOD_NS)
            break;
        if (mr_load_acquire(&probe->stop_wanted)) /* [C] of helper.c */
            return 0;
        mr_futex_wait(&probe->stop_wanted, 0, PERIOD_NS);
    }
    mr_clock_calibrate(probe->clock.mode, first, &sample, &info);
    return ((uint64_t)MR_TICK_NS << info.shift) / info.mult;
}

static void tick(struct mr_probe *probe, uint64_t period)
{
    struct mr_ticker *ticker = &probe->ticker;
    uint64_t last = mr_clock_ticks();
    uint32_t bursts_idle = 0;

    while (!mr_load_acquire(&probe->stop_wanted)) {
        if (mr_load_relaxed(&ticker->wanted)) {
            mr_store_relaxed(&ticker->wanted, 0);
            bursts_idle = 0;
        }
        if (bursts_idle++ < BURSTS_IDLE_MAX) {
            last = burst(ticker, period, last);
        } else {
            sleep_until_wanted(ticker);
            last = mr_clock_ticks(); /* meanwhile every event read the counter itself */
        }
        note_cpu(ticker);
    }
}

static void *ticker_main(void *argument)
{
    struct mr_probe *probe = argument;
    uint64_t period;

    mr_own_thread_begin(probe, "millrace-clock");
    mr_place_yield_to_all();
    period = measure_period(probe);
    if (period > 0) {
        mr_store_relaxed(&mr_tick.pace_ticks, period * MR_TICK_PACE_NS / MR_TICK_NS);
        mr_store_relaxed(&mr_tick.stale_ticks, 2 * period);
        mr_store_relaxed(&probe->ticker.tid, (int32_t)gettid());
        tick(probe, period);
        mr_store_relaxed(&probe->ticker.tid, 0);
    }
    mr_store_relaxed(&mr_tick.number, MR_TICK_NONE);
    mr_own_thread_end(probe);
    return NULL;
}

enum mr_status mr_tick_start(struct mr_probe *probe)
{
    mr_store_relaxed(&mr_tick.number, MR_TICK_NONE);
    return mr_own_thread(probe, ticker_main);
}

static void forget(struct mr_tick_gaps *gaps)
{
    mr_store_relaxed(&gaps->count, 0);
    mr_store_relaxed(&gaps->max, 0);
    for (uint32_t i = 0; i < MR_TICK_BUCKETS; i++)
        mr_store_relaxed(&gaps->spent[i], 0);
}

void mr_tick_after_fork(struct mr_probe *probe)
{
    mr_store_relaxed(&mr_tick.number, MR_TICK_NONE);
    mr_store_relaxed(&probe->ticker.wanted, 0);
    mr_store_relaxed(&probe->ticker.sleeping, 0);
    mr_store_relaxed(&probe->ticker.tid, 0);
    mr_store_relaxed(&probe->ticker.cpu_ns, 0);
    mr_store_relaxed(&probe->ticker.given, 0);
    forget(&probe->ticker.own);
    forget(&probe->ticker.beats);
}
