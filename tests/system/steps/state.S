/* SPDX-License-Identifier: Apache-2.0 */
#include "state.h"
#include "steps.h"

    .text
    .macro put_general state
    .set at, 0
    .irp register, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r12, r13, r14, r15, rsp
    movq %\register, \state+STATE_GENERAL+at(%rip)
    .set at, at + 8
    .endr
    .endm

    .macro load_sse
    .irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    movdqu 64*\i(%rbx), %xmm\i
    .endr
    .endm

    .macro store_sse
    .irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    movdqu %xmm\i, 64*\i(%rbx)
    .endr
    .endm

    .macro load_avx512
    .irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    vmovdqu64 64*\i(%rbx), %zmm\i
    .endr
    .irp i, 0,1,2,3,4,5,6,7
    kmovw STATE_MASKS+8*\i(%rbx), %k\i
    .endr
    .endm

    .macro store_avx512
    .irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    vmovdqu64 %zmm\i, 64*\i(%rbx)
    .endr
    .irp i, 0,1,2,3,4,5,6,7
    kmovw %k\i, STATE_MASKS+8*\i(%rbx)
    .endr
    vzeroupper
    .endm

/* %rdi, %rsi, %rdx: function, what is asked for, how many. */
    .macro state_call set
    .globl state_call_\set
    .type state_call_\set, @function
state_call_\set:
    .cfi_startproc
    .irp register, rbx, rbp, r12, r13, r14, r15
    pushq %\register
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset \register, 0
    .endr
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    leaq state_in(%rip), %rbx
    ldmxcsr STATE_MXCSR(%rbx)
    fninit
    fldcw STATE_CONTROL(%rbx)
    .irp i, 0,1,2,3,4,5,6,7
    fldt STATE_X87+16*\i(%rbx)
    .endr
    load_\set
    movq %rsi, %rax
    movq %rdx, %rdi
    int3
    /* A value of its own each. */
    .irp register, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
    leaq 0x7654321(%rip), %\register
    .endr
    put_general state_in
    call *(%rsp)
    put_general state_out
    movl $ASK_END, %eax
    int3
    pushfq
    popq state_out+STATE_FLAGS(%rip)
    leaq state_out(%rip), %rbx
    store_\set
    .irp i, 7,6,5,4,3,2,1,0
    fstpt STATE_X87+16*\i(%rbx)
    .endr
    stmxcsr STATE_MXCSR(%rbx)
    fnstcw STATE_CONTROL(%rbx)
    fninit
    pushq $0x1f80
    ldmxcsr (%rsp)
    addq $16, %rsp
    .cfi_adjust_cfa_offset -8
    .irp register, r15, r14, r13, r12, rbp, rbx
    popq %\register
    .cfi_adjust_cfa_offset -8
    .cfi_restore \register
    .endr
    ret
    .cfi_endproc
    .size state_call_\set, . - state_call_\set
    .endm

    state_call sse
    state_call avx512
    .section .note.GNU-stack, "", @progbits
