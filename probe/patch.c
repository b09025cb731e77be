/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/patch.h"

#include "probe/arch.h"

#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of code that is writable at a time: few calls, and not the whole program at once. */
#define WINDOW_BYTES (UINT64_C(1) << 20)
#define PAGE_BYTES UINT64_C(4096)

static void *pointer_to(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

void mr_patch_open(struct mr_patch *patch, const struct mr_module *module)
{
    *patch = (struct mr_patch){.module = module, .memory_fd = -1};
}

static void close_window(struct mr_patch *patch)
{
    if (patch->window_start != patch->window_end)
        (void)mprotect(pointer_to(patch->window_start),
                       patch->window_end - patch->window_start, PROT_READ | PROT_EXEC);
    patch->window_start = patch->window_end = 0;
}

/*
 * The window is cut at the ends of the code. Between them may be a hole or a segment that
 * is no code, where a linker script wants it so: then mprotect() fails or gives that
 * segment rights that it had not, so a module with several pieces of code gets windows of
 * the page alone.
 */
static bool open_window(struct mr_patch *patch, uint64_t address, size_t size)
{
    const struct mr_module *module = patch->module;
    uint64_t start = address & ~(PAGE_BYTES - 1), end = start + WINDOW_BYTES;

    if (end > module->text_end)
        end = module->text_end;
    if (module->text_segments > 1 || end < address + size)
        end = (address + size + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
    close_window(patch);
    if (mprotect(pointer_to(start), end - start, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
        return false;
    patch->window_start = start;
    patch->window_end = end;
    return true;
}

static bool is_writable(struct mr_patch *patch, uint64_t address, size_t size)
{
    if (patch->memory_fd >= 0 || patch->is_refused)
        return false;
    if (address >= patch->window_start && address + size <= patch->window_end)
        return true;
    if (open_window(patch, address, size))
        return true;
    patch->memory_fd = open("/proc/thread-self/mem", O_RDWR | O_CLOEXEC);
    return false;
}

/* The kernel copies a run of bytes as it likes: one byte per call is one store. */
static bool write_by_kernel(struct mr_patch *patch, uint64_t address, uint8_t byte)
{
    if (patch->memory_fd >= 0 && pwrite(patch->memory_fd, &byte, 1, (off_t)address) == 1)
        return true;
    patch->is_refused = true;
    return false;
}

/* ThreadSanitizer has no shadow for code. One byte is one store on every processor. */
MR_ARCH_NO_TSAN MR_NOINLINE static void store_byte(uint64_t address, uint8_t byte)
{
    *(volatile uint8_t *)pointer_to(address) = byte;
}

MR_ARCH_NO_TSAN MR_NOINLINE static uint8_t load_byte(uint64_t address)
{
    return *(const volatile uint8_t *)pointer_to(address);
}

static bool write_byte(struct mr_patch *patch, uint64_t address, uint8_t byte)
{
    if (!is_writable(patch, address, 1))
        return write_by_kernel(patch, address, byte);
    store_byte(address, byte);
    return true;
}

MR_ARCH_NO_TSAN MR_NOINLINE static void store_bytes(uint64_t address,
                                                    const uint8_t *bytes, size_t size)
{
    volatile uint8_t *at = pointer_to(address);

    for (size_t i = 0; i < size; i++)
        at[i] = bytes[i];
}

/* The window may end inside, where a page is all there is of it. */
bool mr_patch_write(struct mr_patch *patch, uint64_t address, const uint8_t *bytes,
                    size_t size)
{
    if (is_writable(patch, address, size)) {
        store_bytes(address, bytes, size);
        return true;
    }
    for (size_t i = 0; i < size; i++)
        if (!write_byte(patch, address + i, bytes[i]))
            return false;
    return true;
}

bool mr_patch_swap(struct mr_patch *patch, uint64_t address, uint8_t from, uint8_t to)
{
    return load_byte(address) == from && write_byte(patch, address, to);
}

/*
 * Registered by the first batch: the command is refused to who is not. Where the kernel
 * has it not (before 4.16), nothing is lost but the promptness: see the argument.
 */
static void synchronise_cores(void)
{
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0)
        return;
    (void)syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0,
                  0);
    (void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
}

enum mr_status mr_patch_close(struct mr_patch *patch)
{
    close_window(patch);
    if (patch->memory_fd >= 0)
        (void)close(patch->memory_fd);
    patch->memory_fd = -1;
    synchronise_cores();
    return patch->is_refused ? MR_EIO : MR_OK;
}
