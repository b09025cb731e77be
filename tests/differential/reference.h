/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the analysis must say of a source, computed the naive way from the bytes it sends: docs/FORMAT.md read anew, calls
 * kept as a tree of structs until their stream ends, statistics by recursion over finished trees, histograms from
 * logarithms, ids by the table of FORMAT.md section 7. Includes nothing of the product; only the form of the result (lines,
 * product.h) is common. Bytes are trusted: what breaks the format aborts.
 *
 *     struct ref *ref = ref_new(&options);
 *     ref_module(ref, ...); ref_named(ref, ...); ref_stream(ref, ...);   // in the order in which the source tells them ...
 *     ref_chunks(ref, bytes, size);                                      // ... and its CHUNKS payloads
 *     ref_open(ref, &text);                                              // what is open now
 *     ref_end(ref, &text);                                               // the source ends: all lines; frees
 *
 * reference_read.c reads chunks, reference.c follows the nesting, reference_rows.c counts, reference_ids.c hashes;
 * reference_links.c and reference_joined.c join call trees, reference_exemplars.c keeps single traces.
 */
#ifndef MR_TESTS_DIFFERENTIAL_REFERENCE_H
#define MR_TESTS_DIFFERENTIAL_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../unit/pipeline/support_text.h"

/* In the order in which ids are printed and compared. */
struct ref_id {
    uint8_t bytes[16];
};

struct ref_options {
    uint8_t exactness; /* as FORMAT.md section 5 has it: 0 folded, 1 exact, 2 set */
    uint32_t depth_max;
    uint32_t trace_children_max;
    uint64_t learn_ns;
    uint32_t learn_children;
    bool learns;
    uint64_t window_s;
    const char *app, *version;
    struct ref_id source;
    uint32_t exemplar_calls; /* that are kept of one trace */
    uint64_t clock_mult, clock_ticks, clock_realtime_ns;
    uint32_t clock_shift;
};

struct ref;

struct ref *ref_new(const struct ref_options *options);
void ref_module(struct ref *ref, uint32_t epoch, uint32_t site_base, uint64_t address,
                uint32_t size, uint64_t bias, const char *build_id);
/* flags: 1 root, 2 outer */
void ref_named(struct ref *ref, uint32_t site, const char *name, uint32_t flags);
void ref_stream(struct ref *ref, uint32_t stream, uint32_t start_site);
void ref_chunks(struct ref *ref, const uint8_t *bytes, size_t size);
void ref_open(struct ref *ref, struct test_text *text);
void ref_end(struct ref *ref, struct test_text *text);

/* reference_ids.c: FORMAT.md section 7. */
struct ref_id ref_id_function(const char *build_id, uint64_t offset);
struct ref_id ref_id_span(const char *app, const char *name);
struct ref_id ref_id_unknown(void);
struct ref_id ref_id_scope(const char *app, const char *version);
struct ref_id ref_id_message(struct ref_id trace, uint64_t span);
struct ref_id ref_id_hand_off(struct ref_id source, uint64_t number);
struct ref_id ref_id_next(struct ref_id part);
struct ref_id ref_id_part(struct ref_id source, uint32_t stream, uint64_t number);
struct ref_id ref_id_path(struct ref_id parent, struct ref_id site, bool is_outer);

struct ref_child {
    struct ref_id id;
    uint64_t repeat;
};
struct ref_id ref_id_node(uint8_t exactness, struct ref_id site,
                          const struct ref_child *children, size_t count);
struct ref_joined_child {
    struct ref_id id;
    uint8_t kind;
    bool is_run;
};
struct ref_id ref_id_joined(uint8_t flags, struct ref_id path, struct ref_id node,
                            const struct ref_joined_child *children, size_t count);
bool ref_id_is_zero(const struct ref_id *id);
int ref_id_compare(const struct ref_id *a, const struct ref_id *b);
/* 32 digits and a zero byte. */
#define REF_ID_TEXT 33
const char *ref_id_text(struct ref_id id, char out[REF_ID_TEXT]);

#endif
