/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan's file: lines `NAME NUMBER`, `root TASK`, and `task NUMBER STEP..`. Steps are words, with numbers behind them:
 *
 *     call 3 .. end    span 2 .. end    fail    sleep US    steal    receive    begin    detach    answer 1|0
 *     hand TASK HOW    send PROGRAM TASK HOW    ask PROGRAM TASK
 */
#include "program.h"

#include <millrace/probe.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
    const char *name;
    bool has_target, has_task, has_how;
};

static const struct word verbs[VERB_COUNT] = {
    [VERB_CALL] = {"call", .has_target = true},
    [VERB_SPAN] = {"span", .has_target = true},
    [VERB_END] = {"end"},
    [VERB_FAIL] = {"fail"},
    [VERB_SLEEP] = {"sleep", .has_target = true},
    [VERB_HAND] = {"hand", .has_task = true, .has_how = true},
    [VERB_SEND] = {"send", .has_target = true, .has_task = true, .has_how = true},
    [VERB_ASK] = {"ask", .has_target = true, .has_task = true},
    [VERB_ANSWER] = {"answer", .has_target = true},
    [VERB_RECEIVE] = {"receive"},
    [VERB_BEGIN] = {"begin"},
    [VERB_DETACH] = {"detach"},
    [VERB_STEAL] = {"steal"},
    [VERB_DONE] = {"done"},
};

static const char *const hows[HOW_COUNT] = {
    [HOW_PLAIN] = "plain",           [HOW_UNATTACHED] = "unattached",
    [HOW_UNDETACHED] = "undetached", [HOW_DETACHED_TWICE] = "detached-twice",
    [HOW_DROPPED] = "dropped",       [HOW_TWICE] = "twice",
    [HOW_INSIDE] = "inside",         [HOW_NEVER] = "never",
    [HOW_UNREADABLE] = "unreadable", [HOW_ZERO] = "zero",
    [HOW_HEADLESS] = "headless",
};

MR_NEVER_TRACE static void fail(const char *what, const char *word)
{
    fprintf(stderr, "the plan: %s: %s\n", what, word ? word : "nothing follows");
    exit(2);
}

MR_NEVER_TRACE static uint32_t read_number(void)
{
    const char *word = strtok(NULL, " \n");
    char *end;
    unsigned long number = word ? strtoul(word, &end, 10) : 0;

    if (!word || *end)
        fail("no number", word);
    return (uint32_t)number;
}

MR_NEVER_TRACE static enum how read_how(void)
{
    const char *word = strtok(NULL, " \n");

    for (uint32_t i = 0; word && i < HOW_COUNT; i++)
        if (strcmp(word, hows[i]) == 0)
            return (enum how)i;
    fail("no way to hand over", word);
    return HOW_PLAIN;
}

MR_NEVER_TRACE static struct step read_step(const char *word)
{
    for (uint32_t i = 0; i < VERB_COUNT; i++) {
        const struct word *verb = &verbs[i];
        struct step step = {.verb = (enum verb)i};

        if (strcmp(word, verb->name) != 0)
            continue;
        if (verb->has_target)
            step.target = read_number();
        if (verb->has_task)
            step.task = read_number();
        if (verb->has_how)
            step.how = read_how();
        return step;
    }
    fail("no step", word);
    return (struct step){VERB_DONE, 0, 0, HOW_PLAIN};
}

MR_NEVER_TRACE static void read_task(struct plan *plan)
{
    uint32_t number = read_number(), count = 0, capacity = 8;
    struct step *steps = malloc(capacity * sizeof(*steps));
    const char *word;

    if (!steps || number >= TASKS_MAX)
        fail("too many tasks", "task");
    while ((word = strtok(NULL, " \n"))) {
        if (count + 1 == capacity)
            steps = realloc(steps, (capacity *= 2) * sizeof(*steps));
        steps[count++] = read_step(word);
    }
    steps[count] = (struct step){VERB_DONE, 0, 0, HOW_PLAIN};
    plan->tasks[number] = steps;
}

MR_NEVER_TRACE static void add_root(struct plan *plan)
{
    plan->roots = realloc(plan->roots, (plan->root_count + 1) * sizeof(*plan->roots));
    if (!plan->roots)
        fail("no memory", "root");
    plan->roots[plan->root_count++] = read_number();
}

MR_NEVER_TRACE static void read_line(struct plan *plan, char *line)
{
    const char *name = strtok(line, " \n");

    if (!name)
        return;
    if (strcmp(name, "task") == 0)
        read_task(plan);
    else if (strcmp(name, "root") == 0)
        add_root(plan);
    else if (strcmp(name, "self") == 0)
        plan->self = read_number();
    else if (strcmp(name, "threads") == 0)
        plan->threads = read_number();
    else if (strcmp(name, "expected") == 0)
        plan->expected = read_number();
    else if (strcmp(name, "pause") == 0)
        plan->pause_us = read_number();
    else if (strcmp(name, "traced-pool") == 0)
        plan->is_pool_traced = read_number();
    else if (strcmp(name, "hands-on") == 0)
        plan->hands_on = read_number();
    else
        fail("no line begins so", name);
}

MR_NEVER_TRACE void plan_read(const char *path, struct plan *plan)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t capacity = 0;

    if (!file)
        fail("cannot be opened", path);
    while (getline(&line, &capacity, file) > 0)
        read_line(plan, line);
    free(line);
    fclose(file);
    if (plan->threads > THREADS_MAX)
        fail("too many threads", path);
}
