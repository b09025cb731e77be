/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field          written by   read by     access
 * magic          constructor  a stranger  release store [H], acquire load [R]: all that is
 *                                         constant before it
 * module_count,  helper       a stranger  release store [P], acquire load [C]
 *  epoch                      threads     epoch: relaxed, a hint
 * modules[]      helper       a stranger  version odd, members, version even, all released
 *                                         [N]; acquired [M], version before and behind
 * last_samples,  helper       a stranger  the other sample, then sample_count, released
 *  sample_count                           [S]; acquired [T]
 */
#include "probe/recorder.h"

#include "base/atomics.h"
#include "base/id.h"
#include "probe/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_BYTES UINT64_C(4096)

static uint64_t pages(uint64_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* The places of everything, from the sizes alone. */
static void lay_out(struct mr_recorder_header *layout, uint64_t memory_bytes)
{
    uint64_t rings = memory_bytes / (2 * MR_RING_BYTES_MIN) + 1;

    layout->version = MR_RECORDER_VERSION;
    layout->header_size = sizeof(*layout);
    layout->module_size = sizeof(struct mr_recorder_module);
    layout->named_size = sizeof(struct mr_named_entry);
    layout->ring_size = sizeof(struct mr_recorder_ring);
    layout->module_max = MR_RECORDER_MODULES_MAX;
    layout->named_max = MR_NAMED_MAX;
    layout->ring_max = rings < UINT32_MAX ? (uint32_t)rings : UINT32_MAX;
    layout->modules_offset = pages(sizeof(*layout));
    layout->named_offset = layout->modules_offset +
                           pages((uint64_t)layout->module_size * layout->module_max);
    layout->rings_offset =
        layout->named_offset + pages((uint64_t)layout->named_size * layout->named_max);
    layout->words_offset =
        layout->rings_offset + pages((uint64_t)layout->ring_size * layout->ring_max);
    layout->file_size = layout->words_offset + pages(memory_bytes);
}

static void copy_text(char *out, size_t capacity, const char *text)
{
    size_t size = strnlen(text, capacity - 1);

    memcpy(out, text, size);
    out[size] = '\0';
}

static void copy_attributes(struct mr_recorder_header *header,
                            const struct mr_config *config)
{
    size_t used = 0;

    for (uint32_t i = 0; i < config->attribute_count; i++) {
        const struct mr_attribute *attribute = &config->attributes[i];
        size_t key = strlen(attribute->key) + 1, value = strlen(attribute->value) + 1;

        if (used + key + value > sizeof(header->attributes))
            return;
        memcpy(header->attributes + used, attribute->key, key);
        memcpy(header->attributes + used + key, attribute->value, value);
        used += key + value;
        header->attribute_count++;
    }
}

static void put_sample(const struct mr_clock_sample *from, struct mr_recorder_sample *to)
{
    *to = (struct mr_recorder_sample){.raw_ticks = from->raw_ticks,
                                      .raw_ns = from->raw_ns,
                                      .real_ticks = from->real_ticks,
                                      .real_ns = from->real_ns,
                                      .error_ticks = from->error_ticks};
}

static void fill_header(struct mr_recorder_header *header,
                        const struct mr_recorder_header *layout,
                        const struct mr_config *config, const struct mr_source *source,
                        const char *exe)
{
    *header = *layout;
    header->id_hi = source->id.hi;
    header->id_lo = source->id.lo;
    header->pid = source->pid;
    header->is_forked = source->is_forked;
    header->start_ns = source->start_ns;
    header->clock_mode = config->clock;
    copy_text(header->host, sizeof(header->host), source->host);
    copy_text(header->app, sizeof(header->app), config->app);
    copy_text(header->program_version, sizeof(header->program_version), config->version);
    copy_text(header->exe, sizeof(header->exe), exe);
    copy_attributes(header, config);
    put_sample(&source->first_sample, &header->first_sample);
    mr_store_release(&header->magic, MR_RECORDER_MAGIC); /* [H] */
}

/* The lock is the mapping's: it stays when the descriptor is closed. */
static enum mr_status map_file(struct mr_recorder *recorder, int fd,
                               const struct mr_recorder_header *layout)
{
    void *memory;

    if (flock(fd, LOCK_EX) != 0 || ftruncate(fd, (off_t)layout->file_size) != 0)
        return MR_EIO;
    memory = mmap(NULL, layout->file_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return MR_EIO;
    recorder->header = memory;
    recorder->size = layout->file_size;
    if (mr_recorder_reserve(recorder, memory, layout->modules_offset))
        return MR_OK;
    errno = ENOSPC;
    (void)munmap(memory, recorder->size);
    recorder->header = NULL;
    return MR_EIO;
}

/* The descriptor is needed where pages cannot be asked for by their address. */
static void keep_or_close(struct mr_recorder *recorder, int fd)
{
    if (madvise(recorder->header, PAGE_BYTES, MADV_POPULATE_WRITE) == 0) {
        (void)close(fd);
        recorder->fd.fd = -1;
    } else {
        (void)mr_own_fd_adopt(&recorder->fd, fd);
    }
}

static enum mr_status open_in(struct mr_recorder *recorder, const char *directory,
                              const struct mr_recorder_header *layout,
                              const struct mr_source *source)
{
    char path[MR_RECORDER_PATH_SIZE + sizeof(MR_RECORDER_SUFFIX_NEW)];
    int fd, size;

    size = snprintf(recorder->path, sizeof(recorder->path),
                    "%s/" MR_RECORDER_PREFIX "%u-%016llx" MR_RECORDER_SUFFIX, directory,
                    source->pid, (unsigned long long)source->id.lo);
    if (size < 0 || size >= (int)sizeof(recorder->path)) {
        errno = ENAMETOOLONG;
        return MR_EIO;
    }
    mr_store_relaxed(&recorder->is_named, !source->is_forked);
    (void)snprintf(path, sizeof(path), "%s%s", recorder->path,
                   source->is_forked ? MR_RECORDER_SUFFIX_NEW : "");
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return MR_EIO;
    mr_own_fd_remember(&recorder->fd, fd); /* for old kernels, until it is mapped */
    if (map_file(recorder, fd, layout) == MR_OK) {
        keep_or_close(recorder, fd);
        return MR_OK;
    }
    size = errno;
    (void)close(fd);
    (void)unlink(path);
    errno = size;
    return MR_EIO;
}

static enum mr_status open_anywhere(struct mr_recorder *recorder,
                                    const struct mr_config *config,
                                    const struct mr_recorder_header *layout,
                                    const struct mr_source *source,
                                    struct mr_error *error)
{
    static const char *const places[] = {"/dev/shm", "/tmp"};
    char text[MR_ERROR_TEXT_SIZE] = "";
    size_t used = 0;

    for (size_t i = 0; i < MR_ARRAY_COUNT(places); i++) {
        const char *place = config->recorder_dir[0] ? config->recorder_dir : places[i];
        int size;

        if (open_in(recorder, place, layout, source) == MR_OK)
            return MR_OK;
        size = snprintf(text + used, sizeof(text) - used, "%s%.60s: %s", used ? "; " : "",
                        place, strerror(errno));
        if (config->recorder_dir[0] || size < 0 || used + (size_t)size >= sizeof(text))
            break;
        used += (size_t)size;
    }
    return mr_error_set(error, MR_EIO,
                        "no place for the flight recorder: %s; name a directory with "
                        "MILLRACE_RECORDER_DIR",
                        text);
}

/* A page that is wiped where the process is copied. */
static _Atomic uint32_t *map_mark(void)
{
    _Atomic uint32_t *mark = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (mark == MAP_FAILED)
        return NULL;
    mr_store_relaxed(mark, 1);
    if (madvise((void *)(uintptr_t)mark, PAGE_BYTES, MADV_WIPEONFORK) == 0)
        return mark;
    (void)munmap((void *)(uintptr_t)mark, PAGE_BYTES);
    return NULL;
}

enum mr_status mr_recorder_open(struct mr_recorder *recorder,
                                const struct mr_config *config,
                                const struct mr_source *source, const char *exe,
                                struct mr_error *error)
{
    struct mr_recorder_header layout;
    enum mr_status status;

    memset(&layout, 0, sizeof(layout));
    memset(recorder, 0, sizeof(*recorder));
    lay_out(&layout, config->memory_bytes);
    status = open_anywhere(recorder, config, &layout, source, error);
    if (status != MR_OK || !recorder->header)
        return status;
    recorder->is_original = map_mark();
    fill_header(recorder->header, &layout, config, source, exe);
    return MR_OK;
}

void mr_recorder_warn(struct mr_recorder *recorder, const char *clock_warning)
{
    copy_text(recorder->header->clock_warning, sizeof(recorder->header->clock_warning),
              clock_warning);
}

void mr_recorder_abandon(struct mr_recorder *recorder)
{
    if (!recorder->header)
        return;
    if (mr_own_fd_is_there(&recorder->fd))
        (void)close(recorder->fd.fd);
    if (recorder->is_original)
        (void)munmap((void *)(uintptr_t)recorder->is_original, PAGE_BYTES);
    (void)munmap(recorder->header, recorder->size);
    recorder->header = NULL;
}

void mr_recorder_end(struct mr_recorder *recorder)
{
    if (!recorder->header)
        return;
    mr_store_relaxed(&recorder->header->is_ended, 1); /* where it cannot be removed */
    (void)unlink(recorder->path);
    if (!mr_load_relaxed(&recorder->is_named)) {
        char path[MR_RECORDER_PATH_SIZE + sizeof(MR_RECORDER_SUFFIX_NEW)];

        (void)snprintf(path, sizeof(path), "%s" MR_RECORDER_SUFFIX_NEW, recorder->path);
        (void)unlink(path);
    }
}

static struct mr_recorder_module *modules_of(const struct mr_recorder *recorder)
{
    return (void *)((uint8_t *)recorder->header + recorder->header->modules_offset);
}

void *mr_recorder_named(struct mr_recorder *recorder)
{
    return (uint8_t *)recorder->header + recorder->header->named_offset;
}

static bool is_same(const struct mr_recorder_module *a, const struct mr_module *b)
{
    return mr_load_relaxed(&a->epoch_gone) == 0 && a->address == b->address &&
           a->size == b->size && strcmp(a->path, b->path) == 0;
}

static bool is_in(const struct mr_module_table *table,
                  const struct mr_recorder_module *module)
{
    for (uint32_t i = 0; i < table->count; i++)
        if (is_same(module, &table->items[i]))
            return true;
    return false;
}

static bool has(const struct mr_recorder *recorder, const struct mr_module *module)
{
    const struct mr_recorder_module *modules = modules_of(recorder);
    uint32_t count = mr_load_relaxed(&recorder->header->module_count); /* our own */

    for (uint32_t i = 0; i < count; i++)
        if (is_same(&modules[i], module))
            return true;
    return false;
}

/* The place of one that is gone for longest, where all are taken. */
static struct mr_recorder_module *place_for_module(struct mr_recorder *recorder)
{
    struct mr_recorder_module *modules = modules_of(recorder), *oldest = NULL;
    uint32_t count = mr_load_relaxed(&recorder->header->module_count);

    if (count < MR_RECORDER_MODULES_MAX)
        return mr_recorder_reserve(recorder, &modules[count], sizeof(*modules))
                   ? &modules[count]
                   : NULL;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t gone = mr_load_relaxed(&modules[i].epoch_gone);

        if (gone && (!oldest || gone < mr_load_relaxed(&oldest->epoch_gone)))
            oldest = &modules[i];
    }
    return oldest;
}

/* A stranger compares versions, so that members may be plain: see recorder_read.c. */
static void add_module(struct mr_recorder *recorder, const struct mr_module *module,
                       uint32_t epoch)
{
    struct mr_recorder_header *header = recorder->header;
    struct mr_recorder_module *place = place_for_module(recorder);
    uint32_t version;

    if (!place)
        return;
    version = mr_load_relaxed(&place->version);
    (void)mr_exchange_acq_rel(&place->version, version | 1); /* [N] */
    place->epoch = epoch;
    place->site_base = module->site_base;
    place->sites = module->sites;
    place->is_executable = module->is_executable;
    place->build_id_size = module->build_id_size;
    place->address = module->address;
    place->size = module->size;
    place->bias = module->bias;
    memcpy(place->build_id, module->build_id, sizeof(place->build_id));
    copy_text(place->path, sizeof(place->path), module->path);
    mr_store_relaxed(&place->epoch_gone, 0);
    mr_store_release(&place->version, (version | 1) + 1); /* [N] */
    if (place == modules_of(recorder) + mr_load_relaxed(&header->module_count))
        mr_store_release(&header->module_count,
                         mr_load_relaxed(&header->module_count) + 1); /* [P] */
}

void mr_recorder_modules(struct mr_recorder *recorder,
                         const struct mr_module_table *table)
{
    struct mr_recorder_header *header = recorder->header;
    struct mr_recorder_module *modules = modules_of(recorder);
    uint32_t count = mr_load_relaxed(&header->module_count);
    uint32_t epoch = mr_load_relaxed(&header->epoch) + 1;

    for (uint32_t i = 0; i < count; i++)
        if (mr_load_relaxed(&modules[i].epoch_gone) == 0 && !is_in(table, &modules[i]))
            mr_store_release(&modules[i].epoch_gone, epoch);
    for (uint32_t i = 0; i < table->count; i++)
        if (!has(recorder, &table->items[i]))
            add_module(recorder, &table->items[i], epoch);
    mr_store_release(&header->epoch, epoch); /* [P] */
}

void mr_recorder_depth(struct mr_recorder *recorder, const struct mr_depth *depth)
{
    /* Relaxed: numbers for people, each for itself. */
    mr_store_relaxed(&recorder->header->depth_limit, depth->limit);
    if (depth->limit > 0)
        mr_store_relaxed(&recorder->header->depth_skipped, mr_depth_skipped(depth));
}

void mr_recorder_sample(struct mr_recorder *recorder)
{
    struct mr_recorder_header *header = recorder->header;
    uint32_t count = mr_load_relaxed(&header->sample_count); /* our own */
    struct mr_clock_sample sample;

    mr_clock_sample((enum mr_clock_mode)header->clock_mode, &sample);
    put_sample(&sample, &header->last_samples[~count & 1]);
    mr_store_release(&header->sample_count, count + 1); /* [S] */
}
