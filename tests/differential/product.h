/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The product's side: lanes of decode, reconstruct and reduce, whose deltas go through any number of levels of merge; and what the
 * last one says, as lines:
 *
 *     path ID @WINDOW = ok failed incomplete self=sum,min,max total=sum,min,max hist=zeros;scale;first;c,c,...
 *     shape PATH-ID NODE-ID @WINDOW = ok failed calls folded first last time=... hist=...
 *     entry PATH-ID @WINDOW = traces,calls,ns (whole) ... (folded) ... (paths) ... (incomplete)
 *     ledger STREAM = last reduced held reason:lost ...
 *     outer SITE-ID why
 *     open PATH-ID = count oldest since                  at each OP_OPEN
 *     exemplar PATH-ID NODE-ID why=W status stream before start calls; depth SITE start+total flags-elided calls,ns; ...
 *     part ID = trace path node status flags start end kind:edge+ns -> kind:edge+ns ...          as long as it is not joined
 *     joined ID @WINDOW = ok failed incomplete first last slowest=TRACE time=... hist=...
 *     edge ID @WINDOW place = count clamped time=... hist=...
 *
 * On the way it checks that sites and nodes are told before they are used, and that the id of every node is that of its content.
 *
 *     struct product *product = product_new(&config);        // a source, a lane for it
 *     product_op(product, &op);
 *     product_end(product, &text);                           // END, drain, lines; frees
 */
#ifndef MR_TESTS_DIFFERENTIAL_PRODUCT_H
#define MR_TESTS_DIFFERENTIAL_PRODUCT_H

#include "pipeline/filters/reconstruct.h"
#include "pipeline/filters/reduce.h"
#include "pipeline/graph.h"
#include "script.h"

struct product_config {
    struct ref_options model;
    struct mr_reduce_config reduce; /* limits; what `model` has too is taken from there */
    enum mr_place place;            /* of reconstruct and reduce */
    uint64_t source;                /* number: streams are of it */
    bool forgets;                   /* what comes out is thrown away */
};

/* DICT and DELTA batches, in their order. */
struct product_batches {
    struct mr_batch *first, **end;
};

struct product;

struct product *product_new(const struct product_config *config);
void product_op(struct product *product, const struct op *op, struct test_text *text);
/* Ends the source and drains; how many events are then held still. */
uint64_t product_finish(struct product *product);
/* Of reduce: "reduced", "lost" ... */
uint64_t product_counter(const struct product *product, const char *name);
/* Finishes if that was not done, gives what came out (the caller frees; NULL where it was thrown away), and frees the rest. */
void product_end(struct product *product, struct product_batches *batches);

/* Merges all into lines. */
void product_lines(const struct product_batches *batches, struct test_text *text);
/* The same without a look at the dictionaries. */
void product_rows(const struct product_batches *batches, struct test_text *text);
/* Lines of the open traces that these batches tell of. */
void product_open_lines(const struct mr_batch *batch, struct test_text *text);
/* Through `merge`, as a worker of level 2 and more has it: its output instead of its input. */
void product_merge(struct product_batches *batches, uint32_t level, enum mr_place place);
/* Through `join` and `merge`; join has room for `parts` parts. */
void product_join(struct product_batches *batches, uint32_t level, uint32_t parts,
                  uint32_t window_s, enum mr_place place);
/* product_joined.c: as the master does, joins what parts are there and ends what is not whole: rows of one batch more. */
void product_end_traces(struct product_batches *batches, uint32_t window_s);
/* The same; how many ids of different things it found to be the same. */
uint64_t product_merge_collisions(struct product_batches *batches);
void product_append(struct product_batches *to, struct product_batches *from);
void product_free(struct product_batches *batches);

#endif
