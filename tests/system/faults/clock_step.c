/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded: steps the wall clock of one process by the nanoseconds that the file CLOCK_STEP_FILE holds, as a signed 64-bit
 * word that may change at any time. Other clocks are left alone, as a step of the real one would leave them.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS INT64_C(1000000000)

static const _Atomic int64_t none;
static const _Atomic int64_t *offset = &none;

__attribute__((constructor)) static void open_offset(void)
{
    const char *name = getenv("CLOCK_STEP_FILE");
    int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    void *page =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);

    if (page != MAP_FAILED)
        offset = page;
    if (fd >= 0)
        close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    long status = syscall(SYS_clock_gettime, clock, out);
    int64_t step = *offset;

    if (status == 0 && step != 0 &&
        (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t ns = (int64_t)out->tv_sec * NS + out->tv_nsec + step;

        out->tv_sec = ns / NS;
        out->tv_nsec = ns % NS;
    }
    return (int)status;
}

int gettimeofday(struct timeval *out, void *zone)
{
    struct timespec now;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
