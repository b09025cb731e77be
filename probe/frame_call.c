/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/frame_call.h"

#include <string.h>

#if defined(__x86_64__)
#define CALL_BYTES 5        /* e8 displacement */
#define CALL_MEMORY_BYTES 6 /* ff 15 displacement */

static const uint8_t *bytes_at(uint64_t address)
{
    return (const uint8_t *)(uintptr_t)address;
}

/* `next` is the end of an instruction whose last four bytes are a displacement from there. */
static uint64_t displaced(uint64_t next)
{
    int32_t displacement;

    memcpy(&displacement, bytes_at(next - sizeof(displacement)), sizeof(displacement));
    return next + (uint64_t)(int64_t)displacement;
}

static bool is_code(const struct mr_frames *caller, uint64_t address)
{
    struct mr_unwind_entry entry;

    return mr_unwind_find(&caller->table, address, &entry);
}

/* A word of the caller's module: its table of addresses. */
static uint64_t slot_at(const struct mr_frames *caller, uint64_t address)
{
    uint64_t value;

    if (address % sizeof(value) != 0 ||
        address - caller->table.address > caller->table.size - sizeof(value))
        return 0;
    memcpy(&value, bytes_at(address), sizeof(value));
    return value;
}

/* Of a stub of the linkage table: [endbr64] [bnd] jmp *displacement(%rip). */
static uint64_t through_stub(const struct mr_frames *caller, uint64_t address)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    const uint8_t *at = bytes_at(address);

    if (!is_code(caller, address))
        return address; /* in another module, then, and no stub of this one */
    if (memcmp(at, endbr64, sizeof(endbr64)) == 0)
        at += sizeof(endbr64);
    if (*at == 0xf2)
        at++;
    if (at[0] != 0xff || at[1] != 0x25)
        return address;
    return slot_at(caller, displaced((uintptr_t)at + CALL_MEMORY_BYTES));
}

uint64_t mr_frame_call(const struct mr_frames *caller)
{
    uint64_t next = caller->address;
    const uint8_t *end = bytes_at(next);

    if (caller->is_interrupted || !is_code(caller, next - CALL_MEMORY_BYTES))
        return 0;
    if (end[-CALL_BYTES] == 0xe8)
        return through_stub(caller, displaced(next));
    if (end[-CALL_MEMORY_BYTES] == 0xff && end[-CALL_MEMORY_BYTES + 1] == 0x15)
        return slot_at(caller, displaced(next));
    return 0;
}
#else
uint64_t mr_frame_call(const struct mr_frames *caller)
{
    MR_UNUSED(caller);
    return 0;
}
#endif
