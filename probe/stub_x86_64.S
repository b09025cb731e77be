/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common stubs of patchable sites; probe/stub.h says what they are. On the stack when
 * they begin:
 *
 *     8(%rsp)  where to return to
 *     0(%rsp)  upper half of the event's word: direction and site
 *
 * At an exit before a tail call every register may hold an argument, or the address that
 * is jumped to; at an entry all but %r11 may. So all are kept. The flags are free at both:
 * no calling convention passes them. The words that are pushed lie where the call that led
 * here would have put its own: no red zone is open at an entry, and at an exit the frame
 * is gone.
 */
#include "probe/stub.h"

#if defined(__x86_64__)

/* A register onto the stack, where unwinders find it, and back. */
    .macro save register
    pushq \register
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset \register, 0
    .endm

    .macro restore register
    popq \register
    .cfi_adjust_cfa_offset -8
    .cfi_restore \register
    .endm

    .macro save_four
    save %rax
    save %rcx
    save %rdx
    save %rsi
    .endm

    .macro restore_four
    restore %rsi
    restore %rdx
    restore %rcx
    restore %rax
    .endm

/* To `off` while nothing is recorded. */
    .macro begin_stub name, off
    .p2align 6
    .globl \name
    .hidden \name
    .type \name, @function
\name:
    .cfi_startproc
    .cfi_def_cfa_offset 16
    endbr64
    cmpl $0, mr_hook_state(%rip) /* clock */
    je \off
    .endm

    .macro end_stub name
    .cfi_endproc
    .size \name, . - \name
    .endm

/* Past the event's word, to where the site goes on. */
    .macro return_to_site
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    ret
    .endm

/* Reserves an index with one instruction: a signal handler gets this one or another. */
    .text
    begin_stub mr_site_stub, .Lreturn
    save_four

.Lread: /* the four are saved */
    rdtsc
    movq mr_thread_self@GOTTPOFF(%rip), %rcx
    shlq $32, %rdx
    orq %rax, %rdx
    shrq $31, %rdx
    movq %rdx, %rsi /* the period */
    cmpq $0, %fs:MR_STUB_THREAD_WORDS(%rcx)
    je .Lwithout_ring
    cmpq %fs:MR_STUB_THREAD_PERIOD(%rcx), %rsi
    movq $-1, %rdx /* MR_INDEX_NONE; keeps the flags */
    jne .Lslow
    movl $1, %edx
    xaddq %rdx, %fs:MR_STUB_THREAD_CURSOR(%rcx)
    cmpq %fs:MR_STUB_THREAD_LIMIT(%rcx), %rdx
    jae .Lslow
    cmpq %fs:MR_STUB_THREAD_PERIOD(%rcx), %rsi
    jne .Lslow

.Lput: /* %rax: ticks, its low half alone; %rdx: index; %rcx: the thread */
    /* The slot: words + (index & mask). */
    movq %fs:MR_STUB_THREAD_MASK(%rcx), %rsi
    andq %rdx, %rsi
    shlq $3, %rsi
    addq %fs:MR_STUB_THREAD_WORDS(%rcx), %rsi
    /*
     * Asks for the line of the events 32 words on, which was last with the writer. What is
     * pushed here makes eight stores of an event, twice a hook's, and a processor that
     * holds 104 of them waits sooner. Past the lap's end it asks in vain: a hint.
     */
    prefetchw MR_STUB_AHEAD_BYTES(%rsi)
    /* The lap bit: ~(index << lap_shift), its highest bit. */
    movl %fs:MR_STUB_THREAD_LAP_SHIFT(%rcx), %ecx
    shlq %cl, %rdx
    notq %rdx
    shrq $63, %rdx
    shlq $63, %rdx
    /* Low half: the time, as rdtsc left it. */
    orq %rdx, %rax
    movl 32(%rsp), %ecx
    shlq $32, %rcx
    orq %rcx, %rax
    movq %rax, (%rsi) /* [W] of probe/ring.c */

.Lrestore:
    restore_four
.Lreturn:
    return_to_site
    end_stub mr_site_stub

/*
 * What is rare. %rax, %rcx, %rdx, %rsi are saved already, in that order; the rest that a
 * C function may change is saved here. %rbp keeps the stack as it was, which is aligned
 * for the call.
 */
    .macro save_rest
    save %rbp
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    pushq %rdi
    pushq %r8
    pushq %r9
    pushq %r10
    pushq %r11
    movl 40(%rbp), %edi /* the upper half */
    .endm

    .macro restore_rest
    movq -8(%rbp), %rdi
    movq -16(%rbp), %r8
    movq -24(%rbp), %r9
    movq -32(%rbp), %r10
    movq -40(%rbp), %r11
    movq %rbp, %rsp
    .cfi_def_cfa_register %rsp
    restore %rbp
    .endm

    .macro begin_saved name
    .p2align 4
    .type \name, @function
\name:
    .cfi_startproc
    .cfi_def_cfa_offset 48
    .cfi_rel_offset %rax, 24
    .cfi_rel_offset %rcx, 16
    .cfi_rel_offset %rdx, 8
    .cfi_rel_offset %rsi, 0
    .endm

    .macro leave_slowly
    restore_rest
    jmp .Lrestore
    .endm

/* The rest is saved, the stack aligned. */
    .macro call_and_leave function
    call \function
    leave_slowly
    .endm

    begin_saved mr_site_stub_slow
.Lslow:
    save_rest
    andq $-16, %rsp
    xchgq %rdx, %rsi /* the index second; ticks, put together again, third */
    shrq $1, %rdx
    shlq $32, %rdx
    orq %rax, %rdx
    call_and_leave mr_site_event_slow
    end_stub mr_site_stub_slow

/* An event of a thread that has no ring: through libc, which may use SIMD registers. */
    begin_saved mr_site_stub_without_ring
.Lwithout_ring:
    save_rest
    subq $MR_STUB_XSAVE_BYTES, %rsp
    andq $-64, %rsp
    cmpl $0, mr_stub_has_xsave(%rip)
    je .Lfxsave
    /* The header's bytes that xsave leaves must be 0 for xrstor. */
    xorl %eax, %eax
    movq %rax, 512(%rsp)
    movq %rax, 520(%rsp)
    movq %rax, 528(%rsp)
    movq %rax, 536(%rsp)
    movq %rax, 544(%rsp)
    movq %rax, 552(%rsp)
    movq %rax, 560(%rsp)
    movq %rax, 568(%rsp)
    movl $MR_STUB_XSAVE_MASK, %eax
    xorl %edx, %edx
    xsave64 (%rsp)
    call mr_site_event_without_ring
    movl $MR_STUB_XSAVE_MASK, %eax
    xorl %edx, %edx
    xrstor64 (%rsp)
    jmp .Lrestored
.Lfxsave:
    fxsave64 (%rsp)
    call mr_site_event_without_ring
    fxrstor64 (%rsp)
.Lrestored:
    leave_slowly
    end_stub mr_site_stub_without_ring

/*
 * An event that took number %rdx and must not use it: mr_ring_event_again().
 */
    begin_saved mr_site_stub_again
.Lagain:
    save_rest
    movq %rdx, %rsi
    andq $-16, %rsp
    call_and_leave mr_site_event_again
    end_stub mr_site_stub_again

/*
 * Clock hybrid: mostly the time of the last read. mr_ring_event_hybrid(), probe/ring.h;
 * a view with a number is that of a thread with a ring.
 */
    begin_stub mr_site_stub_hybrid, .Lreturn_hybrid
    .cfi_remember_state
    save_four
    movq mr_thread_self@GOTTPOFF(%rip), %rcx
    movq mr_tick(%rip), %rdx /* the number */
    cmpq %fs:MR_STUB_THREAD_TICK_NUMBER(%rcx), %rdx
    jne .Lread_hybrid
    movl 32(%rsp), %eax
    shlq $32, %rax
    orq %fs:MR_STUB_THREAD_TICK_STAMP(%rcx), %rax
    movq %fs:MR_STUB_THREAD_TICK_BASE(%rcx), %rsi /* not behind the look at the stamp */
    movl $1, %edx
    xaddq %rdx, %fs:MR_STUB_THREAD_CURSOR(%rcx)
    cmpq %fs:MR_STUB_THREAD_TICK_UNTIL(%rcx), %rdx
    jae .Lagain_hybrid
    cmpl %fs:MR_STUB_THREAD_TICK_STAMP(%rcx), %eax
    jne .Lagain_hybrid
    movq %rax, (%rsi,%rdx,8) /* [W] of probe/ring.h */
    prefetchw MR_STUB_AHEAD_HYBRID_BYTES(%rsi,%rdx,8)
    .cfi_remember_state
    restore_four
    return_to_site
.Lread_hybrid:
    .cfi_restore_state
    .cfi_remember_state
    cmpq %fs:MR_STUB_THREAD_TICK_SEEN(%rcx), %rdx
    je .Lread /* it does not move, or nobody ticks */
    cmpq $0, %fs:MR_STUB_THREAD_WORDS(%rcx)
    je .Lwithout_ring
    jmp .Lthrough_c
.Lagain_hybrid:
    .cfi_restore_state
    jmp .Lagain
.Lreturn_hybrid:
    .cfi_restore_state
    return_to_site
    end_stub mr_site_stub_hybrid

/*
 * Entries of pruned functions: mr_pruned_find() and mr_pruned_count(), probe/pruned.h. No
 * clock is read. A handler counts in one instruction, before or after ours.
 */
    begin_stub mr_site_stub_count, .Lreturn_count
    .cfi_remember_state
    save_four
    movl 32(%rsp), %eax /* the site: an enter has no other bits */
    leaq mr_pruned(%rip), %rsi
    imull $MR_STUB_PRUNED_HASH, %eax, %ecx
    shrl $(32 - MR_STUB_PRUNED_SLOTS_LOG2), %ecx
.Llook:
    movl MR_STUB_PRUNED_SITES(%rsi,%rcx,4), %edx
    cmpl %eax, %edx
    je .Lfound
    testl %edx, %edx
    jz .Lrestore_count
    incl %ecx
    andl $((1 << MR_STUB_PRUNED_SLOTS_LOG2) - 1), %ecx
    jmp .Llook
.Lalone: /* of a thread without a ring, or before it has counts */
    testl $MR_STUB_THREAD_OWN, %fs:MR_STUB_THREAD_FLAGS(%rax)
    jnz .Lrestore_count
    lock incq MR_STUB_PRUNED_ALONE(%rsi,%rcx,8)
    jmp .Lrestore_count
.Lfound:
    movq mr_thread_self@GOTTPOFF(%rip), %rax
    movq %fs:MR_STUB_THREAD_RING(%rax), %rdx
    testq %rdx, %rdx
    jz .Lalone
    movq MR_STUB_RING_PRUNED(%rdx), %rdx
    testq %rdx, %rdx
    jz .Lalone
    incq (%rdx,%rcx,8)
.Lrestore_count:
    restore_four
    return_to_site
.Lreturn_count:
    .cfi_restore_state
    return_to_site
    end_stub mr_site_stub_count

/* For clocks that the stubs above do not know: every event through C. */
    begin_stub mr_site_stub_general, .Lreturn_general
    .cfi_remember_state
    save_four
    movq mr_thread_self@GOTTPOFF(%rip), %rcx
    cmpq $0, %fs:MR_STUB_THREAD_WORDS(%rcx)
    je .Lwithout_ring
.Lthrough_c: /* words is not 0 */
    save_rest
    andq $-16, %rsp
    call_and_leave mr_site_event
.Lreturn_general:
    .cfi_restore_state
    return_to_site
    end_stub mr_site_stub_general
#endif
    .section .note.GNU-stack, "", @progbits
