/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/demangle.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the C++ runtime (Itanium C++ ABI, section 3.4); its header is for C++ alone. */
char *__cxa_demangle(const char *mangled_name, char *output_buffer, size_t *length,
                     int *status);

bool mr_demangle(const char *name, char *text, size_t size)
{
    char *plain;
    int status = 0;

    MR_ASSERT(size >= 2 * sizeof(MR_DEMANGLE_CUT));
    if (strncmp(name, "_Z", 2) != 0 ||
        strnlen(name, MR_DEMANGLE_NAME_MAX + 1) > MR_DEMANGLE_NAME_MAX)
        return false;
    plain = __cxa_demangle(name, NULL, NULL, &status);
    if (!plain)
        return false;
    if (snprintf(text, size, "%s", plain) >= (int)size)
        memcpy(text + size - sizeof(MR_DEMANGLE_CUT), MR_DEMANGLE_CUT,
               sizeof(MR_DEMANGLE_CUT));
    free(plain);
    return true;
}
