/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/stub.h"

#include "probe/hook.h"
#include "probe/patch.h"
#include "probe/pruned.h"
#include "probe/registry.h"
#include "probe/ring.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define PAGE_BYTES UINT64_C(4096)
#define HEAD_BYTES                                                                       \
    UINT64_C(64) /* the address of the common stub, and room to a cache line */
#define THUNK_BYTES UINT64_C(16)
#define FUNCTION_BYTES (2 * THUNK_BYTES)
#define THUNK_USED 11
#define THUNK_JUMP 5   /* where it begins, behind the push */
#define JUMP_OPERAND 7 /* of the thunk: the jump's displacement, lowest byte first */
/*
 * Thunks lie at multiples of 16, so the lowest byte of the displacement to the head ends in
 * 5; 8 more, which is the second address of the head, changes that byte alone.
 */
#define TO_COMMON 0x05
#define TO_COUNT 0x0d
static_assert(((0 - THUNK_USED) & 0x0f) == TO_COMMON && TO_COMMON + 8 == TO_COUNT,
              "one byte differs");

/* A site and its thunk are at most this far apart, whichever of the module's. */
#define REACH_BYTES (INT64_C(0x7fff0000))
/* Where the area is looked for: below the module first, then above, in such steps. */
#define STEP_BYTES (INT64_C(1) << 24)

#define MFD_EXEC_FLAG 0x10u /* Linux 6.3; older headers have no name for it */

static_assert(offsetof(struct mr_thread, words) == MR_STUB_THREAD_WORDS, "stub.h");
static_assert(offsetof(struct mr_thread, period) == MR_STUB_THREAD_PERIOD, "stub.h");
static_assert(offsetof(struct mr_thread, cursor) == MR_STUB_THREAD_CURSOR, "stub.h");
static_assert(offsetof(struct mr_thread, limit) == MR_STUB_THREAD_LIMIT, "stub.h");
static_assert(offsetof(struct mr_thread, mask) == MR_STUB_THREAD_MASK, "stub.h");
static_assert(offsetof(struct mr_thread, lap_shift) == MR_STUB_THREAD_LAP_SHIFT,
              "stub.h");
static_assert(offsetof(struct mr_thread, flags) == MR_STUB_THREAD_FLAGS, "stub.h");
static_assert(offsetof(struct mr_thread, ring) == MR_STUB_THREAD_RING, "stub.h");
static_assert(offsetof(struct mr_ring, pruned) == MR_STUB_RING_PRUNED, "stub.h");
static_assert(offsetof(struct mr_pruned, count) == 0, "stub_x86_64.S");
static_assert(offsetof(struct mr_pruned, sites) == MR_STUB_PRUNED_SITES, "stub.h");
static_assert(offsetof(struct mr_pruned, alone) == MR_STUB_PRUNED_ALONE, "stub.h");
static_assert(MR_PRUNED_HASH == MR_STUB_PRUNED_HASH, "stub.h");
static_assert(MR_PRUNED_SLOTS_LOG2 == MR_STUB_PRUNED_SLOTS_LOG2, "stub.h");
static_assert(MR_THREAD_OWN == MR_STUB_THREAD_OWN, "stub.h");
static_assert(offsetof(struct mr_thread, tick.number) == MR_STUB_THREAD_TICK_NUMBER,
              "stub.h");
static_assert(offsetof(struct mr_thread, tick.until) == MR_STUB_THREAD_TICK_UNTIL,
              "stub.h");
static_assert(offsetof(struct mr_thread, tick.stamp) == MR_STUB_THREAD_TICK_STAMP,
              "stub.h");
static_assert(offsetof(struct mr_thread, tick.base) == MR_STUB_THREAD_TICK_BASE,
              "stub.h");
static_assert(offsetof(struct mr_thread, tick.seen) == MR_STUB_THREAD_TICK_SEEN,
              "stub.h");
static_assert(offsetof(struct mr_hook_state, clock) == 0, "stub_x86_64.S");
static_assert(offsetof(struct mr_tick, number) == 0, "stub_x86_64.S");
static_assert(MR_RING_AHEAD_BYTES == MR_STUB_AHEAD_BYTES, "stub.h");
static_assert(MR_RING_AHEAD_HYBRID_BYTES == MR_STUB_AHEAD_HYBRID_BYTES, "stub.h");

MR_HIDDEN uint32_t mr_stub_has_xsave;

#if defined(__x86_64__)
/* The system has turned xsave on: AVX registers are used only then. */
static bool has_xsave(void)
{
    unsigned a, b, c = 0, d;

    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_OSXSAVE);
}
#endif

static uint64_t common_stub(void)
{
#if defined(__x86_64__)
    bool is_counted = mr_hook_state.counted & MR_COUNTED_FUNCTIONS;

    mr_stub_has_xsave = has_xsave();
    if (!is_counted && mr_probe->clock.mode == MR_CLOCK_MODE_COUNTER)
        return (uintptr_t)mr_site_stub;
    if (!is_counted && mr_probe->clock.mode == MR_CLOCK_MODE_HYBRID)
        return (uintptr_t)mr_site_stub_hybrid;
    return (uintptr_t)mr_site_stub_general;
#else
    return 0;
#endif
}

static uint64_t count_stub(void)
{
#if defined(__x86_64__)
    return (uintptr_t)mr_site_stub_count;
#else
    return 0;
#endif
}

static bool is_near(const struct mr_module *module, uint64_t address, uint64_t bytes)
{
    int64_t first = (int64_t)(address - module->address);
    int64_t below = (int64_t)(module->address + module->size - address);

    return first + (int64_t)bytes < REACH_BYTES && below < REACH_BYTES;
}

static uint8_t *map_at(uint64_t address, uint64_t bytes, int fd)
{
    int flags = fd >= 0 ? MAP_PRIVATE : MAP_PRIVATE | MAP_ANONYMOUS;
    int rights = fd >= 0 ? PROT_READ | PROT_EXEC : PROT_READ | PROT_WRITE;
    void *memory = mmap((void *)(uintptr_t)address, bytes, rights, flags, fd, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

/*
 * The kernel takes the wish if there is room, else places it as it likes, for a library
 * mostly near enough. Below an executable nothing grows; above it lies the heap, so the
 * search goes on a gibibyte above.
 */
static uint8_t *map_near(const struct mr_module *module, uint64_t bytes, int fd)
{
    int64_t start = (int64_t)module->address - (int64_t)bytes;

    for (int64_t step = 0; step < REACH_BYTES; step += STEP_BYTES) {
        int64_t wish = step < REACH_BYTES / 2 ? start - step : start + step;
        uint8_t *memory;

        if (wish < STEP_BYTES / 256)
            continue;
        memory = map_at((uint64_t)wish, bytes, fd);
        if (!memory)
            return NULL;
        if (is_near(module, (uintptr_t)memory, bytes))
            return memory;
        (void)munmap(memory, bytes);
    }
    return NULL;
}

static int memory_file(uint64_t bytes)
{
    int fd =
        (int)syscall(SYS_memfd_create, "millrace-stubs", MFD_CLOEXEC | MFD_EXEC_FLAG);

    if (fd < 0)
        fd = (int)syscall(SYS_memfd_create, "millrace-stubs", MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) != 0) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

static bool map_file(struct mr_stub_area *area, const struct mr_module *module)
{
    void *write;
    uint8_t *run;

    area->fd = memory_file(area->bytes);
    if (area->fd < 0)
        return false;
    write = mmap(NULL, area->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, area->fd, 0);
    run = write == MAP_FAILED ? NULL : map_near(module, area->bytes, area->fd);
    if (run) {
        area->write = write;
        area->address = (uintptr_t)run;
        return true;
    }
    if (write != MAP_FAILED)
        (void)munmap(write, area->bytes);
    (void)close(area->fd);
    area->fd = -1;
    return false;
}

enum mr_status mr_stub_open(struct mr_stub_area *area, const struct mr_module *module,
                            uint32_t function_count, struct mr_error *error)
{
    uint64_t bytes = HEAD_BYTES + (uint64_t)function_count * FUNCTION_BYTES;
    const uint64_t head[] = {common_stub(), count_stub()};

    *area = (struct mr_stub_area){
        .fd = -1, .bytes = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES};
    if (!map_file(area, module)) {
        area->write = map_near(module, area->bytes, -1);
        area->address = (uintptr_t)area->write;
    }
    if (!area->write)
        return mr_error_set(error, MR_ELIMIT,
                            "%s: no room for code within 2 GiB of the module",
                            module->path);
    memcpy(area->write, head, sizeof(head));
    return MR_OK;
}

static void put_thunk(struct mr_stub_area *area, uint64_t at, uint32_t word_high)
{
    uint8_t *thunk = area->write + at;
    int32_t to_head = -(int32_t)(at + THUNK_USED);

    memset(thunk, 0xcc, THUNK_BYTES);
    thunk[0] = 0x68;
    memcpy(thunk + 1, &word_high, sizeof(word_high));
    thunk[THUNK_JUMP] = 0xff;
    thunk[THUNK_JUMP + 1] = 0x25;
    memcpy(thunk + JUMP_OPERAND, &to_head, sizeof(to_head));
}

void mr_stub_put(struct mr_stub_area *area, uint32_t function, uint32_t site)
{
    uint64_t at = HEAD_BYTES + (uint64_t)function * FUNCTION_BYTES;

    put_thunk(area, at, site);
    put_thunk(area, at + THUNK_BYTES, site | (uint32_t)(MR_WORD_EXIT >> 32));
}

enum mr_status mr_stub_seal(struct mr_stub_area *area, struct mr_error *error)
{
    bool is_sealed = true;

    if (area->fd >= 0) {
        (void)munmap(area->write, area->bytes);
        (void)close(area->fd);
        area->fd = -1;
    } else {
        is_sealed = mprotect(area->write, area->bytes, PROT_READ | PROT_EXEC) == 0;
    }
    area->write = NULL;
    if (is_sealed)
        return MR_OK;
    mr_stub_close(area);
    return mr_error_set(error, MR_EIO, "the system lets nobody make code at run time");
}

void mr_stub_close(struct mr_stub_area *area)
{
    if (area->write && area->fd >= 0) {
        (void)munmap(area->write, area->bytes);
        (void)close(area->fd);
    }
    if (area->address)
        (void)munmap((void *)(uintptr_t)area->address, area->bytes);
    *area = (struct mr_stub_area){.fd = -1};
}

uint64_t mr_stub_enter(const struct mr_stub_area *area, uint32_t function)
{
    return area->address + HEAD_BYTES + (uint64_t)function * FUNCTION_BYTES;
}

uint64_t mr_stub_exit(const struct mr_stub_area *area, uint32_t function)
{
    return mr_stub_enter(area, function) + THUNK_BYTES;
}

bool mr_stub_is_thunk(const struct mr_stub_area *area, uint64_t address, uint64_t *pushed)
{
    uint64_t at = address - area->address, offset = at % THUNK_BYTES;

    if (at < HEAD_BYTES || at >= area->bytes)
        return false;
    *pushed = offset == THUNK_JUMP ? sizeof(uint64_t) : 0;
    return offset == 0 || offset == THUNK_JUMP;
}

bool mr_stub_count(const struct mr_stub_area *area, uint32_t function, bool is_counting)
{
    /* What mr_patch_*() looks at: where code is, and that it is in one piece. */
    const struct mr_module thunks = {.address = area->address,
                                     .size = area->bytes,
                                     .text_start = area->address,
                                     .text_end = area->address + area->bytes,
                                     .text_segments = 1};
    uint64_t at = mr_stub_enter(area, function) + JUMP_OPERAND;
    uint8_t high =
        (uint8_t)(0 - (mr_stub_enter(area, function) - area->address) - THUNK_USED) &
        0xf0;
    uint8_t from = high | (is_counting ? TO_COMMON : TO_COUNT);
    uint8_t to = high | (is_counting ? TO_COUNT : TO_COMMON);
    struct mr_patch patch;
    bool is_done;

    mr_patch_open(&patch, &thunks);
    is_done = mr_patch_swap(&patch, at, from, to);
    return mr_patch_close(&patch) == MR_OK && is_done;
}
