/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field            written by        read by           access
 * todo, done,      filter, resolver  filter, resolver  under mutex
 *  waiting, stats
 * is_stopping      filter            resolver          under mutex
 * symbols          resolver          resolver          its own while it runs
 *
 * Conditions: `work` when todo or is_stopping changed, `idle` when waiting fell to 0.
 * Checked by: tests/unit/pipeline/test_names.c under ThreadSanitizer
 */
#include "pipeline/filters/names.h"

#include "base/assert.h"
#include "base/clock.h"
#include "pipeline/dict_batch.h"
#include "pipeline/dict_copy.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

struct job { /* a site item: copy.block, then, once resolved, of the better item */
    struct job *next;
    void *block;
};

struct job_list {
    struct job *first, *last;
};

struct names {
    struct mr_symbols *symbols;
    struct mr_dict_batch dict;
    uint32_t queue_max;
    uint64_t drain_ns;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t work, idle;
    struct job_list todo, done;
    uint32_t waiting; /* todo and the one being resolved */
    uint32_t held;    /* waiting and done */
    uint64_t unknown; /* resolved without success, not counted yet */
    bool is_stopping;
    struct mr_symbols_stats stats, told;
};

static void add_job(struct job_list *list, struct job *job)
{
    job->next = NULL;
    if (list->last)
        list->last->next = job;
    else
        list->first = job;
    list->last = job;
}

static struct job *take_job(struct job_list *list)
{
    struct job *job = list->first;

    if (job) {
        list->first = job->next;
        if (!list->first)
            list->last = NULL;
    }
    return job;
}

static void free_job(struct job *job)
{
    free(job->block);
    free(job);
}

static void free_jobs(struct job_list *list)
{
    struct job *job;

    while ((job = take_job(list)))
        free_job(job);
}

/*
 * On the resolver's thread, without the mutex. False if the function keeps module and
 * offset.
 */
static bool resolve(struct mr_symbols *symbols, struct job *job)
{
    struct mr_dict_item item;
    struct mr_symbol symbol;
    void *block;
    const char *path;

    mr_dict_copy_get(MR_DICT_SITE, job->block, &item);
    path = item.site.module[0] == '/' ? item.site.module
                                      : ""; /* never a file of this process's folder */
    if (mr_symbols_lookup(symbols, item.site.build_id, path, item.site.offset, &symbol) !=
        MR_OK)
        return false;
    item.site.name = symbol.name;
    item.site.file = symbol.file;
    item.site.line = symbol.line;
    item.site.quality = symbol.quality;
    block = mr_dict_copy_new(&item);
    if (!block)
        return false;
    free(job->block);
    job->block = block;
    return true;
}

/* With the mutex: waits for a job. NULL: stop. */
static struct job *await_job(struct names *names)
{
    while (!names->is_stopping && !names->todo.first)
        (void)pthread_cond_wait(&names->work, &names->mutex);
    return names->is_stopping ? NULL : take_job(&names->todo);
}

static void *resolver_run(void *argument)
{
    struct names *names = argument;
    struct job *job;

    (void)pthread_mutex_lock(&names->mutex);
    while ((job = await_job(names))) {
        bool is_found;

        (void)pthread_mutex_unlock(&names->mutex);
        is_found = resolve(names->symbols, job);
        (void)pthread_mutex_lock(&names->mutex);
        mr_symbols_stats(names->symbols, &names->stats);
        if (is_found) {
            add_job(&names->done, job);
        } else {
            names->unknown++;
            names->held--;
            free_job(job);
        }
        if (--names->waiting == 0)
            (void)pthread_cond_signal(&names->idle);
    }
    (void)pthread_mutex_unlock(&names->mutex);
    return NULL;
}

static int start_resolver(struct names *names)
{
    sigset_t all, before;
    int failure;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are main()'s */
    failure = pthread_create(&names->thread, NULL, resolver_run, names);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failure)
        (void)pthread_setname_np(names->thread, "names/resolver");
    return failure;
}

static void init_locks(struct names *names)
{
    pthread_condattr_t attributes;

    (void)pthread_mutex_init(&names->mutex, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&names->work, &attributes);
    (void)pthread_cond_init(&names->idle, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

static void fini_locks(struct names *names)
{
    (void)pthread_cond_destroy(&names->idle);
    (void)pthread_cond_destroy(&names->work);
    (void)pthread_mutex_destroy(&names->mutex);
}

static void name_counters(struct mr_filter *filter)
{
    mr_filter_name_counter(filter, MR_NAMES_FOUND, "names_found");
    mr_filter_name_counter(filter, MR_NAMES_UNKNOWN, "names_unknown");
    mr_filter_name_counter(filter, MR_NAMES_QUEUE_FULL, "names_queue_full");
    mr_filter_name_counter(filter, MR_NAMES_LEFT, "names_left");
    mr_filter_name_counter(filter, MR_NAMES_BAD_DICT, "names_bad_dict");
    mr_filter_name_counter(filter, MR_NAMES_NO_FILE, "names_no_file");
    mr_filter_name_counter(filter, MR_NAMES_MISMATCHED, "names_mismatched");
    mr_filter_name_counter(filter, MR_NAMES_STRIPPED, "names_stripped");
}

static enum mr_status names_open(struct mr_filter *filter, const void *config,
                                 struct mr_error *error)
{
    struct names *names = mr_filter_state(filter);
    const struct mr_names_config *given = config;
    enum mr_status status =
        mr_symbols_new(given ? &given->symbols : NULL, &names->symbols);

    if (status != MR_OK)
        return mr_error_set(error, status, "names: %s", mr_status_text(status));
    names->queue_max = given && given->queue_max ? given->queue_max : MR_NAMES_QUEUE_MAX;
    names->drain_ns = given && given->drain_ns ? given->drain_ns : MR_NAMES_DRAIN_NS;
    name_counters(filter);
    init_locks(names);
    if (start_resolver(names) != 0) {
        fini_locks(names);
        mr_symbols_free(names->symbols);
        return mr_error_set(error, MR_ENOMEM, "names: no thread");
    }
    return MR_OK;
}

static void names_close(struct mr_filter *filter)
{
    struct names *names = mr_filter_state(filter);

    (void)pthread_mutex_lock(&names->mutex);
    names->is_stopping = true;
    (void)pthread_cond_signal(&names->work);
    (void)pthread_mutex_unlock(&names->mutex);
    (void)pthread_join(names->thread, NULL);
    free_jobs(&names->todo);
    free_jobs(&names->done);
    mr_dict_batch_fini(&names->dict);
    mr_symbols_free(names->symbols);
    fini_locks(names);
}

/* False if there is no room. */
static bool enqueue(struct names *names, const struct mr_dict_item *item)
{
    struct job *job = calloc(1, sizeof(*job));
    bool has_room;

    if (job)
        job->block = mr_dict_copy_new(item);
    if (!job || !job->block) {
        free(job);
        return false;
    }
    (void)pthread_mutex_lock(&names->mutex);
    has_room = names->held < names->queue_max;
    if (has_room) {
        add_job(&names->todo, job);
        names->waiting++;
        names->held++;
        (void)pthread_cond_signal(&names->work);
    }
    (void)pthread_mutex_unlock(&names->mutex);
    if (!has_room)
        free_job(job);
    return has_room;
}

static bool is_nameless(const struct mr_dict_item *item)
{
    return item->kind == MR_DICT_SITE && item->site.type == MR_SITE_FUNCTION &&
           item->site.quality == MR_QUALITY_OFFSET && item->site.module[0] != '\0';
}

static void watch(struct mr_filter *filter, struct mr_span payload)
{
    struct names *names = mr_filter_state(filter);
    struct mr_dict_reader reader;
    struct mr_dict_item item;
    enum mr_status status = mr_dict_open(&reader, payload, NULL);

    while (status == MR_OK) {
        status = mr_dict_next(&reader, &item, NULL);
        if (status == MR_OK && is_nameless(&item) && !enqueue(names, &item))
            mr_filter_count(filter, MR_NAMES_QUEUE_FULL, 1);
    }
    mr_dict_close(&reader);
    if (status != MR_END)
        mr_filter_count(filter, MR_NAMES_BAD_DICT, 1);
}

static enum mr_status names_process(struct mr_filter *filter, struct mr_batch *batch)
{
    if (batch->kind == MR_BATCH_DICT)
        watch(filter, mr_buffer_span(&batch->bytes));
    return mr_filter_emit(
        filter, batch); /* before the better items: those leave with the next tick */
}

static struct job_list take_done(struct mr_filter *filter)
{
    struct names *names = mr_filter_state(filter);
    struct job_list done;

    (void)pthread_mutex_lock(&names->mutex);
    done = names->done;
    names->done = (struct job_list){NULL, NULL};
    names->held = names->waiting;
    mr_filter_count(filter, MR_NAMES_UNKNOWN, names->unknown);
    names->unknown = 0;
    mr_filter_count(filter, MR_NAMES_NO_FILE,
                    names->stats.not_found - names->told.not_found);
    mr_filter_count(filter, MR_NAMES_MISMATCHED,
                    names->stats.mismatched - names->told.mismatched);
    mr_filter_count(filter, MR_NAMES_STRIPPED,
                    names->stats.stripped - names->told.stripped);
    names->told = names->stats;
    (void)pthread_mutex_unlock(&names->mutex);
    return done;
}

static enum mr_status emit_done(struct mr_filter *filter)
{
    struct names *names = mr_filter_state(filter);
    struct job_list done = take_done(filter);
    enum mr_status status = MR_OK;
    struct job *job;

    while (status == MR_OK && (job = take_job(&done))) {
        struct mr_dict_item item;

        mr_dict_copy_get(MR_DICT_SITE, job->block, &item);
        status = mr_dict_batch_put(&names->dict, filter, &item);
        free_job(job);
        mr_filter_count(filter, MR_NAMES_FOUND, 1);
    }
    free_jobs(&done);
    return status == MR_OK ? mr_dict_batch_emit(&names->dict, filter) : status;
}

static enum mr_status names_tick(struct mr_filter *filter, uint64_t now_ns)
{
    (void)now_ns;
    return mr_filter_can_emit(filter) ? emit_done(filter) : MR_OK;
}

static struct timespec deadline(uint64_t from_now_ns)
{
    uint64_t ns = mr_clock_monotonic_ns() + from_now_ns;

    return (struct timespec){.tv_sec = (time_t)(ns / MR_SECOND_NS),
                             .tv_nsec = (long)(ns % MR_SECOND_NS)};
}

static enum mr_status names_drain(struct mr_filter *filter)
{
    struct names *names = mr_filter_state(filter);
    struct timespec until = deadline(names->drain_ns);
    uint32_t left;

    (void)pthread_mutex_lock(&names->mutex);
    while (names->waiting > 0 &&
           pthread_cond_timedwait(&names->idle, &names->mutex, &until) == 0)
        ;
    left = names->waiting;
    names->is_stopping = true;
    (void)pthread_cond_signal(&names->work);
    (void)pthread_mutex_unlock(&names->mutex);
    mr_filter_count(filter, MR_NAMES_LEFT, left);
    return emit_done(filter);
}

const struct mr_filter_kind mr_names_filter = {
    .name = "names",
    .state_size = sizeof(struct names),
    .open = names_open,
    .process = names_process,
    .tick = names_tick,
    .drain = names_drain,
    .close = names_close,
};
