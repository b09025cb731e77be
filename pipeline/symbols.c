/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/symbols.h"

#include "base/assert.h"
#include "base/hash.h"
#include "pipeline/demangle.h"
#include "pipeline/symbols_private.h"

#include <stdlib.h>
#include <string.h>

struct mr_symbols {
    struct mr_symbols_limits limits;
    struct mr_symbols_module *modules; /* modules_max */
    struct mr_symbols_stats stats;
    char name[MR_TEXT_MAX]; /* of the last lookup, demangled or cut */
    char file[MR_TEXT_MAX];
};

enum mr_status mr_symbols_new(const struct mr_symbols_limits *limits,
                              struct mr_symbols **symbols)
{
    struct mr_symbols *made = calloc(1, sizeof(*made));

    if (!made)
        return MR_ENOMEM;
    if (limits)
        made->limits = *limits;
    if (made->limits.modules_max == 0)
        made->limits.modules_max = MR_SYMBOLS_MODULES_MAX;
    if (made->limits.functions_max == 0)
        made->limits.functions_max = MR_SYMBOLS_FUNCTIONS_MAX;
    made->modules = calloc(made->limits.modules_max, sizeof(*made->modules));
    if (!made->modules) {
        free(made);
        return MR_ENOMEM;
    }
    *symbols = made;
    return MR_OK;
}

void mr_symbols_free(struct mr_symbols *symbols)
{
    if (!symbols)
        return;
    for (uint32_t i = 0; i < symbols->limits.modules_max; i++)
        mr_symbols_module_close(&symbols->modules[i]);
    free(symbols->modules);
    free(symbols);
}

static struct mr_id module_key(struct mr_span build_id, const char *path)
{
    struct mr_span bytes = build_id.size ? build_id : mr_span_of_text(path);

    return mr_hash128_seed(bytes, build_id.size != 0);
}

/* The module with `key`; else a free place, or that of the least recently used one. */
static struct mr_symbols_module *find_module(struct mr_symbols *symbols, struct mr_id key,
                                             bool *is_open)
{
    struct mr_symbols_module *oldest = &symbols->modules[0];

    *is_open = false;
    for (uint32_t i = 0; i < symbols->limits.modules_max; i++) {
        struct mr_symbols_module *module = &symbols->modules[i];

        *is_open = module->is_taken && mr_id_equal(module->key, key);
        if (*is_open)
            return module;
        if (module->used < oldest->used)
            oldest = module; /* a free place was never used */
    }
    return oldest;
}

static struct mr_symbols_module *open_module(struct mr_symbols *symbols,
                                             struct mr_span build_id, const char *path)
{
    struct mr_id key = module_key(build_id, path);
    bool is_open;
    struct mr_symbols_module *module = find_module(symbols, key, &is_open);

    if (!is_open) {
        mr_symbols_module_close(module);
        module->is_taken = true;
        module->key = key;
        mr_symbols_module_open(module, &symbols->limits, build_id, path, &symbols->stats);
    }
    module->used = symbols->stats.lookups;
    return module;
}

static const char *cut(const char *text, char copy[MR_TEXT_MAX])
{
    size_t size = text ? strnlen(text, MR_TEXT_MAX - 1) : 0;

    if (size)
        memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

enum mr_status mr_symbols_lookup(struct mr_symbols *symbols, struct mr_span build_id,
                                 const char *path, uint64_t offset,
                                 struct mr_symbol *symbol)
{
    struct mr_symbols_module *module;
    const struct mr_symbols_function *function;
    const char *name = NULL, *file = NULL;

    MR_ASSERT(path && symbol);
    *symbol = (struct mr_symbol){.name = "", .file = "", .quality = MR_QUALITY_OFFSET};
    symbols->stats.lookups++;
    module = open_module(symbols, build_id, path);
    function = mr_symbols_find_function(module, offset);
    if (mr_symbols_debug_find(module, function ? function->offset : offset, &name, &file,
                              &symbol->line))
        symbol->quality = MR_QUALITY_DEBUG;
    else if (function)
        symbol->quality = MR_QUALITY_SYMBOL;
    if (function)
        name =
            function->name; /* the linker's name has the types that a mangled one tells */
    if (symbol->quality == MR_QUALITY_OFFSET || !name)
        return MR_ENOTFOUND;
    symbol->name = mr_demangle(name, symbols->name, sizeof(symbols->name))
                       ? symbols->name
                       : cut(name, symbols->name);
    symbol->file = cut(file, symbols->file);
    symbols->stats.found++;
    return MR_OK;
}

void mr_symbols_stats(const struct mr_symbols *symbols, struct mr_symbols_stats *stats)
{
    *stats = symbols->stats;
}
