/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The atomics this project uses, named by their order. C11's are used underneath, and not
 * Concurrency Kit's assembly, because ThreadSanitizer sees C11's orders and not ck_pr's;
 * ck gives the pause instruction and, in pipeline/pipe.c, the ring. Ordering sits on the
 * access; free-standing fences are not offered. Objects are declared _Atomic.
 *
 * Use:
 *     _Atomic uint64_t tail;
 *     mr_store_release(&ring->tail, tail + 1);            // [P] pairs with [C] in take()
 *     uint64_t seen = mr_load_acquire(&ring->tail);       // [C]
 */
#ifndef MR_BASE_ATOMICS_H
#define MR_BASE_ATOMICS_H

#include <ck_pr.h>
#include <stdatomic.h>

/*
 * No order at all: counters, or a value only its own thread writes. Say at the use why it
 * suffices.
 */
#define mr_load_relaxed(pointer) atomic_load_explicit((pointer), memory_order_relaxed)
#define mr_store_relaxed(pointer, value)                                                 \
    atomic_store_explicit((pointer), (value), memory_order_relaxed)
#define mr_add_relaxed(pointer, value)                                                   \
    atomic_fetch_add_explicit((pointer), (value), memory_order_relaxed)

/*
 * What was written before a release store is seen after the acquire load that reads its
 * value.
 */
#define mr_load_acquire(pointer) atomic_load_explicit((pointer), memory_order_acquire)
#define mr_store_release(pointer, value)                                                 \
    atomic_store_explicit((pointer), (value), memory_order_release)
#define mr_add_acq_rel(pointer, value)                                                   \
    atomic_fetch_add_explicit((pointer), (value), memory_order_acq_rel)
#define mr_sub_acq_rel(pointer, value)                                                   \
    atomic_fetch_sub_explicit((pointer), (value), memory_order_acq_rel)
#define mr_exchange_acq_rel(pointer, value)                                              \
    atomic_exchange_explicit((pointer), (value), memory_order_acq_rel)

/*
 * True if *pointer was *expected and is now `value`; else *expected holds what was seen.
 */
#define mr_compare_exchange_acq_rel(pointer, expected, value)                            \
    atomic_compare_exchange_strong_explicit((pointer), (expected), (value),              \
                                            memory_order_acq_rel, memory_order_acquire)
#define mr_compare_exchange_relaxed(pointer, expected, value)                            \
    atomic_compare_exchange_strong_explicit((pointer), (expected), (value),              \
                                            memory_order_relaxed, memory_order_relaxed)

/*
 * One total order with all other sequentially consistent accesses: for store-then-load
 * handshakes (Dekker).
 */
#define mr_load_seq_cst(pointer) atomic_load_explicit((pointer), memory_order_seq_cst)
#define mr_store_seq_cst(pointer, value)                                                 \
    atomic_store_explicit((pointer), (value), memory_order_seq_cst)

/*
 * For a counter with a single writer that others read: plain load and store, without the
 * bus lock of a fetch-add.
 */
#define mr_count_single_writer(pointer, value)                                           \
    mr_store_relaxed((pointer), mr_load_relaxed(pointer) + (value))

/* The body of a short spin: tells the processor that this thread waits. */
static inline void mr_cpu_relax(void)
{
    ck_pr_stall();
}

#endif
