/* SPDX-License-Identifier: Apache-2.0 */
/* What a report says of clocks: how near to the truth its times are. */
#include "cli/render.h"
#include "cli/summary_private.h"
#include "net/encoding.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sources with something to be told; of more, --json tells. */
#define SOURCES_MAX 5
/* A drift that is worth a line. */
#define DRIFT_NS ((long long)1000000)

static uint64_t number_of(const struct mr_summary_clock *clock, enum mr_note note)
{
    return clock->notes[note] ? strtoull(clock->notes[note], NULL, 10) : 0;
}

static bool has_drifted(const struct mr_summary_clock *clock)
{
    const char *text = clock->notes[MR_NOTE_DRIFT_NS];

    return text && llabs(strtoll(text, NULL, 10)) >= DRIFT_NS;
}

const char *mr_summary_time(const struct mr_summary *summary, uint64_t ns, uint64_t calls,
                            char text[MR_RENDER_SIZE])
{
    char bound[MR_RENDER_SIZE];
    bool is_below = calls == 1 ? ns < summary->tick_ns : ns == 0;

    if (summary->tick_ns == 0 || calls == 0 || !is_below)
        return mr_render_ns(ns, text);
    calls = calls > UINT64_MAX / summary->tick_ns ? 1 : calls;
    (void)snprintf(text, MR_RENDER_SIZE, "<= %s",
                   mr_render_ns(calls * summary->tick_ns, bound));
    return text;
}

static enum mr_status put_source(const struct mr_summary_source *row,
                                 struct mr_buffer *out)
{
    return mr_render_line(out, "Clock     %s[%" PRIu32 "]: ", row->app, row->pid);
}

static enum mr_status put_hybrid(const struct mr_summary_clock *clock,
                                 struct mr_buffer *out)
{
    char tick[MR_RENDER_SIZE], gap[MR_RENDER_SIZE], longest[MR_RENDER_SIZE];
    char spent[MR_RENDER_SIZE];
    enum mr_status status = mr_buffer_append_format(
        out,
        "hybrid, ticks of %s: a time is early by up to a tick and a duration off by one, "
        "sums are nearer",
        mr_render_ns(number_of(clock, MR_NOTE_TICK_NS), tick));

    if (status == MR_OK && clock->notes[MR_NOTE_TICK_GAP_MAX_NS])
        status = mr_buffer_append_format(
            out, "; 99 %% of the time ticks came within %s, the longest gap was %s",
            mr_render_ns(number_of(clock, MR_NOTE_TICK_GAP_P99_NS), gap),
            mr_render_ns(number_of(clock, MR_NOTE_TICK_GAP_MAX_NS), longest));
    /* 0: it was told before the system had counted any. */
    if (status == MR_OK && number_of(clock, MR_NOTE_TICKER_CPU_NS))
        status = mr_buffer_append_format(
            out, "; the ticker took %s of a processor",
            mr_render_ns(number_of(clock, MR_NOTE_TICKER_CPU_NS), spent));
    return status == MR_OK ? mr_buffer_append_byte(out, '\n') : status;
}

static enum mr_status put_drift(const struct mr_summary_clock *clock,
                                struct mr_buffer *out)
{
    long long drift = strtoll(clock->notes[MR_NOTE_DRIFT_NS], NULL, 10);
    char text[MR_RENDER_SIZE];

    return mr_buffer_append_format(out,
                                   "the wall clock has moved %s %s against it: wall "
                                   "times follow, durations do not\n",
                                   mr_render_ns((uint64_t)llabs(drift), text),
                                   drift > 0 ? "ahead" : "back");
}

static enum mr_status put_depth(const struct mr_summary_source *row,
                                struct mr_buffer *out)
{
    const struct mr_summary_clock *told = &row->clock;
    char text[MR_RENDER_SIZE];

    return mr_render_line(
        out,
        "Depth     %s[%" PRIu32 "]: depth limit %" PRIu64 ": %s calls below it were made "
        "and not recorded; their time is in the calls that made them\n",
        row->app, row->pid, number_of(told, MR_NOTE_DEPTH_LIMIT),
        told->notes[MR_NOTE_DEPTH_SKIPPED]
            ? mr_render_count(number_of(told, MR_NOTE_DEPTH_SKIPPED), text)
            : "unknown");
}

/* On its own host a source sends words as they are: not worth a line. */
static bool is_encoded(const struct mr_summary_clock *told)
{
    const char *encoding = told->notes[MR_NOTE_ENCODING];

    return encoding && strcmp(encoding, mr_encoding_name(MR_ENCODING_WORDS)) != 0;
}

static enum mr_status put_link(const struct mr_summary_source *row, struct mr_buffer *out)
{
    const char *reason = row->clock.notes[MR_NOTE_ENCODING_REASON];

    return mr_render_line(out, "Link      %s[%" PRIu32 "] sends %s: %s\n", row->app,
                          row->pid, row->clock.notes[MR_NOTE_ENCODING],
                          reason ? reason : "it does not say why");
}

static enum mr_status put_one(const struct mr_summary_source *row, struct mr_buffer *out)
{
    const struct mr_summary_clock *clock = &row->clock;
    char text[MR_RENDER_SIZE];
    enum mr_status status = MR_OK;

    if (clock->notes[MR_NOTE_CLOCK_WARNING]) {
        status = put_source(row, out);
        if (status == MR_OK)
            status = mr_render_line(out, "%s\n", clock->notes[MR_NOTE_CLOCK_WARNING]);
    }
    if (status == MR_OK && number_of(clock, MR_NOTE_TICK_NS) > 0) {
        status = put_source(row, out);
        if (status == MR_OK)
            status = put_hybrid(clock, out);
    }
    if (status == MR_OK && number_of(clock, MR_NOTE_TIMES_CLAMPED) > 0) {
        status = put_source(row, out);
        if (status == MR_OK)
            status = mr_buffer_append_format(
                out, "%s times ran back (signal handlers) and were clamped\n",
                mr_render_count(number_of(clock, MR_NOTE_TIMES_CLAMPED), text));
    }
    if (status == MR_OK && has_drifted(clock)) {
        status = put_source(row, out);
        if (status == MR_OK)
            status = put_drift(clock, out);
    }
    if (status == MR_OK && number_of(clock, MR_NOTE_DEPTH_LIMIT) > 0)
        status = put_depth(row, out);
    if (status == MR_OK && is_encoded(clock))
        status = put_link(row, out);
    return status;
}

static bool is_worth_telling(const struct mr_summary_clock *clock)
{
    return clock->notes[MR_NOTE_CLOCK_WARNING] || number_of(clock, MR_NOTE_TICK_NS) > 0 ||
           number_of(clock, MR_NOTE_TIMES_CLAMPED) > 0 || has_drifted(clock) ||
           number_of(clock, MR_NOTE_DEPTH_LIMIT) > 0 || is_encoded(clock);
}

enum mr_status mr_summary_put_clocks(const struct mr_summary *summary,
                                     struct mr_buffer *out)
{
    size_t told = 0, more = 0;
    enum mr_status status = MR_OK;

    for (size_t i = 0; i < summary->source_count && status == MR_OK; i++) {
        if (!is_worth_telling(&summary->sources[i].clock))
            continue;
        if (told++ < SOURCES_MAX)
            status = put_one(&summary->sources[i], out);
        else
            more++;
    }
    if (status == MR_OK && more > 0)
        status = mr_buffer_append_format(
            out, "Clock     and %zu more sources: --json tells of each\n", more);
    return status;
}
