/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that a benchmark runs: lists of words, and a run to the end with what was
 * printed and the time it took. One thread.
 *
 *     struct mr_words words = {0};
 *     mr_words_add(&words, "%s", "uname");
 *     mr_words_add(&words, "-r");
 *     struct mr_command command = {.argv = &words, .timeout_ns = MR_SECOND_NS};
 *     status = mr_command_run(&command, &error);
 *     ... command.output ...
 *     mr_command_fini(&command);
 *     mr_words_fini(&words);
 *
 * The program gets our environment without what would trace it: MILLRACE_*, LTTNG_*,
 * XRAY_*, UFTRACE_*, OTEL_*, LD_PRELOAD; and `env` on top.
 */
#ifndef MR_BENCH_COMMAND_H
#define MR_BENCH_COMMAND_H

#include "base/buffer.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MR_WORDS_MAX 192

/* items[count] is NULL. Past the limit, or without memory, `failed` is set. */
struct mr_words {
    char *items[MR_WORDS_MAX + 1]; /* owned */
    size_t count;
    bool failed;
};

MR_PRINTF(2, 3) void mr_words_add(struct mr_words *words, const char *format, ...);
/* Adds the words of text, between blanks; a backslash takes the next byte as it is. */
void mr_words_split(struct mr_words *words, const char *text);
void mr_words_add_all(struct mr_words *words, const struct mr_words *more);
/* One line, for messages and records; cut at the end of `out`. */
const char *mr_words_join(const struct mr_words *words, char *out, size_t size);
void mr_words_fini(struct mr_words *words);

struct mr_command {
    const struct mr_words *argv;
    const struct mr_words *env; /* "NAME=VALUE"; NULL: none */
    const char *directory;      /* NULL: ours */
    uint64_t timeout_ns;
    /* Results; started_ns is CLOCK_MONOTONIC. */
    int exit_status; /* 128 + signal */
    uint64_t started_ns, wall_ns, cpu_ns;
    struct mr_buffer output, errors; /* stdout, stderr; 1 MiB of each at most */
};

/*
 * MR_OK when it ended with 0. MR_ENOTFOUND when there is no such program, MR_EIO when it
 * ended otherwise (with the last line it wrote to stderr), MR_ETIMEOUT, MR_ENOMEM;
 * MR_END when Ctrl-C came meanwhile. It has ended in every case.
 */
enum mr_status mr_command_run(struct mr_command *command, struct mr_error *error);
void mr_command_fini(struct mr_command *command);

/* What a process took. */
struct mr_usage {
    uint64_t cpu_ns;   /* when it has ended */
    uint64_t peak_kib; /* largest resident memory, of its program alone */
};
/* While it runs. wait4() would tell of the process that it was before exec(), too. */
uint64_t mr_usage_peak_kib(pid_t pid);
/* As waitpid(), which it is but for usage->cpu_ns, told when it returns `pid`. */
pid_t mr_usage_wait(pid_t pid, int options, int *status, struct mr_usage *usage);

/* In a new process: `env` on top of ours, cleaned as above. */
void mr_command_set_environment(const struct mr_words *env);

/* The output as text that ends with a zero; "" for none. Valid until fini. */
const char *mr_command_text(struct mr_buffer *output);
/* Its last line that is not empty, cut at the end of `out`. */
void mr_command_last_line(struct mr_buffer *output, char *out, size_t size);

#endif
