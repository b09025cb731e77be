/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and answers of the control socket; what is read can be written again, the same but for what is no UTF-8. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "net/attach.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_written_as(const char *value, const char *again)
{
    char *valid = strdup(value);
    bool is_same;

    MR_ASSERT(valid);
    mr_text_make_valid(valid, strlen(valid));
    is_same = strcmp(valid, again) == 0;
    free(valid);
    return is_same;
}

static void write_again(const struct mr_attach_message *message)
{
    static struct mr_attach_message again;
    static char out[2 * MR_ATTACH_ANSWER_MAX];
    struct mr_attach_writer writer;
    size_t size;

    mr_attach_begin(&writer, out, sizeof(out), message->word);
    for (uint32_t i = 0; i < message->count; i++)
        mr_attach_put(&writer, message->fields[i].key, "%s", message->fields[i].value);
    size = mr_attach_end(&writer);
    if (size == 0) /* longer than a writer writes */
        return;
    MR_ASSERT(mr_attach_parse(out, size, &again, NULL) == MR_OK);
    MR_ASSERT(again.count == message->count);
    for (uint32_t i = 0; i < again.count; i++)
        MR_ASSERT(is_written_as(message->fields[i].value, again.fields[i].value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct mr_attach_message message;
    struct mr_error error = MR_ERROR_NONE;
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    memcpy(text, data, size);
    if (mr_attach_parse(text, size, &message, &error) == MR_OK)
        write_again(&message);
    else
        MR_ASSERT(error.text[0]);
    free(text);
    return 0;
}
