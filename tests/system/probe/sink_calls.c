/* SPDX-License-Identifier: Apache-2.0 */
#include "sink_calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SITES_MAX 1024 /* a power of two */

struct site {
    uint32_t site; /* 0: none */
    bool is_loose;
    uint64_t enters, exits, no_exit, no_enter;
};

struct stack {
    struct site **open;
    uint32_t count, capacity;
};

static struct {
    bool is_wanted;
    struct site sites[SITES_MAX];
    struct stack stacks[SINK_STREAMS_MAX];
} calls;

static struct site *site_of(uint32_t number)
{
    uint32_t i = number * UINT32_C(2654435761) % SITES_MAX;

    for (uint32_t tries = 0; calls.sites[i].site && calls.sites[i].site != number;
         tries++) {
        if (tries == SITES_MAX)
            abort();
        i = (i + 1) % SITES_MAX;
    }
    calls.sites[i].site = number;
    return &calls.sites[i];
}

void sink_calls_start(const char *loose)
{
    char *end;

    calls.is_wanted = true;
    while (*loose) {
        site_of((uint32_t)strtoul(loose, &end, 0))->is_loose = true;
        loose = *end ? end + 1 : end;
    }
}

bool sink_calls_are_wanted(void)
{
    return calls.is_wanted;
}

static void push(struct stack *stack, struct site *site)
{
    if (stack->count == stack->capacity) {
        stack->capacity = stack->capacity ? stack->capacity * 2 : 64;
        stack->open =
            realloc(stack->open, stack->capacity * sizeof(struct site *)); /* grows */
        if (!stack->open)
            abort();
    }
    stack->open[stack->count++] = site;
}

static void take_exit(struct stack *stack, struct site *site)
{
    uint32_t at = stack->count;

    site->exits++;
    while (at > 0 && stack->open[at - 1] != site && stack->open[at - 1]->is_loose)
        at--;
    if (at == 0 || stack->open[at - 1] != site) {
        site->no_enter++;
        return;
    }
    while (stack->count > at)
        stack->open[--stack->count]->no_exit++;
    stack->count--;
}

void sink_calls_take(uint32_t stream, uint32_t number, bool is_exit)
{
    struct site *site = site_of(number);
    struct stack *stack = &calls.stacks[stream % SINK_STREAMS_MAX];

    if (is_exit) {
        take_exit(stack, site);
    } else {
        site->enters++;
        push(stack, site);
    }
}

static uint64_t open_of(const struct site *site)
{
    uint64_t open = 0;

    for (uint32_t i = 0; i < SINK_STREAMS_MAX; i++)
        for (uint32_t j = 0; j < calls.stacks[i].count; j++)
            open += calls.stacks[i].open[j] == site;
    return open;
}

void sink_calls_print(void)
{
    for (uint32_t i = 0; i < SITES_MAX; i++) {
        const struct site *site = &calls.sites[i];

        if (site->site)
            printf("call site=%#x loose=%d enters=%" PRIu64 " exits=%" PRIu64
                   " open=%" PRIu64 " no_exit=%" PRIu64 " no_enter=%" PRIu64 "\n",
                   site->site, site->is_loose, site->enters, site->exits, open_of(site),
                   site->no_exit, site->no_enter);
    }
    for (uint32_t i = 0; i < SINK_STREAMS_MAX; i++)
        free(calls.stacks[i].open);
}
