/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/counters_names.h"

#include "base/compiler.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define USER_SUFFIX ":u"

enum place { ANYWHERE, KERNEL };

struct known {
    const char *name, *other, *pfm, *unit;
    uint32_t type;
    enum place place;
    uint64_t config;
};

static const struct known known[] = {
#define COUNTER(name_, other_, pfm_, type_, config_, unit_, place_)                      \
    {.name = (name_),                                                                    \
     .other = (other_),                                                                  \
     .pfm = (pfm_),                                                                      \
     .unit = (unit_),                                                                    \
     .type = PERF_TYPE_##type_,                                                          \
     .place = (place_),                                                                  \
     .config = PERF_COUNT_##config_},
#include "probe/counters.def"
#undef COUNTER
};

static bool is_same(const char *name, const char *of)
{
    return *of && strcasecmp(name, of) == 0;
}

static bool find(const char *name, struct mr_counter_event *event)
{
    for (size_t i = 0; i < MR_ARRAY_COUNT(known); i++) {
        const struct known *at = &known[i];

        if (!is_same(name, at->name) && !is_same(name, at->other) &&
            !is_same(name, at->pfm))
            continue;
        (void)snprintf(event->name, sizeof(event->name), "%s", at->name);
        event->unit = at->unit;
        event->type = at->type;
        event->config = at->config;
        event->is_kernel_only = at->place == KERNEL;
        event->is_software = at->type == PERF_TYPE_SOFTWARE;
        return true;
    }
    return false;
}

/* "r01c2": an event of this processor, by its number. */
static bool find_raw(const char *name, struct mr_counter_event *event)
{
    size_t digits = strspn(name + 1, "0123456789abcdefABCDEF");

    if (name[0] != 'r' || digits == 0 || digits > 16 || name[1 + digits])
        return false;
    (void)snprintf(event->name, sizeof(event->name), "%s", name);
    event->unit = "1";
    event->type = PERF_TYPE_RAW;
    event->config = strtoull(name + 1, NULL, 16);
    return true;
}

static size_t least(size_t a, size_t b, size_t c)
{
    size_t d = a < b ? a : b;

    return d < c ? d : c;
}

/* Edit distance (Levenshtein) of texts, capital letters or not. */
static size_t distance(const char *a, const char *b)
{
    size_t row[MR_COUNTER_NAME_MAX + 1], size = strlen(b);

    for (size_t j = 0; j <= size; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0]++;

        for (size_t j = 1; j <= size; j++) {
            size_t above = row[j];
            bool differs = strncasecmp(&a[i], &b[j - 1], 1) != 0;

            row[j] = least(row[j] + 1, row[j - 1] + 1, diagonal + differs);
            diagonal = above;
        }
    }
    return row[size];
}

static const char *nearest(const char *name)
{
    const char *best = known[0].name;
    size_t best_distance = SIZE_MAX;

    for (size_t i = 0; i < MR_ARRAY_COUNT(known); i++) {
        const char *names[] = {known[i].name, known[i].other, known[i].pfm};

        for (size_t n = 0; n < MR_ARRAY_COUNT(names); n++) {
            size_t far = *names[n] ? distance(name, names[n]) : SIZE_MAX;

            if (far < best_distance) {
                best_distance = far;
                best = names[n];
            }
        }
    }
    return best;
}

static enum mr_status resolve_pfm(const char *name, struct mr_counter_event *event,
                                  struct mr_error *error)
{
    struct mr_error said = MR_ERROR_NONE;

    if (mr_counter_resolve_pfm(name, event, &said) != MR_OK)
        return mr_error_set(error, MR_ENOTFOUND,
                            "no counter is called that: is %s meant? (%.100s)",
                            nearest(name), said.text);
    (void)snprintf(event->name, sizeof(event->name), "%s", name);
    event->unit = "1";
    return MR_OK;
}

/* Its name without ":u", if that is what it ends in. */
static bool take_suffix(char *name)
{
    size_t size = strlen(name), end = strlen(USER_SUFFIX);

    if (size <= end || strcasecmp(name + size - end, USER_SUFFIX) != 0)
        return false;
    name[size - end] = '\0';
    return true;
}

void mr_counter_name_user_only(struct mr_counter_event *event)
{
    size_t size = strlen(event->name);

    if (size + sizeof(USER_SUFFIX) <= sizeof(event->name))
        memcpy(event->name + size, USER_SUFFIX, sizeof(USER_SUFFIX));
}

enum mr_status mr_counter_resolve(const char *name, struct mr_counter_event *event,
                                  struct mr_error *error)
{
    char plain[MR_COUNTER_NAME_MAX + 1];
    bool is_user_only;

    memset(event, 0, sizeof(*event));
    if (strlen(name) > MR_COUNTER_NAME_MAX - strlen(USER_SUFFIX))
        return mr_error_set(error, MR_ENOTFOUND, "a counter's name has at most %zu bytes",
                            MR_COUNTER_NAME_MAX - strlen(USER_SUFFIX));
    (void)snprintf(plain, sizeof(plain), "%s", name);
    is_user_only = take_suffix(plain);
    if (!find(plain, event) && !find_raw(plain, event))
        return resolve_pfm(name, event, error);
    event->is_user_only = is_user_only;
    if (is_user_only)
        mr_counter_name_user_only(event);
    return MR_OK;
}
