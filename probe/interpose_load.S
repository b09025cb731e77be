/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlopen(name, mode): notes it, and jumps to libc's with the caller's return address, by
 * which that finds the caller's run path, $ORIGIN and namespace. A compiler's tail call
 * would be one only if it likes.
 */
    .text
    .globl dlopen
    .type dlopen, %function
    .p2align 4
dlopen:
    .cfi_startproc
#if defined(__x86_64__)
    endbr64
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call mr_interpose_dlopen
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    jmp *%rax
#elif defined(__aarch64__)
    hint #34 /* bti c */
    stp x29, x30, [sp, #-32]!
    .cfi_adjust_cfa_offset 32
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp x0, x1, [sp, #16]
    bl mr_interpose_dlopen
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_adjust_cfa_offset -32
    .cfi_restore x29
    .cfi_restore x30
    br x16
#else
#error "no dlopen() for this processor"
#endif
    .cfi_endproc
    .size dlopen, . - dlopen
    .section .note.GNU-stack, "", %progbits
