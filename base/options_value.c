/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options: from text to the field, and the words for what is allowed. */
#include "base/assert.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/options.h"
#include "base/options_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct unit {
    const char *suffix;
    uint64_t scale;
};

/* Largest first: the order in which a number is written with a unit. */
static const struct unit size_units[] = {
    {"T", UINT64_C(1) << 40},   {"TiB", UINT64_C(1) << 40}, {"G", UINT64_C(1) << 30},
    {"GiB", UINT64_C(1) << 30}, {"M", UINT64_C(1) << 20},   {"MiB", UINT64_C(1) << 20},
    {"K", UINT64_C(1) << 10},   {"KiB", UINT64_C(1) << 10}, {"", 1},
};
static const struct unit duration_units[] = {
    {"h", MR_HOUR_NS},         {"m", MR_MINUTE_NS},       {"s", MR_SECOND_NS},
    {"ms", MR_MILLISECOND_NS}, {"us", MR_MICROSECOND_NS}, {"ns", 1},
};

/* Eleven years: a time of a clock and some of these, or ten times one, stay below 2^64 ns. */
#define DURATION_MAX (100000 * MR_HOUR_NS)

static const struct unit plain_units[] = {{"", 1}};

struct unit_list {
    const struct unit *units;
    size_t count;
};

static struct unit_list units_of(enum mr_option_kind kind)
{
    if (kind == MR_OPTION_SIZE)
        return (struct unit_list){size_units, MR_ARRAY_COUNT(size_units)};
    if (kind == MR_OPTION_DURATION)
        return (struct unit_list){duration_units, MR_ARRAY_COUNT(duration_units)};
    return (struct unit_list){plain_units, MR_ARRAY_COUNT(plain_units)};
}

/*
 * Reads decimal digits; returns what follows them, or NULL without digits or past 64
 * bits.
 */
static const char *parse_digits(const char *text, uint64_t *value)
{
    const char *at = text;

    *value = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');

        if (*value > (UINT64_MAX - digit) / 10)
            return NULL;
        *value = *value * 10 + digit;
    }
    return at == text ? NULL : at;
}

static bool parse_number(const char *text, struct unit_list list, uint64_t *value)
{
    uint64_t count;
    const char *suffix = parse_digits(text, &count);

    if (!suffix)
        return false;
    if (count == 0 && *suffix == '\0') { /* 0 is 0 in every unit */
        *value = 0;
        return true;
    }
    for (size_t i = 0; i < list.count; i++) {
        if (strcmp(suffix, list.units[i].suffix) != 0)
            continue;
        if (count > UINT64_MAX / list.units[i].scale)
            return false;
        *value = count * list.units[i].scale;
        return true;
    }
    return false;
}

bool mr_option_read_duration(const char *text, uint64_t *ns)
{
    return parse_number(text, units_of(MR_OPTION_DURATION), ns);
}

/* The value in the largest unit that divides it. */
static void number_text(uint64_t value, struct unit_list list, char *text, size_t size)
{
    size_t i = 0;

    while (i + 1 < list.count && (value == 0 || value % list.units[i].scale))
        i++;
    (void)snprintf(text, size, "%" PRIu64 "%s", value / list.units[i].scale,
                   value ? list.units[i].suffix : "");
}

static const char *kind_text(enum mr_option_kind kind)
{
    switch (kind) {
    case MR_OPTION_SIZE:
        return "a size such as 64K, 16M or 1G";
    case MR_OPTION_DURATION:
        return "a duration such as 500us, 100ms or 2s";
    case MR_OPTION_U64:
        return "a number";
    case MR_OPTION_FLAG:
        return "yes or no";
    case MR_OPTION_STRING:
    case MR_OPTION_CHOICE:
    case MR_OPTION_LIST:
        break;
    }
    return "any text";
}

bool mr_option_is_bounded(const struct mr_option_spec *spec)
{
    return spec->choices || spec->min || spec->max;
}

void mr_option_range_text(const struct mr_option_spec *spec, char *text, size_t size)
{
    struct unit_list list = units_of(spec->kind);
    char low[32];
    char high[32];

    number_text(spec->min, list, low, sizeof(low));
    number_text(spec->max, list, high, sizeof(high));
    if (spec->kind == MR_OPTION_CHOICE)
        (void)snprintf(text, size, "%s", spec->choices);
    else if (spec->max)
        (void)snprintf(text, size, "%s to %s", low, high);
    else if (spec->min)
        (void)snprintf(text, size, "at least %s", low);
    else
        (void)snprintf(text, size, "%s", kind_text(spec->kind));
}

/* The table's bounds, or those of the kind. */
static struct mr_option_spec bounds_of(const struct mr_option_spec *spec)
{
    struct mr_option_spec bounds = *spec;

    if (bounds.kind == MR_OPTION_DURATION && bounds.max == 0)
        bounds.max = DURATION_MAX;
    return bounds;
}

static enum mr_status parse_bounded(const struct mr_option_spec *spec, const char *where,
                                    const char *text, uint64_t *field,
                                    struct mr_error *error)
{
    char range[MR_OPTION_RANGE_SIZE];
    struct mr_option_spec bounds;
    uint64_t value;

    mr_option_range_text(spec, range, sizeof(range));
    if (!parse_number(text, units_of(spec->kind), &value)) {
        const char *kind = kind_text(spec->kind);

        if (mr_option_is_bounded(spec))
            return mr_error_set(error, MR_EUSAGE, "%s: '%.80s' is not %s (allowed: %s)",
                                where, text, kind, range);
        return mr_error_set(error, MR_EUSAGE, "%s: '%.80s' is not %s", where, text, kind);
    }
    bounds = bounds_of(spec);
    if (value < bounds.min || (bounds.max && value > bounds.max)) {
        mr_option_range_text(&bounds, range, sizeof(range));
        return mr_error_set(error, MR_EUSAGE, "%s: '%.80s' is out of range (allowed: %s)",
                            where, text, range);
    }
    *field = value;
    return MR_OK;
}

/* The position of `text` among "a|b|c", or -1. */
static int choice_position(const char *choices, const char *text)
{
    size_t length = strlen(text);
    int position = 0;

    for (const char *at = choices;; position++) {
        const char *end = strchrnul(at, '|');

        if ((size_t)(end - at) == length && strncmp(at, text, length) == 0)
            return position;
        if (*end == '\0')
            return -1;
        at = end + 1;
    }
}

static enum mr_status parse_choice(const struct mr_option_spec *spec, const char *where,
                                   const char *text, unsigned *field,
                                   struct mr_error *error)
{
    int position = choice_position(spec->choices, text);

    if (position < 0)
        return mr_error_set(error, MR_EUSAGE, "%s: '%.80s' is not one of %s", where, text,
                            spec->choices);
    *field = (unsigned)position;
    return MR_OK;
}

static enum mr_status parse_flag(const char *where, const char *text, bool *field,
                                 struct mr_error *error)
{
    static const char no[] = "0|no|false|off";
    static const char yes[] = "1|yes|true|on";

    if (choice_position(yes, text) >= 0)
        *field = true;
    else if (choice_position(no, text) >= 0)
        *field = false;
    else
        return mr_error_set(error, MR_EUSAGE, "%s: '%.80s' is not yes or no", where,
                            text);
    return MR_OK;
}

static enum mr_status parse_item(const char *where, const char *text,
                                 struct mr_option_list *field, struct mr_error *error)
{
    if (field->count == MR_OPTION_LIST_MAX)
        return mr_error_set(error, MR_EUSAGE, "%s: more than %d of them", where,
                            MR_OPTION_LIST_MAX);
    field->items[field->count++] = text;
    return MR_OK;
}

enum mr_status mr_options_parse_value(const struct mr_option_spec *spec,
                                      const char *where, const char *text, void *field,
                                      struct mr_error *error)
{
    MR_ASSERT(spec && text && field);
    switch (spec->kind) {
    case MR_OPTION_FLAG:
        return parse_flag(where, text, field, error);
    case MR_OPTION_U64:
    case MR_OPTION_SIZE:
    case MR_OPTION_DURATION:
        return parse_bounded(spec, where, text, field, error);
    case MR_OPTION_CHOICE:
        return parse_choice(spec, where, text, field, error);
    case MR_OPTION_STRING:
        *(const char **)field = text;
        return MR_OK;
    case MR_OPTION_LIST:
        return parse_item(where, text, field, error);
    }
    return mr_error_set(error, MR_EUSAGE, "%s: no such kind of option", where);
}
