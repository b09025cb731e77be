/* SPDX-License-Identifier: Apache-2.0 */
/* What a script says, told to the reference. */
#include "script.h"

static void tell(struct ref *ref, const struct op *op, struct test_text *text)
{
    const struct script_module *module;
    char name[24];

    switch (op->kind) {
    case OP_MODULE:
        module = &script_modules[op->number];
        ref_module(ref, SCRIPT_EPOCH, module->site_base, module->address,
                   SCRIPT_MODULE_SIZE, module->bias, module->build_id);
        break;
    case OP_NAMED:
        ref_named(ref, op->number, script_name(op->number, name), op->value);
        break;
    case OP_STREAM:
        ref_stream(ref, op->number, op->value);
        break;
    case OP_CHUNKS:
        ref_chunks(ref, op->bytes, op->size);
        break;
    case OP_OPEN:
        ref_open(ref, text);
        break;
    case OP_TICK:
        break;
    }
}

void script_to_reference(const struct script *script, const struct ref_options *options,
                         struct test_text *text)
{
    struct ref_options of_source = *options;
    struct ref *ref;

    of_source.source = script_source(0);
    ref = ref_new(&of_source);

    for (size_t i = 0; i < script->count; i++)
        tell(ref, &script->ops[i], text);
    ref_end(ref, text);
}
