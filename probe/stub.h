/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stubs: what a patchable site calls. Each function of a module has two thunks in a piece
 * of memory near the module, one for its entry and one for its exits, which differ in the
 * direction bit alone; they push the upper half of the event's word and go on to the one
 * common stub (probe/stub_x86_64.S), which writes the event and returns to the site:
 *
 *     68 word_high      push $site | direction
 *     ff 25 disp        jmp  *common(%rip)         // first 8 bytes of the area, or of a
 *                                                  // pruned function the next 8
 *
 * So every event carries its number as an immediate, nothing is looked up, and the number
 * is that of the function, as the hooks of -finstrument-functions have it.
 *
 *     status = mr_stub_open(&area, &module, function_count, &error);
 *     mr_stub_put(&area, i, site);                     // every function
 *     status = mr_stub_seal(&area, &error);            // executable from here on
 *     address = mr_stub_enter(&area, i);
 *
 * The memory is never writable and executable at once: it is written through one mapping
 * of a memory file and run through another; where files of that kind may not be executed,
 * it is made executable when it stands. After that only mr_stub_count() changes it, for
 * this process alone, until it is unmapped. One thread; maps memory.
 */
#ifndef MR_PROBE_STUB_H
#define MR_PROBE_STUB_H

/* Of struct mr_thread (probe/ring.h), for the assembler; stub.c asserts them. */
#define MR_STUB_THREAD_WORDS 0
#define MR_STUB_THREAD_PERIOD 8
#define MR_STUB_THREAD_CURSOR 16
#define MR_STUB_THREAD_LIMIT 24
#define MR_STUB_THREAD_MASK 32
#define MR_STUB_THREAD_LAP_SHIFT 40
#define MR_STUB_THREAD_FLAGS 44
#define MR_STUB_THREAD_RING 48
#define MR_STUB_THREAD_TICK_NUMBER 104
#define MR_STUB_THREAD_TICK_UNTIL 112
#define MR_STUB_THREAD_TICK_STAMP 120
#define MR_STUB_THREAD_TICK_BASE 128
#define MR_STUB_THREAD_TICK_SEEN 136

/* Of struct mr_ring and of struct mr_pruned (probe/pruned.h), likewise. */
#define MR_STUB_RING_PRUNED 80
#define MR_STUB_PRUNED_SITES 4
#define MR_STUB_PRUNED_ALONE 8200
#define MR_STUB_PRUNED_HASH 0x9e3779b1
#define MR_STUB_PRUNED_SLOTS_LOG2 11
#define MR_STUB_THREAD_OWN 1

/*
 * Room for all that xsave stores of x87, SSE, AVX and AVX-512 in its standard form: the
 * last of them ends at byte 2688 (Intel SDM vol. 1, 13.4 and CPUID leaf 0xd).
 */
#define MR_STUB_XSAVE_BYTES 2688
#define MR_STUB_XSAVE_MASK 0xe7

/* How far ahead a line of the ring is asked for: MR_RING_AHEAD_BYTES, and that with clock hybrid. */
#define MR_STUB_AHEAD_BYTES 256
#define MR_STUB_AHEAD_HYBRID_BYTES 1536

#ifndef __ASSEMBLER__

#include "base/compiler.h"
#include "base/error.h"
#include "probe/modules.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_stub_area {
    uint8_t *write; /* while it is filled */
    uint64_t address;
    uint64_t bytes;
    int fd; /* of the memory file while it is filled; -1: none */
};

/*
 * MR_ELIMIT: no room within 2 GiB of the module; MR_EIO: the system lets nobody make code;
 * MR_ENOMEM.
 */
enum mr_status mr_stub_open(struct mr_stub_area *area, const struct mr_module *module,
                            uint32_t function_count, struct mr_error *error);
void mr_stub_put(struct mr_stub_area *area, uint32_t function, uint32_t site);
enum mr_status mr_stub_seal(struct mr_stub_area *area, struct mr_error *error);
void mr_stub_close(struct mr_stub_area *area);

/* Where the thunks of a function are. */
uint64_t mr_stub_enter(const struct mr_stub_area *area, uint32_t function);
uint64_t mr_stub_exit(const struct mr_stub_area *area, uint32_t function);

/*
 * Whether `address` is an instruction of a thunk of the area; bytes that lie on the stack
 * then, above the address to return to.
 */
bool mr_stub_is_thunk(const struct mr_stub_area *area, uint64_t address,
                      uint64_t *pushed);

/*
 * From here on the thunk of the function's entry goes to mr_site_stub_count, or to the
 * common stub again: one byte of its jump, as docs/why/2026-11-20-live-patching.md has it,
 * while other threads run it. False: the system lets nobody write to it.
 */
bool mr_stub_count(const struct mr_stub_area *area, uint32_t function, bool is_counting);

/*
 * The common stub, entered with the upper half of the event's word on the stack, below
 * the address to return to. It is the fast path of mr_ring_event() in assembler: keep the
 * two alike. Changes no register but the flags, and no floating-point or SIMD state.
 *
 * mr_site_stub_hybrid is mr_ring_event_hybrid() in the same way; where nobody ticks it goes
 * on as mr_site_stub, and what shares its read with later ones goes through C. Another clock: mr_site_stub_general calls mr_site_event() for each
 * event, which is what hooks do, as the compiler made it. A faster one needs a stub of
 * its own here and a line in common_stub() of stub.c.
 */
MR_HIDDEN void mr_site_stub(void);
MR_HIDDEN void mr_site_stub_hybrid(void);
MR_HIDDEN void mr_site_stub_general(void);
/* Of a pruned function's entry: counts the call, as mr_pruned_count() does for hooks. */
MR_HIDDEN void mr_site_stub_count(void);

/* What the stubs call: built without floating-point and SIMD instructions. */
MR_HIDDEN void mr_site_event(uint64_t word_high);
MR_HIDDEN void mr_site_event_slow(uint64_t word_high, uint64_t index, uint64_t ticks);
MR_HIDDEN void mr_site_event_again(uint64_t word_high, uint64_t index);
/* With the floating-point and SIMD state saved: goes through libc. */
MR_HIDDEN void mr_site_event_without_ring(uint64_t word_high);

/* Not 0: the processor has xsave, else fxsave. Set before any stub runs. */
MR_HIDDEN extern uint32_t mr_stub_has_xsave;

#endif
#endif
