/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record's payload, one word each (docs/FORMAT.md section 6.1, landing):
 *
 *     head | left, innermost | ... | left, outermost | landed in | its caller | ...
 *
 * More frames than a record holds make several; the last one tells where it landed.
 */
#include "probe/landing.h"

#include "probe/frame_call.h"
#include "probe/frames.h"
#include "probe/hook.h"
#include "probe/registry.h"
#include "probe/sites.h"

#include <errno.h>
#include <string.h>

#define ADDRESS_MASK ((UINT64_C(1) << MR_LANDING_TAG_SHIFT) - 1)
/* More are a stack that never ends. */
#define FRAMES_MAX (UINT32_C(1) << 20)
/* How far out a function is looked for that surely is a site, should the one landed in be none. */
#define CALLERS_MAX 32
/* Of a jump, told beside the function landed in, should that be none. */
#define JUMP_CALLERS 6

/* A frame that is named: its function, and where it lies. */
struct frame {
    uint64_t function, base;
    bool is_site; /* of a patchable function */
};

struct landing {
    uint32_t left, count; /* of `words` behind the head */
    uint64_t words[MR_LANDING_WORDS_MAX];
};

/*
 * Frames of this thread that an unwinder landed in, outermost first. One that it leaves
 * then goes on in a part of the function that stands elsewhere, with gcc.
 */
#define LANDED_MAX 8

static _Thread_local struct frame landed[LANDED_MAX] MR_TLS_INITIAL_EXEC;
static _Thread_local uint32_t landed_count MR_TLS_INITIAL_EXEC;

/* Modules that frames of this thread were of; a size of 0: none. */
#define VIEWS 4

static _Thread_local struct mr_sites_view views[VIEWS] MR_TLS_INITIAL_EXEC;
static _Thread_local uint32_t next_view MR_TLS_INITIAL_EXEC;

/* A handler that comes in between finds no view, not half of one. */
static void keep_view(const struct mr_sites_view *view)
{
    struct mr_sites_view *kept = &views[next_view % VIEWS];

    next_view++;
    kept->size = 0;
    atomic_signal_fence(memory_order_seq_cst);
    kept->generation = view->generation;
    kept->count = view->count;
    kept->address = view->address;
    kept->functions = view->functions;
    atomic_signal_fence(memory_order_seq_cst);
    kept->size = view->size;
}

static const struct mr_sites_view *find_view(uint64_t address)
{
    uint32_t generation = mr_sites_generation();

    for (uint32_t i = 0; i < VIEWS; i++)
        if (address - views[i].address < views[i].size &&
            views[i].generation == generation)
            return &views[i];
    return NULL;
}

static bool is_in(const struct mr_frames *frames, uint64_t address)
{
    return address - frames->table.address < frames->table.size;
}

/* Whether a function with patchable sites begins at `address`, in the frame's module or one met before. */
static bool is_site(const struct mr_frames *frames, uint64_t address)
{
    const struct mr_sites_view *kept = find_view(address);
    struct mr_sites_view view;

    if (kept)
        return mr_sites_view_has(kept, address);
    if (!is_in(frames, address) ||
        !mr_sites_look(frames->table.address, frames->table.size, &view))
        return false;
    keep_view(&view);
    return mr_sites_view_has(&view, address);
}

bool mr_landing_is_told(void)
{
    /* Relaxed: a switch is seen a little earlier or later. */
    return mr_load_relaxed(&mr_hook_state.clock) != 0 && mr_thread_self.words &&
           !(mr_hook_state.counted & MR_COUNTED_DEPTH) && mr_probe->config.has_landings;
}

static void flush(struct landing *landing)
{
    struct mr_event event = {
        .bits = mr_word_record(MR_RECORD_LANDING, landing->count + 1, 0, 0),
        .rest = landing->words,
        .words = landing->count + 2};

    landing->words[0] = landing->left;
    if (landing->count > 0)
        mr_ring_event_record(&mr_thread_self, &event,
                             mr_clock_read(mr_probe->clock.mode));
    landing->left = 0;
    landing->count = 0;
}

/* Frames of one function are told apart by where they lie. */
static uint64_t word_of(const struct frame *frame)
{
    uint64_t tag = frame->base >> 4 & MR_LANDING_TAG_MASK;

    return (frame->function & ADDRESS_MASK) | tag << MR_LANDING_TAG_SHIFT;
}

static void put(struct landing *landing, uint64_t word, bool is_left)
{
    if (landing->count == MR_LANDING_WORDS_MAX - 1)
        flush(landing);
    landing->words[1 + landing->count++] = word;
    landing->left += is_left;
}

/* Where it goes on is told in one record, since it is the first frame not left that tells so: `frames` follow. */
static void keep_together(struct landing *landing, uint32_t frames)
{
    if (landing->count + frames > MR_LANDING_WORDS_MAX - 1)
        flush(landing);
}

/* The function of a frame that was landed in before; 0: not known. */
static uint64_t landed_function(uint64_t base)
{
    for (uint32_t i = landed_count; i-- > 0;)
        if (landed[i].base == base)
            return landed[i].function;
    return 0;
}

/* Of what lies further in, nothing is left. */
static void keep_landed(const struct frame *frame)
{
    while (landed_count > 0 && landed[landed_count - 1].base <= frame->base)
        landed_count--;
    if (landed_count == LANDED_MAX)
        memmove(landed, landed + 1, --landed_count * sizeof(landed[0]));
    landed[landed_count++] = *frame;
}

/*
 * The site whose frame this is where its code is of none: a part of the function stands elsewhere. It is
 * what the caller called, or, if that call was indirect, the function that was landed in in this
 * frame before, if `may_be_landed`. 0: none.
 */
static uint64_t find_site(const struct mr_frames *frames, const struct frame *frame,
                          uint64_t called, bool may_be_landed)
{
    uint64_t function = called;

    if (called == 0 && may_be_landed)
        function = landed_function(frame->base);
    return function != frame->function && is_site(frames, function) ? function : 0;
}

/* The frame that `frames` is at, which then is at its caller. False: that is not known. */
static bool take(struct mr_frames *frames, bool may_be_landed, struct frame *frame)
{
    bool has_caller;
    uint64_t site;

    *frame = (struct frame){.function = frames->function, .base = frames->base};
    frame->is_site = is_site(frames, frame->function);
    has_caller = mr_frames_next(frames);
    if (frame->is_site)
        return has_caller;
    site =
        find_site(frames, frame, has_caller ? mr_frame_call(frames) : 0, may_be_landed);
    if (site != 0)
        *frame = (struct frame){.function = site, .base = frame->base, .is_site = true};
    return has_caller;
}

/*
 * At a patchable site frames and calls are one to one, as such functions are not inlined: what
 * is open above the call landed in has been left, also where a frame's function could not be told.
 * With hooks of gcc, calls of inlined functions may still be open in the frame, and
 * their exits come.
 */
static void land(struct landing *landing, struct mr_frames *frames)
{
    struct frame frame;
    bool has_caller = take(frames, true, &frame), is_first = frame.is_site;

    keep_landed(&frame);
    keep_together(landing, 2);
    put(landing, word_of(&frame) | (is_first ? MR_LANDING_ABOVE : 0), false);
    for (uint32_t i = 0; i < CALLERS_MAX && !frame.is_site && has_caller; i++)
        has_caller = take(frames, false, &frame);
    if (frame.is_site && !is_first)
        put(landing, (frame.function & ADDRESS_MASK) | MR_LANDING_ABOVE, false);
    flush(landing);
}

/* To the first frame that is neither ours, nor a personality routine's, nor the unwinder's. */
static bool skip_unwinder(struct mr_frames *frames, uint64_t unwinder)
{
    bool is_next = mr_frames_next(frames);

    while (is_next && !is_in(frames, unwinder))
        is_next = mr_frames_next(frames);
    while (is_next && is_in(frames, unwinder))
        is_next = mr_frames_next(frames);
    return is_next;
}

void mr_landing_pad(uint64_t stack, uint64_t unwinder)
{
    struct landing landing = {.count = 0};
    struct mr_frames frames;
    struct frame frame;
    int saved_errno = errno;
    bool is_next;

    mr_frames_here(&frames);
    is_next = skip_unwinder(&frames, unwinder);
    for (uint32_t i = 0; i < FRAMES_MAX && is_next; i++) {
        if (frames.stack == stack) {
            land(&landing, &frames);
            break;
        }
        is_next = take(&frames, i == 0, &frame);
        put(&landing, word_of(&frame), true);
    }
    flush(&landing); /* of a walk that did not get there: these are left, too */
    errno = saved_errno;
}

/* Whether the frame that holds `stack`, a stack pointer, is one of those that follow; its `stack`. */
static bool find_target(struct mr_frames *frames, uint64_t stack, uint64_t *target)
{
    for (uint32_t i = 0; i < FRAMES_MAX && mr_frames_next(frames); i++)
        if (frames->stack <= stack && stack < frames->base) {
            *target = frames->stack;
            return true;
        }
    return false;
}

/*
 * Who calls setjmp() is not inlined: what is open above its call has been left. Should it be no
 * site, one of its callers is.
 */
static void jump_into(struct landing *landing, struct mr_frames *frames)
{
    struct frame frame = {.is_site = false};
    bool has_caller = true;

    keep_together(landing, 1 + JUMP_CALLERS);
    for (uint32_t i = 0; i <= JUMP_CALLERS && has_caller && !frame.is_site; i++) {
        has_caller = take(frames, i == 0, &frame);
        put(landing, word_of(&frame) | MR_LANDING_ABOVE, false);
    }
    flush(landing);
}

void mr_landing_jump(uint64_t stack)
{
    struct landing landing = {.count = 0};
    struct mr_frames frames;
    struct frame frame;
    int saved_errno = errno;
    uint64_t target;
    bool is_next;

    mr_frames_here(&frames);
    if (find_target(&frames, stack, &target)) {
        mr_frames_here(&frames);
        is_next = mr_frames_next(&frames);
        while (is_next && is_in(&frames, (uintptr_t)mr_landing_jump))
            is_next = mr_frames_next(&frames);
        while (is_next && frames.stack != target) {
            is_next = take(&frames, false, &frame);
            put(&landing, word_of(&frame), true);
        }
        if (is_next)
            jump_into(&landing, &frames);
        flush(&landing);
    }
    errno = saved_errno;
}

#if MR_ARCH_HAS_POINTER_GUARD
/*
 * glibc's struct __jmp_buf_tag: eight words, the stack pointer in number 6, mangled with
 * the pointer guard in the thread's control block (sysdeps/unix/sysv/linux/x86_64/pointer_guard.h,
 * sysdeps/x86_64/jmpbuf-offsets.h). No other libc is taken for it: see probe/interpose_unwind.c.
 */
#define JUMP_STACK 6
#define GUARD_ROTATION 17

uint64_t mr_landing_target(const void *environment)
{
    const uint64_t *words = environment;
    uint64_t mangled = words[JUMP_STACK];

    return (mangled >> GUARD_ROTATION | mangled << (64 - GUARD_ROTATION)) ^
           mr_arch_pointer_guard();
}
#else
uint64_t mr_landing_target(const void *environment)
{
    MR_UNUSED(environment);
    return 0;
}
#endif
