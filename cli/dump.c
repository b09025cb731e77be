/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/dump.h"

#include "base/text.h"
#include "cli/report.h"
#include "cli/signals.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define EXIT_USAGE 2

static int say(const struct mr_dump *dump, int exit_status, const char *text)
{
    (void)fprintf(stderr, "%s: %s\n", dump->command, text);
    return exit_status;
}

/* The account, and what of it is not all there. */
static void tell(const struct mr_dump *dump, const struct mr_dump_source *source,
                 const struct mr_dump_copies *copies)
{
    const struct mr_recorder_header *header = source->view.header;

    (void)fprintf(stderr,
                  "%s: process %u, %s: %" PRIu64 " events of %" PRIu64
                  " threads; overwritten %" PRIu64 " (of %" PRIu64
                  " threads all), torn %" PRIu64 ", lost without a stream %" PRIu64 "\n",
                  dump->command, header->pid,
                  source->is_alive ? "which runs" : "which is dead", copies->events,
                  (uint64_t)copies->count, copies->overwritten, copies->streams_before,
                  copies->torn, copies->lost);
    if (copies->unread > 0)
        (void)fprintf(stderr,
                      "%s: %u threads overwrote their rings faster than they could be "
                      "read: a larger MILLRACE_RING_SIZE helps\n",
                      dump->command, copies->unread);
}

static int give_up(const struct mr_dump *dump, const char *text)
{
    char store[256];

    mr_recording_remove(dump->chain.store);
    (void)fprintf(stderr, "%s: %s: %s; nothing is left there\n", dump->command,
                  mr_text_plain_copy(dump->chain.store, store, sizeof(store)), text);
    return mr_signals_taken() ? 128 + mr_signals_taken() : EXIT_FAILURE;
}

static int report(const struct mr_dump *dump)
{
    struct mr_error error = MR_ERROR_NONE;

    if (mr_report_print(dump->chain.store, dump->view, false, stdout, &error) != MR_OK)
        return say(dump, EXIT_FAILURE, error.text);
    return EXIT_SUCCESS;
}

static int record(const struct mr_dump *dump, const struct mr_dump_source *source,
                  struct mr_dump_copies *copies)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_chain chain;
    enum mr_status status = mr_recording_clear(dump->chain.store, &error);
    bool is_complete;

    if (status != MR_OK)
        return say(dump, EXIT_USAGE, error.text);
    if (mr_chain_start(&dump->chain, &chain, &error) != MR_OK)
        return give_up(dump, error.text);
    status = mr_dump_send(&source->view, copies, chain.endpoint, &error);
    is_complete = mr_chain_stop(&chain);
    if (status != MR_OK)
        return give_up(dump, error.text);
    if (!is_complete)
        return give_up(dump, "not all of it reached the store");
    tell(dump, source, copies);
    return report(dump);
}

static int send_away(const struct mr_dump *dump, const struct mr_dump_source *source,
                     struct mr_dump_copies *copies)
{
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status = mr_dump_send(&source->view, copies, dump->endpoint, &error);

    if (status != MR_OK)
        return say(dump, status == MR_EUSAGE ? EXIT_USAGE : EXIT_FAILURE, error.text);
    tell(dump, source, copies);
    return EXIT_SUCCESS;
}

static int dump_source(const struct mr_dump *dump, struct mr_dump_source *source)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_dump_copies copies;
    int exit_status = EXIT_FAILURE;

    if (mr_dump_copy(&source->view, &copies, &error) != MR_OK)
        (void)say(dump, EXIT_FAILURE, error.text);
    else if (copies.count == 0)
        (void)say(dump, EXIT_FAILURE, "the flight recorder holds no event");
    else
        exit_status = *dump->endpoint ? send_away(dump, source, &copies)
                                      : record(dump, source, &copies);
    mr_dump_copies_fini(&copies);
    return exit_status;
}

int mr_dump_command(const struct mr_dump *dump)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_dump_source source;
    enum mr_status status = mr_dump_find(dump, &source, &error);
    int exit_status;

    if (status != MR_OK)
        return say(dump, status == MR_EUSAGE ? EXIT_USAGE : EXIT_FAILURE, error.text);
    exit_status = dump_source(dump, &source);
    if (exit_status == EXIT_SUCCESS && dump->is_recovery && unlink(source.path) != 0)
        (void)say(dump, 0, "the recorder's file could not be removed");
    mr_dump_close(&source);
    return exit_status;
}
