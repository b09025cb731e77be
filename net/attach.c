/* SPDX-License-Identifier: Apache-2.0 */
#include "net/attach.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/text.h"

#define HEAD "millrace/"
#define VALUE_SIZE 4096
/* Kept free for "cut 1\n" and the empty line. */
#define END_SIZE 8

bool mr_attach_is_whole(const char *text, size_t size)
{
    return size > 0 && memmem(text, size, "\n\n", 2) != NULL;
}

static bool is_key(const char *text)
{
    size_t size = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");

    return size > 0 && size <= MR_ATTACH_KEY_MAX && text[size] == '\0';
}

/* The next line of `*rest`, which ends at `end_of_all`, ended with a zero; NULL when the message ends. */
static char *next_line(char **rest, const char *end_of_all)
{
    char *line = *rest, *end = memchr(line, '\n', (size_t)(end_of_all - line));

    if (!end || end == line)
        return NULL;
    *end = '\0';
    *rest = end + 1;
    return line;
}

static enum mr_status check_bytes(const char *text, size_t size, struct mr_error *error)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)text[i];

        if ((byte < ' ' && byte != '\n') || byte == 127)
            return mr_error_set(error, MR_EFORMAT, "byte %zu is 0x%02x", i, byte);
    }
    return MR_OK;
}

static enum mr_status parse_head(char *line, struct mr_attach_message *message,
                                 struct mr_error *error)
{
    char *word = line ? strchr(line, ' ') : NULL;

    if (!line || strncmp(line, HEAD, strlen(HEAD)) != 0 || !word)
        return mr_error_set(
            error, MR_EFORMAT,
            "line 1 is not '" HEAD MR_STRINGIFY(MR_ATTACH_VERSION) " NAME'");
    *word++ = '\0';
    if (strcmp(line, HEAD MR_STRINGIFY(MR_ATTACH_VERSION)) != 0)
        return mr_error_set(error, MR_EVERSION,
                            "version %.20s, this is " MR_STRINGIFY(MR_ATTACH_VERSION),
                            line + strlen(HEAD));
    if (!is_key(word))
        return mr_error_set(error, MR_EFORMAT, "line 1: '%.40s' is no name", word);
    message->word = word;
    return MR_OK;
}

static enum mr_status parse_field(char *line, struct mr_attach_message *message,
                                  struct mr_error *error)
{
    struct mr_attach_field *field = &message->fields[message->count];
    char *value = strchr(line, ' ');

    if (message->count == MR_ATTACH_FIELDS_MAX)
        return mr_error_set(error, MR_EFORMAT, "more than %d fields",
                            MR_ATTACH_FIELDS_MAX);
    if (value)
        *value++ = '\0';
    if (!value || !is_key(line))
        return mr_error_set(error, MR_EFORMAT, "line %u is not 'KEY VALUE'",
                            message->count + 2);
    field->key = line;
    field->value = value;
    message->count++;
    return MR_OK;
}

enum mr_status mr_attach_parse(char *text, size_t size, struct mr_attach_message *message,
                               struct mr_error *error)
{
    char *rest = text, *line;
    enum mr_status status;

    message->count = 0;
    message->word = "";
    if (!mr_attach_is_whole(text, size))
        return mr_error_set(error, MR_EFORMAT, "no empty line at the end");
    status = check_bytes(text, size, error);
    if (status != MR_OK)
        return status;
    status = parse_head(next_line(&rest, text + size), message, error);
    while (status == MR_OK && (line = next_line(&rest, text + size)) != NULL)
        status = parse_field(line, message, error);
    if (status == MR_OK && rest + 1 != text + size)
        return mr_error_set(error, MR_EFORMAT, "more behind the empty line");
    return status;
}

const char *mr_attach_get(const struct mr_attach_message *message, const char *key)
{
    for (uint32_t i = 0; i < message->count; i++)
        if (strcmp(message->fields[i].key, key) == 0)
            return message->fields[i].value;
    return NULL;
}

bool mr_attach_get_u64(const struct mr_attach_message *message, const char *key,
                       uint64_t *value)
{
    const char *text = mr_attach_get(message, key);
    uint64_t sum = 0;

    if (!text || *text == '\0')
        return false;
    for (; *text; text++) {
        uint64_t digit = (uint64_t)(*text - '0');

        if (*text < '0' || *text > '9' || sum > (UINT64_MAX - digit) / 10)
            return false;
        sum = 10 * sum + digit;
    }
    *value = sum;
    return true;
}

static void put_text(struct mr_attach_writer *writer, const char *text)
{
    size_t size = strlen(text);

    if (writer->is_cut || size + END_SIZE > writer->capacity - writer->size) {
        writer->is_cut = true;
        return;
    }
    memcpy(writer->text + writer->size, text, size);
    writer->size += size;
}

void mr_attach_begin(struct mr_attach_writer *writer, char *text, size_t capacity,
                     const char *word)
{
    char line[64];

    MR_ASSERT(is_key(word) && capacity >= sizeof(line) + END_SIZE);
    *writer = (struct mr_attach_writer){.text = text, .capacity = capacity};
    (void)snprintf(line, sizeof(line), HEAD MR_STRINGIFY(MR_ATTACH_VERSION) " %s\n",
                   word);
    put_text(writer, line);
}

static void clean(char *text)
{
    mr_text_make_valid(text, strlen(text));
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = '?';
}

void mr_attach_put(struct mr_attach_writer *writer, const char *key, const char *format,
                   ...)
{
    char line[MR_ATTACH_KEY_MAX + VALUE_SIZE + 4];
    int head = snprintf(line, sizeof(line), "%s ", key);
    int size;
    va_list arguments;

    MR_ASSERT(is_key(key) && head > 0);
    va_start(arguments, format);
    size = vsnprintf(line + head, VALUE_SIZE, format, arguments);
    va_end(arguments);
    if (size < 0 || size >= VALUE_SIZE || writer->fields == MR_ATTACH_FIELDS_MAX - 1) {
        writer->is_cut = true;
        return;
    }
    clean(line + head);
    line[head + size] = '\n';
    line[head + size + 1] = '\0';
    put_text(writer, line);
    writer->fields += !writer->is_cut;
}

static size_t put_end(struct mr_attach_writer *writer, const char *text)
{
    size_t size = strlen(text);

    memcpy(writer->text + writer->size, text, size);
    writer->size += size;
    return writer->size;
}

size_t mr_attach_end(struct mr_attach_writer *writer)
{
    return writer->is_cut ? 0 : put_end(writer, "\n");
}

size_t mr_attach_end_cut(struct mr_attach_writer *writer)
{
    return put_end(writer, writer->is_cut ? "cut 1\n\n" : "\n");
}
