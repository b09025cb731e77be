/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/command.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes `word`. */
static void push(struct mr_words *words, char *word)
{
    if (!word || words->count == MR_WORDS_MAX) {
        free(word);
        words->failed = true;
        return;
    }
    words->items[words->count++] = word;
    words->items[words->count] = NULL;
}

void mr_words_add(struct mr_words *words, const char *format, ...)
{
    va_list arguments;
    char *word = NULL;

    va_start(arguments, format);
    if (vasprintf(&word, format, arguments) < 0)
        word = NULL;
    va_end(arguments);
    push(words, word);
}

void mr_words_split(struct mr_words *words, const char *text)
{
    while (text && *text) {
        char *word, *out;

        while (isspace((unsigned char)*text))
            text++;
        if (*text == '\0')
            return;
        word = out = malloc(strlen(text) + 1);
        while (word && *text && !isspace((unsigned char)*text)) {
            if (*text == '\\' && text[1])
                text++;
            *out++ = *text++;
        }
        if (word)
            *out = '\0';
        push(words, word);
        if (!word)
            return;
    }
}

void mr_words_add_all(struct mr_words *words, const struct mr_words *more)
{
    for (size_t i = 0; i < more->count; i++)
        mr_words_add(words, "%s", more->items[i]);
    words->failed |= more->failed;
}

const char *mr_words_join(const struct mr_words *words, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < words->count && used < size; i++) {
        int more =
            snprintf(out + used, size - used, "%s%s", i ? " " : "", words->items[i]);

        used += more > 0 ? (size_t)more : 0;
    }
    return out;
}

void mr_words_fini(struct mr_words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->items[i]);
    *words = (struct mr_words){0};
}
