/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/globs.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum mr_status mr_globs_parse(const char *text, const char *option,
                              struct mr_globs *globs, struct mr_error *error)
{
    char *rest = NULL;

    MR_ASSERT(text && option);
    *globs = (struct mr_globs){.text = strdup(text)};
    if (!globs->text)
        return mr_error_set(error, MR_ENOMEM, "%s: no memory", option);
    for (char *part = strtok_r(globs->text, ", \t", &rest); part;
         part = strtok_r(NULL, ", \t", &rest)) {
        if (globs->count == MR_GLOBS_MAX) {
            mr_globs_fini(globs);
            return mr_error_set(error, MR_EUSAGE, "%s: more than %d globs", option,
                                MR_GLOBS_MAX);
        }
        globs->items[globs->count++] = part;
    }
    return MR_OK;
}

void mr_globs_fini(struct mr_globs *globs)
{
    free(globs->text);
    *globs = (struct mr_globs){0};
}
