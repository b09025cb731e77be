/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the options_*.c files alone: text forms of values and ranges.
 *
 * Use:
 *     char text[MR_OPTION_RANGE_SIZE];
 *     mr_option_range_text(spec, text, sizeof(text));    "1 to 64"
 */
#ifndef MR_BASE_OPTIONS_PRIVATE_H
#define MR_BASE_OPTIONS_PRIVATE_H

#include "base/options.h"

#define MR_OPTION_RANGE_SIZE 96

/*
 * What the option allows, in words: "1 to 64", "at least 4K", "drop|block", "any text";
 * borrowed size.
 */
void mr_option_range_text(const struct mr_option_spec *spec, char *text, size_t size);

/* True if the option has bounds or choices that help should show. */
bool mr_option_is_bounded(const struct mr_option_spec *spec);

#endif
