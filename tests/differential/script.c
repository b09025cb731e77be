/* SPDX-License-Identifier: Apache-2.0 */
#include "script.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

const struct script_module script_modules[SCRIPT_MODULES] = {
    {UINT32_C(1) << 24, 0x400000, 0x400000, "0123456789"},
    {(UINT32_C(1) << 24) + 4096, 0x7f0000000000, 0x7effffff0000, "9876543210"},
};

void script_add(struct script *script, struct op op)
{
    if (script->count == script->capacity) {
        script->capacity = script->capacity ? 2 * script->capacity : 64;
        script->ops = realloc(script->ops, script->capacity * sizeof(*script->ops));
        if (!script->ops)
            abort();
    }
    script->ops[script->count++] = op;
}

void script_clear(struct script *script)
{
    for (size_t i = 0; i < script->count; i++)
        free(script->ops[i].bytes);
    free(script->ops);
    *script = (struct script){0};
}

struct ref_id script_source(uint64_t number)
{
    struct ref_id id = {.bytes = {[15] = 2}};

    for (int i = 0; i < 8; i++)
        id.bytes[i] = (uint8_t)((number + 1) >> 8 * (7 - i));
    return id;
}

const char *script_name(uint32_t wire, char out[24])
{
    (void)snprintf(out, 24, "span-%" PRIu32, wire);
    return out;
}
