/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a flight recorder of the subject and checks every event against pattern.h:
 *
 *     reader FILE [TIMES]
 *
 * Prints a line of key=value for each stream of the last time, and one for all. Exit
 * status 1 when anything stands where it does not belong.
 */
#include "base/clock.h"
#include "net/chunk.h"
#include "probe/recorder_read.h"
#include "tests/system/recorder/pattern.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FRAME_SIZE 65536
#define TRIES 1000

struct reading {
    struct mr_recorder_view view;
    uint32_t names[1024]; /* of named sites: number of the span, from 1 */
    uint64_t faults, rings, unread;
    uint64_t events, lost,
        before; /* of all streams: read; told as lost; of earlier ones */
};

static void fault(struct reading *reading, const struct mr_recorder_copy *copy,
                  const char *what, uint64_t number)
{
    reading->faults++;
    printf("fault: stream %u: %s at event %" PRIu64 "\n", copy->stream, what, number);
}

static void learn_names(struct reading *reading)
{
    for (uint32_t i = 0; i < 1024; i++) {
        struct mr_named_entry entry;

        reading->names[i] = 0;
        if (mr_recorder_view_named(&reading->view, i, &entry) && entry.name[0] == 's')
            reading->names[i] = 1 + (uint32_t)atoi(entry.name + 1);
    }
}

static void check_event(struct reading *reading, const struct mr_recorder_copy *copy,
                        const struct mr_record *record, uint64_t number)
{
    uint32_t site = record->site - MR_SITE_FIRST_NAMED;

    if (site >= 1024 || reading->names[site] != 1 + number / 2 % PATTERN_SPANS)
        fault(reading, copy, "another site", number);
    if (record->is_exit != (number % 2 == 1))
        fault(reading, copy, "another direction", number);
    if (record->is_inversion)
        fault(reading, copy, "time runs back", number);
    reading->events++;
}

static uint64_t check_chunk(struct reading *reading, const struct mr_recorder_copy *copy,
                            struct mr_span payload, uint64_t number)
{
    static struct mr_record_reader reader;
    static struct mr_record record;
    struct mr_chunk chunk;
    enum mr_status status;

    if (mr_chunk_next(&payload, &chunk) != MR_OK || chunk.first_event != number)
        fault(reading, copy, "another chunk", number);
    mr_record_reader_init(&reader, &chunk);
    while ((status = mr_record_next(&reader, &record)) == MR_OK) {
        if (record.site >= MR_SITE_FIRST_NAMED) {
            check_event(reading, copy, &record, number++);
        } else if (record.kind == MR_RECORD_LOSS) {
            number += record.payload[0] & UINT32_MAX;
            reading->lost += record.payload[0] & UINT32_MAX;
        }
    }
    if (status != MR_END || number != chunk.first_event + chunk.events)
        fault(reading, copy, "a chunk that is not whole", number);
    return number;
}

static void check_copy(struct reading *reading, struct mr_recorder_copy *copy, bool print)
{
    static uint8_t out[FRAME_SIZE];
    uint64_t number = 0, before = reading->events;
    size_t size;

    while ((size = mr_recorder_chunk(copy, out, sizeof(out))) > 0)
        number = check_chunk(reading, copy, mr_span_of(out, size), number);
    reading->before += copy->events_before;
    if (print)
        printf("stream stream=%u tid=%u name=%s events=%" PRIu64 " read=%" PRIu64
               " overwritten=%" PRIu64 " torn=%" PRIu64 " ended=%d before=%" PRIu64 "\n",
               copy->stream, copy->tid, copy->name, number, reading->events - before,
               copy->overwritten, copy->torn, copy->is_ended, copy->events_before);
}

static void read_once(struct reading *reading, bool print)
{
    reading->events = reading->lost = reading->before = reading->rings = 0;
    for (uint32_t i = 0; i < mr_recorder_view_rings(&reading->view); i++) {
        enum mr_status status = MR_AGAIN;
        struct mr_recorder_copy copy;

        for (int tries = 0; tries < TRIES && status == MR_AGAIN; tries++)
            status = mr_recorder_copy_ring(&reading->view, i, &copy);
        reading->unread += status == MR_AGAIN;
        if (status != MR_OK)
            continue;
        reading->rings++;
        check_copy(reading, &copy, print);
        mr_recorder_copy_fini(&copy);
    }
}

int main(int argc, char **argv)
{
    static struct reading reading;
    struct mr_error error = MR_ERROR_NONE;
    int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1;
    int times = argc > 2 ? atoi(argv[2]) : 1;
    struct stat stat;
    void *memory;

    if (fd < 0 || fstat(fd, &stat) != 0)
        return 2;
    memory = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return 2;
    for (int i = 0; i < times; i++) {
        if (mr_recorder_view_open(&reading.view, memory, (uint64_t)stat.st_size,
                                  &error) != MR_OK) {
            printf("fault: %s\n", error.text);
            return 1;
        }
        learn_names(&reading);
        read_once(&reading, i == times - 1);
    }
    printf("all rings=%" PRIu64 " events=%" PRIu64 " lost=%" PRIu64 " before=%" PRIu64
           " budget=%" PRIu64 " unread=%" PRIu64 " faults=%" PRIu64 " bytes=%" PRIu64
           "\n",
           reading.rings, reading.events, reading.lost, reading.before,
           mr_recorder_view_lost(&reading.view, MR_LOSS_BUDGET), reading.unread,
           reading.faults, (uint64_t)stat.st_blocks * 512);
    return reading.faults > 0;
}
