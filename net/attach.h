/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `millrace attach` and a running probe say to each other, over the unix socket of
 * a process that was started with MILLRACE_CONTROL=1: one request and one answer per
 * connection, both of lines, so that people can read them and scripts can write them.
 *
 *     millrace/1 on                      millrace/1 ok            or  millrace/1 error
 *     only parse_*                       state on                     text no site ...
 *     except parse_byte                  sites-matched 17
 *     (an empty line)                    (an empty line)
 *
 * The first line: protocol and version, then the request's name, or `ok` or `error`.
 * Then fields: key, one blank, value. Keys are of a-z, 0-9 and '-', at most 31; values
 * may be empty; a key may come more than once where the request says so. The empty line
 * ends the message. No byte below a blank but the newlines, none of 127. With a request,
 * one open descriptor may be passed (SCM_RIGHTS, with its first byte).
 *
 *     mr_attach_begin(&writer, text, sizeof(text), "on");
 *     mr_attach_put(&writer, "only", "%s", glob);
 *     size = mr_attach_end(&writer);                     // 0: it does not fit
 *
 *     if (mr_attach_is_whole(text, size) &&
 *         mr_attach_parse(text, size, &message, &error) == MR_OK) ...
 *
 * Nothing is allocated, nothing is kept: memory is the caller's. Any thread.
 */
#ifndef MR_NET_ATTACH_H
#define MR_NET_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define MR_ATTACH_VERSION 1
#define MR_ATTACH_REQUEST_MAX ((size_t)16 << 10) /* bytes of a request */
#define MR_ATTACH_ANSWER_MAX ((size_t)64 << 10)  /* bytes of an answer */
#define MR_ATTACH_FIELDS_MAX 1024                /* of a message */
#define MR_ATTACH_KEY_MAX 31

struct mr_attach_field {
    const char *key, *value;
};

struct mr_attach_message {
    const char *word; /* request, or "ok" or "error" */
    uint32_t count;
    struct mr_attach_field fields[MR_ATTACH_FIELDS_MAX]; /* point into the text */
};

/* Whether `size` bytes hold the end of a message. */
bool mr_attach_is_whole(const char *text, size_t size);

/*
 * Reads a whole message; `text` is written to (zero bytes where lines and keys end) and
 * must live as long as `message`. MR_EFORMAT, or MR_EVERSION for another version than
 * ours, with the line and what is wrong with it.
 */
enum mr_status mr_attach_parse(char *text, size_t size, struct mr_attach_message *message,
                               struct mr_error *error);

/* Value of the first field of that key, or NULL. */
const char *mr_attach_get(const struct mr_attach_message *message, const char *key);
/* The same as a decimal number; false where there is none. */
bool mr_attach_get_u64(const struct mr_attach_message *message, const char *key,
                       uint64_t *value);

struct mr_attach_writer {
    char *text;
    size_t capacity, size;
    uint32_t fields;
    bool is_cut; /* a field did not fit; it and what follows are left out */
};

void mr_attach_begin(struct mr_attach_writer *writer, char *text, size_t capacity,
                     const char *word);
/* Adds a field; bytes that no value may have, controls and what is no UTF-8, become '?'. At most 4 KiB of value. */
MR_PRINTF(3, 4)
void mr_attach_put(struct mr_attach_writer *writer, const char *key, const char *format,
                   ...);
/* Size of the message. 0 where something did not fit. */
size_t mr_attach_end(struct mr_attach_writer *writer);
/* The same, but what did not fit is left out, and a field `cut 1` says so. */
size_t mr_attach_end_cut(struct mr_attach_writer *writer);

#endif
