/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of the page, compiled in: page_data.c is made by cmake/ from master/web/ at
 * build time (see master/CMakeLists.txt).
 *
 * Use:
 *     const struct mr_page_file *file = mr_page_find("/");
 */
#ifndef MR_MASTER_PAGE_H
#define MR_MASTER_PAGE_H

#include <stddef.h>
#include <stdint.h>

struct mr_page_file {
    const char *path; /* "/", "/style.css" */
    const char *type; /* of HTTP */
    const uint8_t *data;
    size_t size;
};

extern const struct mr_page_file mr_page_files[];
extern const size_t mr_page_file_count;

/* NULL: no such file. */
const struct mr_page_file *mr_page_find(const char *path);

#endif
