/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments and environment are input from outside: any bytes give a status. The input is
 * cut at line ends into words; those that begin with '@' go to the environment. Ids are
 * read from the same words.
 */
#include "base/assert.h"
#include "base/id.h"
#include "tests/unit/base/sample.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 32 };

struct words {
    char *list[WORDS_MAX + 1]; /* ends with NULL */
    int count;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_word(struct words *words, char *word)
{
    if (words->count < WORDS_MAX)
        words->list[words->count++] = word;
}

static void check_id(const char *word)
{
    char text[MR_ID_TEXT_SIZE];
    struct mr_id id;
    struct mr_id again;

    if (mr_id_parse(word, strlen(word), &id) != MR_OK)
        return;
    MR_ASSERT(mr_id_parse(mr_id_format(id, text), MR_ID_HEX_COUNT, &again) == MR_OK);
    MR_ASSERT(mr_id_equal(id, again));
}

static void check_options(struct words *arguments, struct words *environment)
{
    struct sample_options options;
    struct mr_error error = MR_ERROR_NONE;
    enum mr_options_action action;
    int first;
    enum mr_status status =
        mr_options_parse(&sample_table, &options, arguments->count, arguments->list,
                         environment->list, &first, &action, &error);

    MR_ASSERT(status == MR_OK || status == MR_EUSAGE);
    MR_ASSERT((status == MR_OK) == (error.status == MR_OK) || action != MR_OPTIONS_RUN);
    MR_ASSERT(first >= 1 && first <= arguments->count);
    if (status == MR_OK && action == MR_OPTIONS_RUN)
        MR_ASSERT(options.lanes >= 1 && options.lanes <= 64 && options.policy < 3);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct words arguments = {{NULL}, 0};
    struct words environment = {{NULL}, 0};
    char program[] = "sample";
    char *text = malloc(size + 1);
    char *rest = text;

    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    add_word(&arguments, program);
    for (char *word; (word = strsep(&rest, "\n"));) {
        check_id(word);
        if (word[0] == '@')
            add_word(&environment, word + 1);
        else
            add_word(&arguments, word);
    }
    check_options(&arguments, &environment);
    free(text);
    return 0;
}
