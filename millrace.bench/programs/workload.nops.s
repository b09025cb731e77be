	.file	"workload.c"
	.text
	.p2align 4
	.globl	workload_tiny
	.type	workload_tiny, @function
workload_tiny:
.LFB0:
	.cfi_startproc
	.byte 0xa9,0x10,0x20,0x30,0,0x90
	leal	1(%rdi), %eax
	.byte 0xa9,0x10,0x20,0x30,0
	ret
	.cfi_endproc
.LFE0:
	.size	workload_tiny, .-workload_tiny
	.p2align 4
	.globl	workload_rec10
	.type	workload_rec10, @function
workload_rec10:
.LFB1:
	.cfi_startproc
	.byte 0xa9,0x10,0x20,0x30,0,0x90
	pushq	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset 3, -16
	movl	%esi, %ebx
	cmpl	$1, %esi
	jbe	.L4
	leal	-1(%rsi), %esi
	call	workload_rec10
	movl	%eax, %edi
.L4:
	movl	%edi, %eax
	xorl	%ebx, %edi
	popq	%rbx
	.cfi_def_cfa_offset 8
	shrl	$3, %eax
	xorl	%edi, %eax
	.byte 0xa9,0x10,0x20,0x30,0
	ret
	.cfi_endproc
.LFE1:
	.size	workload_rec10, .-workload_rec10
	.p2align 4
	.globl	workload_body
	.type	workload_body, @function
workload_body:
.LFB2:
	.cfi_startproc
	.byte 0xa9,0x10,0x20,0x30,0,0x90
	movl	%edi, %eax
	movl	$20, %ecx
	.p2align 4,,10
	.p2align 3
.L7:
	movl	%eax, %edx
	shrl	$15, %edx
	xorl	%eax, %edx
	imull	$739982445, %edx, %edx
	leal	1(%rdx), %eax
	subl	$1, %ecx
	jne	.L7
	.byte 0xa9,0x10,0x20,0x30,0
	ret
	.cfi_endproc
.LFE2:
	.size	workload_body, .-workload_body
	.ident	"GCC: (Debian 12.2.0-14+deb12u1) 12.2.0"
	.section	.note.GNU-stack,"",@progbits
