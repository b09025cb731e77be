/* SPDX-License-Identifier: Apache-2.0 */
#include "support_events.h"

#include "../unit_test.h"

#include <string.h>

char *test_events_text(const struct test_lane *lane)
{
    char *text = calloc(1, 1 << 20);
    size_t size = 0;

    for (const struct mr_batch *batch = lane->out->first; batch; batch = batch->next)
        for (uint32_t i = 0; batch->kind == MR_BATCH_EVENTS && i < batch->event_count;
             i++) {
            const struct mr_event *event = &batch->events[i];
            const char *space = size ? " " : "";
            char flags[8] = "";
            uint32_t site = 0, count = 0;

            for (int bit = 0; bit < 6; bit++)
                if (event->flags & 1 << bit && event->kind != MR_EVENT_COUNTED)
                    flags[count++] = "orfiwu"[bit];
            if (event->kind == MR_EVENT_OPEN || event->kind == MR_EVENT_CLOSE)
                site = (uint32_t)mr_sites_at(lane->sites, event->site)->offset / 16;
            switch (event->kind) {
            case MR_EVENT_OPEN:
            case MR_EVENT_CLOSE:
                size += (size_t)sprintf(text + size, "%s%c%u%s", space,
                                        event->kind == MR_EVENT_OPEN ? '+' : '-', site,
                                        flags);
                break;
            case MR_EVENT_COUNTED:
                if (event->flags)
                    size += (size_t)sprintf(text + size, "%s!%u:%" PRIu64, space,
                                            event->flags, event->ns);
                else
                    size += (size_t)sprintf(text + size, "%s#%" PRIu64, space, event->ns);
                break;
            case MR_EVENT_STATUS:
                size +=
                    (size_t)sprintf(text + size, "%s%c", space, event->site ? 'F' : 'O');
                break;
            case MR_EVENT_TRACE_BROKEN:
                size += (size_t)sprintf(text + size, "%sB", space);
                break;
            case MR_EVENT_TRACE_PRUNED:
                size += (size_t)sprintf(text + size, "%sP", space);
                break;
            case MR_EVENT_LANDED_IN: /* nothing but marks tell of it */
            case MR_EVENT_LINK:      /* at a loss; see test_links.c */
                break;
            case MR_EVENT_LEARNED:
                size += (size_t)sprintf(text + size, "%sL", space);
                break;
            case MR_EVENT_STREAM_END:
                size += (size_t)sprintf(text + size, "%s.", space);
                break;
            default:
                fail_msg("kind %u", event->kind);
            }
        }
    return text;
}

/* "3:7,2:6/1:5^,4:0": frames of f3 and f2 were left, it goes on in one of f1; ^: all above it was left, too. */
static void write_landing(struct test_lane *lane, uint64_t ns, const char *text)
{
    uint64_t frames[MR_LANDING_WORDS_MAX];
    uint32_t count = 0, left = UINT32_MAX;

    while (*text && *text != ' ') {
        char *end;
        uint32_t function, tag;

        if (*text == '/')
            left = count;
        text += *text == '/' || *text == ',';
        if (*text == '\0' || *text == ' ')
            break;
        function = (uint32_t)strtoul(text, &end, 10);
        tag = (uint32_t)strtoul(end + 1, &end, 10);
        frames[count++] =
            test_lane_frame(function, tag, *end == '^' ? MR_LANDING_ABOVE : 0);
        text = end + (*end == '^');
    }
    test_lane_landing(lane, 1, ns, left < count ? left : count, frames, count);
}

void test_events_write(struct test_lane *lane, const char *text)
{
    uint64_t ns = lane->streams[1].time;
    unsigned a, b, c;

    for (; *text; text += strcspn(text, " "), text += *text == ' ') {
        ns++;
        if (sscanf(text, "+%u", &a) == 1) {
            test_lane_enter(lane, 1, a, ns);
        } else if (sscanf(text, "-%u", &a) == 1) {
            test_lane_exit(lane, 1, a, ns);
        } else if (sscanf(text, "s%u", &a) == 1) {
            test_lane_status(lane, 1, ns, a);
        } else if (*text == '=') { /* the next one is of the time of the one before */
            ns -= 2;
        } else if (*text == 'L') {
            write_landing(lane, ns, text + 1);
        } else if (sscanf(text, "u%u", &a) == 1) {
            test_lane_unwind(lane, 1, ns, a);
        } else if (sscanf(text, "l%u,%u,%u", &a, &b, &c) == 3) {
            test_lane_loss(lane, 1, ns, a, MR_LOSS_RING_FULL, b, c);
        } else if (sscanf(text, "p%u", &a) == 1) {
            test_lane_prune(lane, 1, a, ns, 0);
        } else if (sscanf(text, "P%u", &a) == 1) {
            test_lane_prune(lane, 1, a, ns, MR_PRUNE_SETTLED);
        } else if (sscanf(text, "q%u", &a) == 1) {
            test_lane_prune(lane, 1, a, ns, MR_PRUNE_SETTLED | MR_PRUNE_ON_AGAIN);
        } else if (sscanf(text, "c%u", &a) == 1) {
            test_lane_record(lane, 1, MR_RECORD_CUT, ns, &(const uint64_t){a}, 1);
        } else if (sscanf(text, "g%u", &a) == 1) {
            test_lane_send(lane, 1, 0);
            test_lane_gap(lane, 1, a);
        } else if (sscanf(text, "t%u", &a) == 1) {
            ns += a * MR_SECOND_NS;
        } else {
            assert_int_equal(*text, '|');
            test_lane_send(lane, 1, 0);
        }
    }
}

void test_events_end(struct test_lane *lane, const char *expected)
{
    char *actual;

    test_lane_send(lane, 1, 0);
    test_lane_end(lane);
    assert_false(mr_source_is_broken(lane->source));
    actual = test_events_text(lane);
    assert_string_equal(actual, expected);
    free(actual);
    test_lane_fini(lane);
}

void test_events_expect_with(const struct mr_reconstruct_config *config, uint32_t start,
                             const char *events, const char *expected)
{
    struct test_options options = {.stages = 2, .reconstruct = config};
    struct test_lane lane;

    test_lane_init(&lane, &options);
    test_lane_announce(&lane, 1, start);
    test_events_write(&lane, events);
    test_events_end(&lane, expected);
}

void test_events_expect(const char *events, const char *expected)
{
    test_events_expect_with(NULL, 0, events, expected);
}

char *test_events_repeat(const char *head, const char *unit, int count, const char *tail)
{
    char *text =
        calloc(1, strlen(head) + (size_t)count * strlen(unit) + strlen(tail) + 1);

    strcpy(text, head);
    for (int i = 0; i < count; i++)
        strcat(text, unit);
    return strcat(text, tail);
}

void test_events_expect_repeated(const char *head, const char *unit, int count,
                                 const char *tail, const char *head_out,
                                 const char *unit_out, const char *tail_out)
{
    char *events = test_events_repeat(head, unit, count, tail);
    char *expected = test_events_repeat(head_out, unit_out, count, tail_out);

    test_events_expect(events, expected);
    free(events);
    free(expected);
}
