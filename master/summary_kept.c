/* SPDX-License-Identifier: Apache-2.0 */
/* The slowest trace that is kept, and what took longest in it. */
#include <stdlib.h>

#include "master/summary_private.h"

#include "base/sum.h"
static const char *keep(struct mr_arena *arena, const struct mr_model_root *root,
                        uint32_t site)
{
    char text[MR_SITE_LABEL_SIZE];
    const char *copy = mr_arena_copy(
        arena, mr_span_of_text(mr_model_site_label(mr_model_site(root, site), text)));

    return copy ? copy : "";
}

/* Of each call the time without that of the calls in it. */
static void fill_self(const struct mr_exemplar *exemplar, uint64_t *self_ns,
                      uint32_t *stack)
{
    const struct mr_exemplar_call *calls = exemplar->items;

    for (uint32_t i = 0; i < exemplar->call_count; i++) {
        self_ns[i] = calls[i].total_ns - calls[i].elided_ns;
        stack[calls[i].depth] = i;
        if (calls[i].depth > 0)
            self_ns[stack[calls[i].depth - 1]] -= calls[i].total_ns;
    }
}

/* The call joins those of the longest self time, the longest first. */
static void rank(struct mr_summary_kept *kept, uint32_t call, uint64_t self_ns,
                 uint32_t *calls)
{
    uint32_t at = kept->inner_count;

    while (at > 0 && kept->inner[at - 1].self_ns < self_ns)
        at--;
    if (at == MR_SUMMARY_INNER_MAX)
        return;
    kept->inner_count += kept->inner_count < MR_SUMMARY_INNER_MAX;
    for (uint32_t i = kept->inner_count - 1; i > at; i--) {
        kept->inner[i] = kept->inner[i - 1];
        calls[i] = calls[i - 1];
    }
    kept->inner[at].self_ns = self_ns;
    calls[at] = call;
}

static enum mr_status make_inner(const struct mr_model_root *root, struct mr_arena *arena,
                                 const struct mr_exemplar *exemplar,
                                 struct mr_summary_kept *kept)
{
    uint32_t calls[MR_SUMMARY_INNER_MAX] = {0};
    uint64_t *self_ns = calloc(exemplar->call_count, sizeof(*self_ns));
    uint32_t *stack = calloc(exemplar->call_count, sizeof(*stack));
    bool has_memory = self_ns && stack;

    if (has_memory)
        fill_self(exemplar, self_ns, stack);
    for (uint32_t i = 0; has_memory && i < exemplar->call_count; i++) {
        mr_sum_add(&kept->elided_calls, exemplar->items[i].elided_calls);
        mr_sum_add(&kept->elided_ns, exemplar->items[i].elided_ns);
        rank(kept, i, self_ns[i], calls);
    }
    for (uint32_t i = 0; i < kept->inner_count; i++)
        kept->inner[i].name = keep(arena, root, exemplar->items[calls[i]].site);
    free(self_ns);
    free(stack);
    return has_memory ? MR_OK : MR_ENOMEM;
}

enum mr_status mr_summary_make_kept(const struct mr_model_root *root,
                                    struct mr_arena *arena, struct mr_summary *summary)
{
    const struct mr_exemplar *slowest = NULL;
    struct mr_summary_kept *kept = &summary->kept;

    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_EXEMPLAR); i++) {
        const struct mr_exemplar *exemplar = &mr_model_exemplar(root, i)->exemplar;

        if (exemplar->why != MR_EXEMPLAR_SLOWEST)
            continue; /* what is the first of its shape alone is not slow */
        kept->shapes++;
        if (!slowest || mr_exemplar_is_before(exemplar, slowest, MR_EXEMPLAR_SLOWEST))
            slowest = exemplar;
    }
    if (!slowest)
        return MR_OK;
    kept->id = mr_model_exemplar_id(slowest);
    kept->name = keep(arena, root, slowest->items[0].site);
    kept->status = slowest->status;
    kept->ns = mr_exemplar_ns(slowest);
    kept->start_ns = slowest->start_ns;
    kept->calls = slowest->calls;
    return make_inner(root, arena, &mr_model_find_exemplar(root, kept->id)->exemplar,
                      kept);
}
