/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field          written by     read by        access
 * items, limits  start          any thread     before tracing begins
 * descriptors[]  their thread   forked child   relaxed: the child has one thread
 * threads[]      their thread   their thread   state by compare-exchange to take one
 * refused        any thread     writer         relaxed: a hint, told when it is told
 */
#include "probe/counters.h"

#include "probe/counters_page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define DESCRIPTOR_SHARE 4 /* of the limit that the program has: 1 / this */
#define PARANOID "/proc/sys/kernel/perf_event_paranoid"

/* "" where it cannot be read. */
static void read_paranoid(char *out, size_t capacity)
{
    int fd = open(PARANOID, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, out, capacity - 1);

    if (fd >= 0)
        (void)close(fd);
    out[size > 0 ? size : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

/* The kernel's reason, and what is most likely behind it. */
static void set_absent(struct mr_counter *counter, int failure)
{
    char paranoid[16], hint[80] = "";

    switch (failure) {
    case EACCES:
    case EPERM:
        read_paranoid(paranoid, sizeof(paranoid));
        (void)snprintf(hint, sizeof(hint), " (kernel.perf_event_paranoid is %s)",
                       *paranoid ? paranoid : "unreadable: a container's filter?");
        break;
    case ENOENT:
        (void)snprintf(hint, sizeof(hint), " (this machine does not count it)");
        break;
    default:
        break;
    }
    (void)snprintf(counter->absent, sizeof(counter->absent), "%s%s",
                   strerrordesc_np(failure), hint);
}

/* Whether the kernel lets this thread have it, as it is. */
static int try_open(const struct mr_counter_event *event)
{
    int fd = mr_counters_open(event);

    if (fd < 0)
        return errno;
    (void)close(fd);
    return 0;
}

/*
 * Who may not see into the kernel counts in user mode, and the name says so; but what
 * happens in the kernel alone would be 0 then, and is absent.
 */
static void try_counter(struct mr_counter *counter)
{
    struct mr_counter_event *event = &counter->event;
    int failure = try_open(event);

    if (event->is_user_only && event->is_kernel_only) {
        (void)snprintf(counter->absent, sizeof(counter->absent),
                       "it happens in the kernel: user mode alone would be 0");
        return;
    }
    if (failure == EACCES && !event->is_user_only && !event->is_kernel_only &&
        strlen(event->name) + 2 <= MR_COUNTER_NAME_MAX) {
        event->is_user_only = true;
        failure = try_open(event);
        if (failure == 0)
            mr_counter_name_user_only(event);
    }
    if (failure)
        set_absent(counter, failure);
}

static bool is_there(const struct mr_counters *counters, const char *name)
{
    for (uint32_t i = 0; i < counters->count; i++)
        if (strcmp(counters->items[i].event.name, name) == 0)
            return true;
    return false;
}

static void add(struct mr_counters *counters, const char *name,
                void (*complain)(const char *text))
{
    struct mr_counter *counter = &counters->items[counters->count];
    struct mr_error error = MR_ERROR_NONE;
    char line[MR_ERROR_TEXT_SIZE];

    memset(counter, 0, sizeof(*counter));
    if (mr_counter_resolve(name, &counter->event, &error) != MR_OK) {
        (void)snprintf(line, sizeof(line), "MILLRACE_COUNTERS: %.60s: %.150s", name,
                       error.text);
        complain(line);
        (void)snprintf(counter->event.name, sizeof(counter->event.name), "%.60s", name);
        counter->event.unit = "1";
        (void)snprintf(counter->absent, sizeof(counter->absent), "%.190s", error.text);
    } else {
        try_counter(counter);
    }
    if (is_there(counters, counter->event.name))
        return;
    if (counter->absent[0] == '\0' && counters->present == MR_COUNTERS_MAX)
        (void)snprintf(counter->absent, sizeof(counter->absent),
                       "at most %d counters at a time", MR_COUNTERS_MAX);
    counters->present += counter->absent[0] == '\0';
    counters->count++;
}

/* Those that are absent last; by insertion, so that the order is otherwise as given. */
static void sort(struct mr_counters *counters)
{
    for (uint32_t i = 1; i < counters->count; i++) {
        struct mr_counter counter = counters->items[i];
        uint32_t at = i;

        for (; at > 0 && counters->items[at - 1].absent[0] && !counter.absent[0]; at--)
            counters->items[at] = counters->items[at - 1];
        counters->items[at] = counter;
    }
}

static uint32_t descriptors_max(void)
{
    struct rlimit limit;
    uint64_t share = 256;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        share = (uint64_t)limit.rlim_cur / DESCRIPTOR_SHARE;
    return share < MR_COUNTERS_DESCRIPTORS_MAX ? (uint32_t)share
                                               : MR_COUNTERS_DESCRIPTORS_MAX;
}

static bool bound(struct mr_counters *counters)
{
    uint32_t descriptors = descriptors_max();

    counters->threads_max = descriptors / MR_COUNTERS_MAX;
    (void)snprintf(counters->budget, sizeof(counters->budget),
                   "more than %u threads at a time would have more than a quarter of the "
                   "program's file descriptors",
                   counters->threads_max);
    return counters->threads_max > 0;
}

bool mr_counters_start(struct mr_counters *counters, const char *names,
                       void (*complain)(const char *text))
{
    char name[128];

    while (*names) {
        size_t size = strcspn(names, ",");

        if (size > 0 && counters->count == MR_COUNTERS_NAMES_MAX) {
            complain("MILLRACE_COUNTERS: more than " MR_STRINGIFY(
                MR_COUNTERS_NAMES_MAX) " names: the rest is left out");
            break;
        }
        (void)snprintf(name, sizeof(name), "%.*s",
                       (int)(size < sizeof(name) ? size : sizeof(name) - 1), names);
        if (size > 0)
            add(counters, name, complain);
        names += size + (names[size] == ',');
    }
    sort(counters);
    return counters->present > 0 && bound(counters) && mr_counters_map(counters);
}

/* Without stdio: it may be called by the writer. */
static void append(char *out, const char *text)
{
    size_t size = strlen(out), more = strlen(text);

    if (more > MR_COUNTER_REASON_SIZE - 1 - size)
        more = MR_COUNTER_REASON_SIZE - 1 - size;
    memcpy(out + size, text, more);
    out[size + more] = '\0';
}

bool mr_counters_item(const struct mr_counters *counters, uint32_t index,
                      uint32_t refusal, char text[MR_COUNTER_REASON_SIZE],
                      struct mr_dict_item *item)
{
    const struct mr_counter *counter = &counters->items[index];
    uint32_t refused = refusal ? mr_load_relaxed(&counters->refused[refusal - 1]) : 0;

    text[0] = '\0';
    if (refusal && (refused == 0 || index >= counters->present))
        return false;
    if (refusal) {
        append(text, "on some threads: ");
        append(text, refused == MR_COUNTERS_BUDGET ? counters->budget
                                                   : strerrordesc_np((int)refused));
    } else {
        append(text, counter->absent);
    }
    *item = (struct mr_dict_item){.kind = MR_DICT_COUNTER,
                                  .counter = {.counter = index,
                                              .name = counter->event.name,
                                              .unit = counter->event.unit,
                                              .absent = text}};
    return true;
}
