/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmillrace_sites.a: one object, linked into each executable and shared library that is
 * built with patchable sites. All of it is hidden: every module has its own __fentry__,
 * __fentry_always__ and __return__, so that the calls of exactly these are this module's
 * sites.
 *
 * They return at once: so a site behaves until the constructor below has turned it into
 * its off form, and in programs that are started with MILLRACE_DISABLED=1. No register is
 * touched.
 *
 * The constructor runs before every other of the module (.init_array.00100; compilers
 * refuse priorities of that range, programs use 101 and above), the destructor after them.
 */
#if defined(__x86_64__)
    .text
    .p2align 4
    .globl __fentry__
    .hidden __fentry__
    .type __fentry__, @function
__fentry__:
    .cfi_startproc
    endbr64
    ret
    .cfi_endproc
    .size __fentry__, . - __fentry__

    /* Of functions with MR_ALWAYS_TRACE, so that it can be told which they are. */
    .p2align 4
    .globl __fentry_always__
    .hidden __fentry_always__
    .type __fentry_always__, @function
__fentry_always__:
    .cfi_startproc
    endbr64
    ret
    .cfi_endproc
    .size __fentry_always__, . - __fentry_always__

    .p2align 4
    .globl __return__
    .hidden __return__
    .type __return__, @function
__return__:
    .cfi_startproc
    endbr64
    ret
    .cfi_endproc
    .size __return__, . - __return__

    .p2align 4
    .type mr_site_module_start, @function
mr_site_module_start:
    .cfi_startproc
    endbr64
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    leaq mr_site_module_self(%rip), %rdi
    call mr_probe_module_add@PLT
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size mr_site_module_start, . - mr_site_module_start

    .p2align 4
    .type mr_site_module_end, @function
mr_site_module_end:
    .cfi_startproc
    endbr64
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    leaq mr_site_module_self(%rip), %rdi
    call mr_probe_module_remove@PLT
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size mr_site_module_end, . - mr_site_module_end

    /* clang's table of sleds, if the module has one: the linker makes these names. */
    .weak __start_xray_instr_map
    .hidden __start_xray_instr_map
    .weak __stop_xray_instr_map
    .hidden __stop_xray_instr_map

    /* struct mr_site_module (probe/sites.h) */
    .section .data.rel.ro, "aw", @progbits
    .p2align 3
    .type mr_site_module_self, @object
mr_site_module_self:
    .quad 2
    .quad __fentry__
    .quad __return__
    .quad __start_xray_instr_map
    .quad __stop_xray_instr_map
    .quad __fentry_always__
    .size mr_site_module_self, . - mr_site_module_self

    .section .init_array.00100, "aw", @init_array
    .p2align 3
    .quad mr_site_module_start
    .section .fini_array.00100, "aw", @fini_array
    .p2align 3
    .quad mr_site_module_end

    /* Works with indirect-branch tracking and shadow stacks; does not take them away. */
    .section .note.gnu.property, "a"
    .p2align 3
    .long 4, 16, 5
    .asciz "GNU"
    .long 0xc0000002, 4, 3, 0
#endif
    .section .note.GNU-stack, "", @progbits
