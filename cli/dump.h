/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `millrace record --dump` and `--recover`: what a flight recorder holds becomes a
 * recording, or is sent to an endpoint. The process is asked nothing: its memory is read
 * (probe/recorder_read.h), so it may hang, or be dead.
 *
 *     find      /proc/PID/maps, or a file of a dead process in the directory for them
 *     copy      all rings, one after the other, at once
 *     send      dictionary and chunks, as the process would have, to a private chain
 *
 * One thread, one process at a time.
 *
 *     struct mr_dump dump = {.process = "4711", .output = "./millrace.data", ...};
 *     return mr_dump_command(&dump);
 */
#ifndef MR_CLI_DUMP_H
#define MR_CLI_DUMP_H

#include "base/error.h"
#include "cli/chain.h"
#include "cli/summary_text.h"
#include "probe/recorder_read.h"

#include <limits.h>
#include <stdbool.h>

struct mr_dump {
    const char *command;  /* for messages */
    const char *process;  /* pid, or the recorder's file */
    bool is_recovery;     /* it must be dead; its file goes when the recording is there */
    const char *places;   /* a directory to look for files in, or "" */
    const char *endpoint; /* "": make a recording */
    struct mr_chain_options chain; /* store: where the recording is left */
    const struct mr_view *view;
};

/*
 * The exit status: 0; 1 when the recording could not be made (nothing is left then); 2
 * for a mistake: no such process, none with a recorder, one that still runs.
 */
int mr_dump_command(const struct mr_dump *dump);

/* dump_find.c */
struct mr_dump_source {
    char path[PATH_MAX];
    bool is_alive;
    int fd;
    void *memory; /* mapped, read-only */
    uint64_t size;
    struct mr_recorder_view view;
};

/* MR_EUSAGE: there is none. Any failure says what, and what to do. */
enum mr_status mr_dump_find(const struct mr_dump *dump, struct mr_dump_source *source,
                            struct mr_error *error);
void mr_dump_close(struct mr_dump_source *source);

/* dump_send.c: all rings as they are now. */
struct mr_dump_copies {
    struct mr_recorder_copy *items;
    uint32_t count;
    uint32_t unread; /* rings that were overwritten faster than they could be copied */
    uint64_t events, overwritten, torn; /* events: read; torn: taken and not written */
    uint64_t streams_before, lost;      /* without a stream */
};

enum mr_status mr_dump_copy(const struct mr_recorder_view *view,
                            struct mr_dump_copies *copies, struct mr_error *error);
/* Sends it all, and waits until all of it is acknowledged. MR_EIO. */
enum mr_status mr_dump_send(const struct mr_recorder_view *view,
                            struct mr_dump_copies *copies, const char *endpoint,
                            struct mr_error *error);
void mr_dump_copies_fini(struct mr_dump_copies *copies);

#endif
