/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/site_module.h"

#include <string.h>
#include <sys/mman.h>

#define OPCODE_TEST 0xa9 /* test $imm32, %eax: changes the flags alone */
#define OPCODE_CALL 0xe8
#define OPCODE_RET 0xc3
#define OPCODE_JMP 0xe9

#define SITE_BYTES 5
#define POINT_BYTES_MAX 11

/* No-operations of each length that compilers leave for a call. */
static const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
static const uint8_t nop6[] = {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00};

static uint8_t opcode(const struct mr_site_point *point, bool is_on)
{
    if (point->kind == MR_SITE_RETURN)
        return is_on ? OPCODE_JMP : OPCODE_RET;
    return is_on ? OPCODE_CALL : OPCODE_TEST;
}

static uint64_t point_address(const struct mr_site_state *state,
                              const struct mr_site_point *point)
{
    return state->module.address + point->offset;
}

/* The off form: opcode, displacement to the stub, and a no-operation over what is left. */
static size_t compose(const struct mr_site_state *state,
                      const struct mr_site_point *point, uint8_t *bytes)
{
    uint64_t stub = point->kind == MR_SITE_ENTER
                        ? mr_stub_enter(&state->stubs, point->function)
                        : mr_stub_exit(&state->stubs, point->function);
    int32_t displacement = (int32_t)(stub - (point_address(state, point) + SITE_BYTES));

    bytes[0] = opcode(point, false);
    memcpy(bytes + 1, &displacement, sizeof(displacement));
    if (point->kind == MR_SITE_RETURN || point->size == SITE_BYTES)
        return SITE_BYTES;
    if (point->size == SITE_BYTES + 1)
        bytes[SITE_BYTES] = 0x90;
    else
        memcpy(bytes + SITE_BYTES, nop6, sizeof(nop6));
    return point->size;
}

static enum mr_status write_off_forms(struct mr_site_state *state)
{
    struct mr_patch patch;

    mr_patch_open(&patch, &state->module);
    for (uint32_t i = 0; i < state->table.point_count; i++) {
        struct mr_site_point *point = &state->table.points[i];
        uint8_t bytes[POINT_BYTES_MAX];
        size_t size = compose(state, point, bytes);

        point->is_patched =
            mr_patch_write(&patch, point_address(state, point), bytes, size);
        if (!point->is_patched)
            break; /* the first is refused, or none */
    }
    return mr_patch_close(&patch);
}

static enum mr_status make_stubs(struct mr_site_state *state,
                                 const struct mr_windows *windows, struct mr_error *error)
{
    const struct mr_site_table *table = &state->table;
    enum mr_status status =
        mr_stub_open(&state->stubs, &state->module, table->function_count, error);

    for (uint32_t i = 0; i < table->function_count && status == MR_OK; i++) {
        uint64_t address = state->module.address + table->functions[i].offset;
        uint32_t site = mr_windows_site(windows, address);

        if (site == 0) {
            mr_stub_close(&state->stubs);
            return mr_error_set(error, MR_ELIMIT,
                                "%s: loaded outside the range that sites are numbered in",
                                state->module.path);
        }
        mr_stub_put(&state->stubs, i, site);
    }
    return status == MR_OK ? mr_stub_seal(&state->stubs, error) : status;
}

static enum mr_status find(const struct mr_site_module *told, struct mr_module *module,
                           struct mr_site_table *table, struct mr_error *error)
{
    enum mr_status status;

    if (told->version != MR_SITE_MODULE_VERSION)
        return mr_error_set(error, MR_EVERSION,
                            "a module was linked with libmillrace_sites.a of another "
                            "version: link it again");
    if (!mr_modules_find(told->entry, module))
        return mr_error_set(error, MR_ENOTFOUND, "the loader does not know a module");
    status = mr_site_table_find(table, module, told, error);
    if (status != MR_OK || table->function_count > 0)
        return status;
    mr_site_table_fini(table);
    return mr_error_set(error, MR_ENOTFOUND,
                        "%s: no patchable functions: compile with the flags of "
                        "pkg-config millrace-patchable",
                        module->path);
}

static enum mr_status prepare(struct mr_site_state *state,
                              const struct mr_windows *windows, struct mr_error *error)
{
    enum mr_status status = make_stubs(state, windows, error);

    if (status != MR_OK)
        return status;
    status = write_off_forms(state);
    if (status == MR_OK)
        return status;
    mr_stub_close(&state->stubs);
    return mr_error_set(error, status, "%s: the system lets nobody write to code",
                        state->module.path);
}

enum mr_status mr_site_module_open(struct mr_site_state **state,
                                   const struct mr_site_module *told,
                                   const struct mr_windows *windows,
                                   struct mr_error *error)
{
    void *memory = mmap(NULL, sizeof(**state), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct mr_site_state *next = memory;
    enum mr_status status;

    if (memory == MAP_FAILED)
        return mr_error_set(error, MR_ENOMEM, "out of memory");
    next->key = told->entry;
    status = find(told, &next->module, &next->table, error);
    if (status == MR_OK) {
        status = prepare(next, windows, error);
        if (status != MR_OK)
            mr_site_table_fini(&next->table);
    }
    if (status == MR_OK)
        *state = next;
    else
        (void)munmap(memory, sizeof(*next));
    return status;
}

static void neutralise(struct mr_patch *patch, const struct mr_module *module,
                       const struct mr_site_point *point)
{
    uint64_t address = module->address + point->offset;

    if (point->size == SITE_BYTES)
        (void)mr_patch_write(patch, address, nop5, sizeof(nop5));
    else if (point->size == SITE_BYTES + 1)
        (void)mr_patch_write(patch, address, nop6, sizeof(nop6));
}

enum mr_status mr_site_module_neutralise(const struct mr_site_module *told,
                                         struct mr_error *error)
{
    struct mr_site_module calls = *told;
    struct mr_site_table table = {0};
    struct mr_module module;
    struct mr_patch patch;
    enum mr_status status;

    calls.xray_end = calls.xray_start; /* XRay's sleds already do nothing */
    status = find(&calls, &module, &table, error);

    if (status != MR_OK)
        return status;
    mr_patch_open(&patch, &module);
    for (uint32_t i = 0; i < table.point_count && !patch.is_refused; i++)
        neutralise(&patch, &module, &table.points[i]);
    status = mr_patch_close(&patch);
    mr_site_table_fini(&table);
    return status;
}

void mr_site_module_close(struct mr_site_state *state)
{
    mr_stub_close(&state->stubs);
    mr_site_table_fini(&state->table);
    (void)munmap(state, sizeof(*state));
}

/* Of a pruned function only the entry is on: its thunk counts. */
static bool is_point_on(const struct mr_site_point *point, bool is_on, bool is_pruned)
{
    return is_on && (!is_pruned || point->kind == MR_SITE_ENTER);
}

/* True if all points of the function are in the new state. */
static bool switch_function(struct mr_site_state *state, struct mr_patch *patch,
                            const struct mr_site_function *function, bool is_on,
                            bool is_pruned)
{
    bool is_done = true;

    for (uint32_t i = function->first; i != MR_SITE_POINT_NONE;
         i = state->table.points[i].next) {
        const struct mr_site_point *point = &state->table.points[i];
        bool was_on = is_point_on(point, function->is_on, function->is_pruned);
        bool will_be_on = is_point_on(point, is_on, is_pruned);

        if (was_on == will_be_on)
            continue;
        if (mr_patch_swap(patch, point_address(state, point), opcode(point, was_on),
                          opcode(point, will_be_on))) {
            state->patched++;
        } else {
            state->foreign += !patch->is_refused;
            is_done = false;
        }
    }
    return is_done;
}

static void apply_to(struct mr_site_state *state, struct mr_patch *patch,
                     struct mr_site_function *function, bool is_on,
                     struct mr_sites_result *result)
{
    result->matched++;
    if (function->is_on == is_on)
        return;
    if (!switch_function(state, patch, function, is_on, function->is_pruned)) {
        result->refused++;
        return;
    }
    function->is_on = is_on;
    state->on += is_on ? 1 : UINT32_MAX;
    result->switched++;
}

enum mr_status mr_site_module_apply(struct mr_site_state *state,
                                    struct mr_site_rule *rule,
                                    struct mr_sites_result *result)
{
    struct mr_symbols symbols;
    bool has_names = mr_site_rule_has_globs(rule) &&
                     mr_symbols_open(&symbols, &state->module) == MR_OK;
    enum mr_status status;
    struct mr_patch patch;

    mr_patch_open(&patch, &state->module);
    for (uint32_t i = 0; i < state->table.function_count && !patch.is_refused; i++) {
        struct mr_site_function *function = &state->table.functions[i];

        if (mr_site_rule_matches(rule, has_names ? &symbols : NULL,
                                 state->module.address + function->offset,
                                 function->is_always ? UINT64_MAX : function->size))
            apply_to(state, &patch, function, rule->is_on, result);
    }
    status = mr_patch_close(&patch);
    if (has_names)
        mr_symbols_close(&symbols);
    result->modules++;
    result->sites += state->table.function_count;
    result->on += state->on;
    return status;
}

struct mr_site_function *mr_site_module_find(const struct mr_site_state *state,
                                             uint64_t address)
{
    const struct mr_site_table *table = &state->table;
    uint64_t offset = address - state->module.address;

    for (uint32_t i = 0; i < table->function_count; i++)
        if (table->functions[i].offset == offset)
            return &table->functions[i];
    return NULL;
}

/* The exits first: an enter without exit is known for what it is, the reverse is not. */
bool mr_site_module_prune(struct mr_site_state *state, struct mr_patch *patch,
                          struct mr_site_function *function, bool is_pruned)
{
    uint32_t number = (uint32_t)(function - state->table.functions);
    bool is_done = true;

    if (function->is_pruned == is_pruned)
        return true;
    if (is_pruned)
        is_done = switch_function(state, patch, function, function->is_on, true);
    is_done = mr_stub_count(&state->stubs, number, is_pruned) && is_done;
    if (!is_pruned)
        is_done =
            switch_function(state, patch, function, function->is_on, false) && is_done;
    function->is_pruned = is_pruned;
    return is_done;
}
