/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A script: what a source says, in its order, as facts and as bytes of CHUNKS payloads; for the product and the reference
 * alike. streams.c makes random ones.
 */
#ifndef MR_TESTS_DIFFERENTIAL_SCRIPT_H
#define MR_TESTS_DIFFERENTIAL_SCRIPT_H

#include "reference.h"

enum op_kind { OP_MODULE, OP_NAMED, OP_STREAM, OP_CHUNKS, OP_TICK, OP_OPEN };

struct op {
    enum op_kind kind;
    uint32_t number; /* MODULE: of modules[]; NAMED: wire site; STREAM: stream */
    uint32_t value;  /* NAMED: flags; STREAM: start site; TICK: ms */
    uint8_t *bytes;  /* CHUNKS; owned */
    size_t size;
};

struct script {
    struct op *ops;
    size_t count, capacity;
};

void script_add(struct script *script, struct op op);
void script_clear(struct script *script);

/* The modules of every script: functions at every 16 bytes. */
#define SCRIPT_MODULES 2u
#define SCRIPT_MODULE_SIZE 1024u
#define SCRIPT_EPOCH 1u
struct script_module {
    uint32_t site_base;
    uint64_t address, bias;
    const char *build_id;
};
extern const struct script_module script_modules[SCRIPT_MODULES];
/* The id of a source, by its number. */
struct ref_id script_source(uint64_t number);
/* The name of a named site. */
const char *script_name(uint32_t wire, char out[24]);

void script_to_reference(const struct script *script, const struct ref_options *options,
                         struct test_text *text);

#endif
