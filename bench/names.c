/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/names.h"

#include "base/assert.h"
#include "base/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD_SIZE 64

static enum mr_status unknown(const char *option, const char *word,
                              const char *const *names, size_t count,
                              struct mr_error *error)
{
    const char *nearest = mr_options_nearest(word, names, count);
    char all[160] = "";
    size_t used = 0;

    for (size_t i = 0; i < count && used < sizeof(all); i++) {
        int more = snprintf(all + used, sizeof(all) - used, "%s, ", names[i]);

        used += more > 0 ? (size_t)more : 0;
    }
    if (nearest)
        return mr_error_set(error, MR_EUSAGE,
                            "%s: unknown value '%s' (did you mean '%s'?)", option, word,
                            nearest);
    return mr_error_set(error, MR_EUSAGE,
                        "%s: unknown value '%s' (there are: %sall, none)", option, word,
                        all);
}

/* The word up to the next comma, cut if it is too long; what follows, or NULL. */
static const char *next_word(const char *text, char word[WORD_SIZE])
{
    size_t size = strcspn(text, ",");
    size_t kept = size < WORD_SIZE - 1 ? size : WORD_SIZE - 1;

    memcpy(word, text, kept);
    word[kept] = '\0';
    return text[size] == ',' ? text + size + 1 : NULL;
}

static enum mr_status choose_word(const char *option, const char *word,
                                  const char *const *names, size_t count, uint32_t *mask,
                                  struct mr_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(word, names[i]) == 0) {
            *mask |= UINT32_C(1) << i;
            return MR_OK;
        }
    if (strcmp(word, "all") == 0) {
        *mask = (UINT32_C(1) << count) - 1;
        return MR_OK;
    }
    if (strcmp(word, "none") == 0)
        return MR_OK;
    return unknown(option, word, names, count, error);
}

enum mr_status mr_names_choose(const char *option, const char *text,
                               const char *const *names, size_t count, uint32_t *mask,
                               struct mr_error *error)
{
    char word[WORD_SIZE];
    enum mr_status status = MR_OK;

    MR_ASSERT(count > 0 && count < 32);
    *mask = 0;
    while (text && status == MR_OK) {
        text = next_word(text, word);
        status = choose_word(option, word, names, count, mask, error);
    }
    return status;
}

static enum mr_status bad_number(const char *option, const char *word, uint32_t max,
                                 struct mr_error *error)
{
    return mr_error_set(error, MR_EUSAGE,
                        "%s: '%s' is not a number from 1 to %" PRIu32
                        " or a range such as 1-4",
                        option, word, max);
}

enum mr_status mr_names_numbers(const char *option, const char *text, uint32_t max,
                                uint32_t *numbers, size_t room, size_t *count,
                                struct mr_error *error)
{
    char word[WORD_SIZE];

    *count = 0;
    while (text) {
        char *end;
        unsigned long first, last;

        text = next_word(text, word);
        first = last = strtoul(word, &end, 10);
        if (end != word && *end == '-')
            last = strtoul(end + 1, &end, 10);
        if (end == word || *end != '\0' || first < 1 || last < first || last > max)
            return bad_number(option, word, max, error);
        for (; first <= last; first++) {
            if (*count == room)
                return mr_error_set(error, MR_EUSAGE, "%s: more than %zu values", option,
                                    room);
            numbers[(*count)++] = (uint32_t)first;
        }
    }
    return MR_OK;
}
