/* SPDX-License-Identifier: Apache-2.0 */
/*
 * millrace, the probe: what a program may call. C11 or C++11, alone; link with
 * `pkg-config --libs millrace`.
 *
 * Nothing happens unless the environment names a receiver (MILLRACE_ENDPOINT), or lets
 * one be named later (MILLRACE_CONTROL=1 and `millrace attach`), or asks for a flight
 * recorder (MILLRACE_POLICY=overwrite, which has no receiver); then every span, and every
 * function compiled with `pkg-config --cflags millrace`, is recorded. All functions may
 * be called from any thread and from signal handlers, unless it says otherwise; none
 * changes errno.
 *
 *     #include <millrace/probe.h>
 *
 *     int serve(struct request *request)
 *     {
 *         MR_SPAN("serve");               // until the end of this block, however it ends
 *         return answer(request);
 *     }
 *
 * Limits: 65,535 different spans per process; names to 127 bytes.
 */
#ifndef MILLRACE_PROBE_H
#define MILLRACE_PROBE_H

#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

/*
 * Before a function, in C and C++, by every door: it is never traced; it is traced
 * wherever its file is. The second is not inlined; no compiler's own threshold of size
 * leaves it out, and of patchable sites MILLRACE_MIN_SIZE does not either (a hook cannot
 * tell). What MILLRACE_EXCEPT and the like leave out, it does not bring back.
 *
 *     MR_NEVER_TRACE static inline int min(int a, int b) { return a < b ? a : b; }
 */
#if defined(__clang__)
#define MR_NEVER_TRACE __attribute__((no_instrument_function, xray_never_instrument))
#define MR_ALWAYS_TRACE __attribute__((noinline, xray_always_instrument))
#elif defined(MILLRACE_SITES) /* the flags of millrace-patchable */
#define MR_NEVER_TRACE __attribute__((no_instrument_function))
#define MR_ALWAYS_TRACE __attribute__((noinline, fentry_name("__fentry_always__")))
#else
#define MR_NEVER_TRACE __attribute__((no_instrument_function))
#define MR_ALWAYS_TRACE __attribute__((noinline))
#endif

/* Of a span site. */
#define MR_SPAN_ROOT 1u  /* each call begins a call tree of its own */
#define MR_SPAN_OUTER 2u /* a loop or the like: call trees begin below it */

/*
 * A place that is measured. Static, zero but for its first four members; `id` is the
 * library's.
 */
struct mr_span_site {
    const char *name;
    const char *file;
    uint32_t line;
    uint32_t flags; /* MR_SPAN_... */
    uint32_t id;
};

#define MR_SPAN_SITE_INIT(name_, flags_)                                                 \
    {                                                                                    \
        (name_), __FILE__, (uint32_t)__LINE__, (flags_), 0                               \
    }

/* Not 0 while calls are recorded. Only to be read. */
extern unsigned char mr_probe_active;

/* Called without the jump of a procedure linkage table, where the compiler can. */
#if defined(__x86_64__) && defined(__has_attribute)
#if __has_attribute(noplt)
#define MR_PROBE_DIRECT_ __attribute__((noplt))
#endif
#endif
#if !defined(MR_PROBE_DIRECT_)
#define MR_PROBE_DIRECT_
#endif

/* The parts of the inline functions below that a recording program runs. */
MR_PROBE_DIRECT_ void mr_probe_enter(struct mr_span_site *site);
MR_PROBE_DIRECT_ void mr_probe_exit(struct mr_span_site *site);
void mr_probe_status(int is_failed);

#define MR_PROBE_INLINE_                                                                 \
    static inline __attribute__((always_inline, unused, no_instrument_function))

/* Begins a span. It ends with mr_span_exit() of the same site on the same thread. */
MR_PROBE_INLINE_ void mr_span_enter(struct mr_span_site *site)
{
    if (__builtin_expect(__atomic_load_n(&mr_probe_active, __ATOMIC_RELAXED), 0))
        mr_probe_enter(site);
}

MR_PROBE_INLINE_ void mr_span_exit(struct mr_span_site *site)
{
    if (__builtin_expect(__atomic_load_n(&mr_probe_active, __ATOMIC_RELAXED), 0))
        mr_probe_exit(site);
}

/*
 * The innermost call that is open on this thread, a span or a recorded function, has
 * failed: it counts as failed when it ends. What encloses it does not. A trace has the
 * status of its root. mr_status_ok() takes it back.
 */
MR_PROBE_INLINE_ void mr_status_failed(void)
{
    if (__builtin_expect(__atomic_load_n(&mr_probe_active, __ATOMIC_RELAXED), 0))
        mr_probe_status(1);
}

MR_PROBE_INLINE_ void mr_status_ok(void)
{
    if (__builtin_expect(__atomic_load_n(&mr_probe_active, __ATOMIC_RELAXED), 0))
        mr_probe_status(0);
}

/* Records calls now: there is a receiver, recording is on, the program has not ended. */
MR_PROBE_INLINE_ int mr_probe_enabled(void)
{
    return __atomic_load_n(&mr_probe_active, __ATOMIC_RELAXED);
}

/*
 * Names the calling thread in what is shown, at most 63 bytes. The thread's name in the
 * system, as it was at its first event, is the default. Not in signal handlers.
 */
void mr_thread_name(const char *name);

/*
 * Waits until all that was recorded before the call is in a receiver's custody. 0, or -1
 * after `timeout_ms`, when nothing was ever recorded, or when there is no receiver (with
 * MILLRACE_ENDPOINT=discard 0 once all of it was thrown away). What lies behind a call whose hook a handler left by longjmp() takes
 * 0.1 s; where that happens again and again it is waited for 1 s, no longer. Not in signal handlers.
 */
int mr_probe_flush(uint32_t timeout_ms);

/*
 * Which functions to switch: those whose name matches one of `only` (NULL: all), none of
 * `except`, and that have at least `min_size` bytes of code, or a loop. Globs as of
 * fnmatch(3); the lists end with NULL. The same as `millrace attach --only --except --min-size`.
 */
struct mr_probe_filter {
    const char *const *only;
    const char *const *except;
    uint64_t min_size;
};

/*
 * Switches recording on (not 0) or off, for the functions of `filter`, or for everything,
 * spans too, where it is NULL. On needs a receiver. Calls that are open at that moment
 * are shown as incomplete. Takes some milliseconds. 0, or -1 where that cannot be done.
 * Not in signal handlers, nor in a forked child of a program with threads before exec.
 */
int mr_probe_switch(int is_on, const struct mr_probe_filter *filter);

/*
 * What became of the events of this process so far. Exact when the threads rest and
 * mr_probe_flush() has returned 0: then every call of a hook or span function is in
 * events_written or in one of the losses.
 */
struct mr_probe_counts {
    uint64_t events_written; /* handed to the sender */
    uint64_t events_acked;   /* of these, in a receiver's custody */
    uint64_t lost_ring_full; /* policy drop */
    uint64_t lost_block_timeout;
    uint64_t lost_budget; /* threads without a ring: MILLRACE_MEMORY */
    uint64_t lost_nested; /* in a signal handler inside the probe's slow path */
    uint64_t lost_exit;   /* after the end of their thread */
    /* Of those written, made ready to be sent and thrown away: MILLRACE_ENDPOINT=discard. */
    uint64_t events_discarded;
};

/* 0, or -1 when nothing was ever recorded (all are 0 then). Not in signal handlers. */
int mr_probe_stats(struct mr_probe_counts *stats);

/*
 * How events are sent (MILLRACE_ENCODING), and what that took so far. 0, or -1 when
 * nothing is being recorded. Not in signal handlers.
 */
struct mr_probe_link_info {
    const char *encoding; /* "words", "compact" or "compact+zstd"; static, as is reason */
    const char *reason;   /* of the choice */
    uint64_t changes;     /* of the encoding */
    uint64_t events;      /* written as frames */
    uint64_t bytes;       /* of these frames */
    uint64_t encode_ns;   /* of the probe's own thread, beyond copying words */
};

int mr_probe_link(struct mr_probe_link_info *link);

/*
 * Traces across threads and processes: what one call tree asks of another is one trace.
 *
 *     struct job { struct mr_token token; ... };       // to another thread of the process
 *     job.token = mr_capture(); push(queue, &job);
 *     pop(queue, &job); mr_attach(job.token); work(&job); mr_detach();
 *
 *     struct mr_traceparent parent;                    // to another process
 *     char header[MR_TRACEPARENT_SIZE];
 *     if (mr_send(&parent))
 *         add_header("traceparent", mr_traceparent_format(&parent, header));
 *     ...
 *     mr_traceparent_parse(value, value_size, &parent);
 *     mr_receive(&parent);
 *     answer(request);
 *
 * Not in signal handlers. While nothing is recorded they do nothing: mr_send() returns 0,
 * and a token that was captured then is zero, which is nothing to attach.
 */

/* A place where a call tree handed work to another thread. A plain value; for one attach. */
struct mr_token {
    uint64_t id;                 /* unique in its process; 0: none */
    uint64_t trace_hi, trace_lo; /* of the thread that captured; 0: it had none */
};

/* Fields of a W3C Trace Context `traceparent` (www.w3.org/TR/trace-context/). */
struct mr_traceparent {
    uint64_t trace_hi, trace_lo; /* trace-id, not 0 */
    uint64_t span;               /* parent-id, not 0: of this message alone */
    uint8_t flags;               /* trace-flags; bit 0: sampled */
};

#define MR_TRACEPARENT_SIZE 56 /* of its text, with the zero that ends it */

/* Writes version 00, "00-<32 hex>-<16 hex>-<2 hex>". Returns `text`. */
char *mr_traceparent_format(const struct mr_traceparent *parent,
                            char text[MR_TRACEPARENT_SIZE]);
/*
 * Reads a header value of `size` bytes as the specification says: lower-case digits, no
 * zero ids, version 00 of exactly 55 bytes, later versions by their first 55, never ff.
 * 0; or -1, with zeros in `parent`, where it is anything else.
 */
int mr_traceparent_parse(const char *text, uint64_t size, struct mr_traceparent *parent);

/* Parts of the functions below that a recording program runs. */
int mr_probe_send(struct mr_traceparent *parent);
void mr_probe_receive(const struct mr_traceparent *parent);
void mr_probe_capture(struct mr_token *token);
void mr_probe_attach(const struct mr_token *token);
void mr_probe_detach(void);

/*
 * The innermost call tree of this thread sends a message now, with these fields. They carry
 * the trace id of what the thread received or attached last, else a new one. 1; or 0, and
 * zeros in `parent`, when nothing is recorded.
 */
MR_PROBE_INLINE_ int mr_send(struct mr_traceparent *parent)
{
    parent->trace_hi = parent->trace_lo = parent->span = 0;
    parent->flags = 0;
    if (__builtin_expect(__atomic_load_n(&mr_probe_active, __ATOMIC_RELAXED), 0))
        return mr_probe_send(parent);
    return 0;
}

/*
 * A message came: the call tree that is open on this thread, or else the next one that
 * opens, belongs to its trace; so do sends until the next receive or mr_detach(). NULL: a
 * request that came without the header begins a trace here. Fields of zeros (a header that
 * could not be read) do the same, and are counted.
 */
MR_PROBE_INLINE_ void mr_receive(const struct mr_traceparent *parent)
{
    if (__builtin_expect(__atomic_load_n(&mr_probe_active, __ATOMIC_RELAXED), 0))
        mr_probe_receive(parent);
}

/* The innermost call tree of this thread hands work over now. One token for each attach. */
MR_PROBE_INLINE_ struct mr_token mr_capture(void)
{
    struct mr_token token = {0, 0, 0};

    if (__builtin_expect(__atomic_load_n(&mr_probe_active, __ATOMIC_RELAXED), 0))
        mr_probe_capture(&token);
    return token;
}

/*
 * From here to mr_detach() on this thread, call trees belong to the trace that the token
 * was captured in; calls that open below the calling function begin call trees of their
 * own, but inside one of another attach, whose calls they are. In the process that captured
 * it, not in a forked child. Nests 8 deep: of more, the outermost is forgotten. Where a
 * detach is missing, the next attach outside of what was called since takes its place.
 */
MR_PROBE_INLINE_ void mr_attach(struct mr_token token)
{
    if (__builtin_expect(__atomic_load_n(&mr_probe_active, __ATOMIC_RELAXED), 0))
        mr_probe_attach(&token);
}

/*
 * Ends the innermost mr_attach(), or what mr_receive() began, of this thread; both, where that attach was over already, as its
 * detach had been left out.
 */
MR_PROBE_INLINE_ void mr_detach(void)
{
    if (__builtin_expect(__atomic_load_n(&mr_probe_active, __ATOMIC_RELAXED), 0))
        mr_probe_detach();
}

/* What the compiler calls for functions built with -finstrument-functions. */
void __cyg_profile_func_enter(void *function, void *call_site);
void __cyg_profile_func_exit(void *function, void *call_site);

#define MR_PROBE_JOIN2_(a_, b_) a_##b_
#define MR_PROBE_JOIN_(a_, b_) MR_PROBE_JOIN2_(a_, b_)

#if defined(__cplusplus)
} /* extern "C" */

struct mr_span_guard_ {
    struct mr_span_site *site;

    __attribute__((always_inline, no_instrument_function)) explicit mr_span_guard_(
        struct mr_span_site *site_)
        : site(site_)
    {
        mr_span_enter(site);
    }
    __attribute__((always_inline, no_instrument_function)) ~mr_span_guard_()
    {
        mr_span_exit(site);
    }
    mr_span_guard_(const mr_span_guard_ &) = delete;
    mr_span_guard_ &operator=(const mr_span_guard_ &) = delete;
};

/*
 * mr_attach() and mr_detach() around a block:
 *
 *     mr_attached attached(job.token);
 */
struct mr_attached {
    __attribute__((always_inline, no_instrument_function)) explicit mr_attached(
        const struct mr_token &token)
    {
        mr_attach(token);
    }
    __attribute__((always_inline, no_instrument_function)) ~mr_attached()
    {
        mr_detach();
    }
    mr_attached(const mr_attached &) = delete;
    mr_attached &operator=(const mr_attached &) = delete;
};

#define MR_SPAN_FLAGS(name_, flags_)                                                     \
    static struct mr_span_site MR_PROBE_JOIN_(mr_span_site_, __LINE__) =                 \
        MR_SPAN_SITE_INIT(name_, flags_);                                                \
    mr_span_guard_ MR_PROBE_JOIN_(mr_span_guard_,                                        \
                                  __LINE__)(&MR_PROBE_JOIN_(mr_span_site_, __LINE__))
#else
MR_PROBE_INLINE_ struct mr_span_site *mr_span_begin_(struct mr_span_site *site)
{
    mr_span_enter(site);
    return site;
}

MR_PROBE_INLINE_ void mr_span_end_(struct mr_span_site **site)
{
    mr_span_exit(*site);
}

#define MR_SPAN_FLAGS(name_, flags_)                                                     \
    static struct mr_span_site MR_PROBE_JOIN_(mr_span_site_, __LINE__) =                 \
        MR_SPAN_SITE_INIT(name_, flags_);                                                \
    struct mr_span_site *MR_PROBE_JOIN_(mr_span_, __LINE__)                              \
        __attribute__((cleanup(mr_span_end_), unused)) =                                 \
            mr_span_begin_(&MR_PROBE_JOIN_(mr_span_site_, __LINE__))
#endif

/*
 * A span from here to the end of the block: return, break, exceptions (C++), and
 * pthread_exit() where the C code is built with -fexceptions. `name_` is a string that
 * lives as long as the program. MR_SPAN_FLAGS() also takes MR_SPAN_ROOT or MR_SPAN_OUTER.
 */
#define MR_SPAN(name_) MR_SPAN_FLAGS(name_, 0u)

#endif
