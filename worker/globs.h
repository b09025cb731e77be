/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of globs out of one option: "main_loop,ev_*". Commas and spaces part them. Owns
 * its text.
 *
 *     status = mr_globs_parse(options->outer, "--outer", &globs, &error);
 *     use(globs.items, globs.count);
 *     mr_globs_fini(&globs);
 */
#ifndef MR_WORKER_GLOBS_H
#define MR_WORKER_GLOBS_H

#include "base/error.h"

#include <stdint.h>

#define MR_GLOBS_MAX 64

struct mr_globs {
    char *text;
    const char *items[MR_GLOBS_MAX];
    uint32_t count;
};

/* MR_EUSAGE when there are more than MR_GLOBS_MAX, MR_ENOMEM; nothing is owned then. */
enum mr_status mr_globs_parse(const char *text, const char *option,
                              struct mr_globs *globs, struct mr_error *error);
void mr_globs_fini(struct mr_globs *globs);

#endif
