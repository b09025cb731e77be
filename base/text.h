/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that comes from outside, such as a name of a traced program, before it goes where people or other programs read it.
 * Both change it in place and never make it longer. Any thread; errno stays. Of our own, as the probe logs, too, and links no shared library.
 *
 * Use:
 *     size = mr_text_make_plain(line, size); // to a terminal
 *     mr_text_make_valid(name, strlen(name)); // to JSON
 */
#ifndef MR_BASE_TEXT_H
#define MR_BASE_TEXT_H

#include <stddef.h>

/* Each byte that is no part of a character of UTF-8 (RFC 3629) becomes '?'. */
void mr_text_make_valid(char *text, size_t size);

/*
 * The same; and each character that ends a line, drives a terminal or turns the direction of what follows becomes one '?':
 * C0 and C1 controls, line and paragraph separators, marks and overrides of direction. Returns the size that is left; no zero
 * byte is put behind it.
 */
size_t mr_text_make_plain(char *text, size_t size);

/* As much of `text` as fits in `copy`, of `size` bytes, made plain and ended by a zero byte. Returns `copy`. */
const char *mr_text_plain_copy(const char *text, char *copy, size_t size);

#endif
