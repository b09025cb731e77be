/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run.h"

#include "base/buffer.h"
#include "base/text.h"
#include "net/file.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMAND_BYTES_MAX ((size_t)256 << 10)

static int run_path(const char *directory, char path[PATH_MAX])
{
    return snprintf(path, PATH_MAX, "%s/%s", directory, MR_RUN_FILE) < PATH_MAX;
}

enum mr_status mr_run_save(const struct mr_run *run, const char *directory,
                           struct mr_error *error)
{
    char path[PATH_MAX];
    json_t *object;
    char *text;
    enum mr_status status;

    if (!run_path(directory, path))
        return mr_error_set(error, MR_EIO, "%.80s...: the path is too long", directory);
    object =
        json_pack("{s:s, s:I, s:I, s:I, s:i}", "command", run->command, "started_ns",
                  (json_int_t)run->started_ns, "wall_ns", (json_int_t)run->wall_ns,
                  "plain_ns", (json_int_t)run->plain_ns, "exit_status", run->exit_status);
    text = object ? json_dumps(object, JSON_INDENT(1) | JSON_PRESERVE_ORDER) : NULL;
    json_decref(object);
    if (!text)
        return mr_error_set(error, MR_ENOMEM, "%s: %s", path, mr_status_text(MR_ENOMEM));
    status = mr_file_replace(path, text, strlen(text), error);
    free(text);
    return status;
}

enum mr_status mr_run_load(struct mr_run *run, const char *directory)
{
    char path[PATH_MAX];
    json_int_t started, wall, plain;
    const char *command;
    json_t *object;
    enum mr_status status = MR_EFORMAT;

    *run = (struct mr_run){0};
    object = run_path(directory, path) ? json_load_file(path, 0, NULL) : NULL;
    if (!object)
        return MR_ENOTFOUND;
    if (json_unpack(object, "{s:s, s:I, s:I, s:I, s:i}", "command", &command,
                    "started_ns", &started, "wall_ns", &wall, "plain_ns", &plain,
                    "exit_status", &run->exit_status) == 0) {
        run->command = strdup(command);
        run->started_ns = (uint64_t)started;
        run->wall_ns = (uint64_t)wall;
        run->plain_ns = (uint64_t)plain;
        status = run->command ? MR_OK : MR_ENOMEM;
    }
    json_decref(object);
    return status;
}

void mr_run_fini(struct mr_run *run)
{
    free(run->command);
    run->command = NULL;
}

static enum mr_status quote(const char *word, struct mr_buffer *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789-_./=:,+@%";
    enum mr_status status = MR_OK;

    if (*word && word[strspn(word, plain)] == '\0')
        return mr_buffer_append_text(out, word);
    status = mr_buffer_append_byte(out, '\'');
    for (; status == MR_OK && *word; word++)
        status = *word == '\'' ? mr_buffer_append_text(out, "'\\''")
                               : mr_buffer_append_byte(out, (uint8_t)*word);
    return status == MR_OK ? mr_buffer_append_byte(out, '\'') : status;
}

char *mr_run_command_line(char *const argv[])
{
    struct mr_buffer out;
    enum mr_status status = MR_OK;
    char *line = NULL;

    mr_buffer_init(&out, COMMAND_BYTES_MAX);
    for (size_t i = 0; status == MR_OK && argv[i]; i++) {
        if (i > 0)
            status = mr_buffer_append_byte(&out, ' ');
        if (status == MR_OK)
            status = quote(argv[i], &out);
    }
    if (status == MR_OK)
        status = mr_buffer_append_byte(&out, '\0');
    else if (status == MR_ELIMIT) /* megabytes of arguments: the name alone */
        line = strdup(argv[0]);
    if (status == MR_OK)
        line = strdup((const char *)out.data);
    mr_buffer_fini(&out);
    if (line)
        mr_text_make_valid(line, strlen(line));
    return line;
}
