/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/machine.h"

#include "base/clock.h"
#include "base/compiler.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#define IDLE_FIELD 3
#define IOWAIT_FIELD 4
#define STEAL_FIELD 7    /* of the line "cpu", from 0: user nice system idle iowait ... */
#define COUNTED_FIELDS 8 /* guest times are part of user times */

/* The start of a file; empty where there is none. */
static const char *read_start(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "re");
    size_t count = 0;

    if (file) {
        count = fread(text, 1, size - 1, file);
        (void)fclose(file);
    }
    text[count] = '\0';
    return text;
}

enum mr_status mr_machine_ticks_parse(const char *text, struct mr_machine_ticks *ticks)
{
    const char *at = text + 4;

    *ticks = (struct mr_machine_ticks){0};
    if (strncmp(text, "cpu ", 4) != 0)
        return MR_EFORMAT;
    for (int i = 0; i < COUNTED_FIELDS; i++) {
        char *end;
        uint64_t value = strtoull(at, &end, 10);

        if (end == at)
            return MR_EFORMAT;
        ticks->total += value;
        if (i == STEAL_FIELD)
            ticks->steal = value;
        if (i == IDLE_FIELD || i == IOWAIT_FIELD)
            ticks->idle += value;
        at = end;
    }
    return MR_OK;
}

void mr_machine_ticks(struct mr_machine_ticks *ticks)
{
    char text[512];

    if (mr_machine_ticks_parse(read_start("/proc/stat", text, sizeof(text)), ticks) !=
        MR_OK)
        *ticks = (struct mr_machine_ticks){0};
}

double mr_machine_steal(const struct mr_machine_ticks *before,
                        const struct mr_machine_ticks *after)
{
    uint64_t total = after->total - before->total;

    if (after->total <= before->total || after->steal < before->steal)
        return 0;
    return (double)(after->steal - before->steal) / (double)total;
}

double mr_machine_others(const struct mr_machine_ticks *before,
                         const struct mr_machine_ticks *after, double own_s)
{
    double total = (double)(after->total - before->total);
    double unused = (double)(after->idle - before->idle) +
                    (double)(after->steal - before->steal) +
                    own_s * (double)sysconf(_SC_CLK_TCK);

    return after->total > before->total && unused < total ? 1 - unused / total : 0;
}

double mr_machine_own_s(void)
{
    const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    double seconds = 0;

    for (size_t i = 0; i < MR_ARRAY_COUNT(whose); i++) {
        struct rusage usage;

        if (getrusage(whose[i], &usage) == 0)
            seconds += (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    }
    return seconds;
}

void mr_machine_leave_cpu(int cpu)
{
    cpu_set_t set;

    if (cpu < 0 || sched_getaffinity(0, sizeof(set), &set) != 0)
        return;
    CPU_CLR((unsigned)cpu, &set);
    if (CPU_COUNT(&set) > 0)
        (void)sched_setaffinity(0, sizeof(set), &set);
}

uint32_t mr_machine_cpus(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

enum mr_status mr_bench_json_text(struct mr_buffer *out, const char *text)
{
    enum mr_status status = mr_buffer_append_text(out, text ? "\"" : "null");

    for (; text && *text && status == MR_OK; text++) {
        if (*text == '"' || *text == '\\')
            status = mr_buffer_append_format(out, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            status = mr_buffer_append_format(out, "\\u%04x", (unsigned)*text);
        else
            status = mr_buffer_append_byte(out, (uint8_t)*text);
    }
    if (text && status == MR_OK)
        status = mr_buffer_append_text(out, "\"");
    return status;
}

/* The value behind `key` up to the end of its line, cut out of text; NULL. */
static const char *value_of(char *text, const char *key)
{
    char *at = strstr(text, key);

    if (!at)
        return NULL;
    at += strlen(key);
    at += strspn(at, " \t:");
    at[strcspn(at, "\n")] = '\0';
    return *at ? at : NULL;
}

/* The number behind a key of /proc/cpuinfo's first processor; -1. */
static long number_of(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    if (!at)
        return -1;
    at += strlen(key);
    at += strspn(at, " \t:");
    return *at >= '0' && *at <= '9' ? strtol(at, NULL, 10) : -1;
}

const char *mr_machine_model(const char *cpuinfo, char out[MR_MACHINE_MODEL_SIZE])
{
    long family = number_of(cpuinfo, "cpu family\t");
    long model = number_of(cpuinfo, "\nmodel\t");
    long stepping = number_of(cpuinfo, "\nstepping\t");

    if (family < 0 || model < 0)
        return NULL;
    (void)snprintf(out, MR_MACHINE_MODEL_SIZE, "family %ld, model %ld, stepping %ld",
                   family, model, stepping);
    return out;
}

static enum mr_status member(struct mr_buffer *out, const char *name, const char *value)
{
    enum mr_status status = mr_buffer_append_format(out, "\"%s\": ", name);

    return status == MR_OK ? mr_bench_json_text(out, value) : status;
}

enum mr_status mr_machine_describe(struct mr_buffer *out)
{
    char cpu[8192], memory[512], governor[128], kernel[512] = "";
    char text[MR_MACHINE_MODEL_SIZE];
    const char *model;
    struct utsname names;
    const char *memory_kib;
    enum mr_status status;

    if (uname(&names) == 0)
        (void)snprintf(kernel, sizeof(kernel), "%s %s %s", names.sysname, names.release,
                       names.machine);
    (void)read_start("/proc/cpuinfo", cpu, sizeof(cpu));
    (void)read_start("/proc/meminfo", memory, sizeof(memory));
    (void)read_start("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor,
                     sizeof(governor));
    governor[strcspn(governor, "\n")] = '\0';
    memory_kib = value_of(memory, "MemTotal");
    model = mr_machine_model(cpu, text); /* before value_of() cuts */
    status = member(out, "processor", value_of(cpu, "model name"));
    if (status == MR_OK)
        status = mr_buffer_append_text(out, ", ");
    if (status == MR_OK)
        status = member(out, "processor_model", model);
    if (status == MR_OK)
        status = mr_buffer_append_format(
            out, ", \"cpus\": %" PRIu32 ", \"memory_kib\": %lld, ", mr_machine_cpus(),
            memory_kib ? strtoll(memory_kib, NULL, 10) : -1);
    if (status == MR_OK)
        status = member(out, "kernel", *kernel ? kernel : NULL);
    if (status == MR_OK)
        status = mr_buffer_append_text(out, ", ");
    if (status == MR_OK)
        status = member(out, "governor", *governor ? governor : NULL);
    if (status == MR_OK)
        status = mr_buffer_append_text(out, ", ");
    if (status == MR_OK)
        status = member(out, "tick_clock", mr_clock_ticks_name(mr_clock_ticks_kind()));
    return status;
}
