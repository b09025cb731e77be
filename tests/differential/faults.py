#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults that the differential test must find: each changes one place of one source file of the product, in a copy.

    faults.py --list            name, file, test and first scenario of each, for CMake
    faults.py NAME ROOT OUT     writes the changed copy to OUT; fails unless its place stands in the file exactly once

Who changes such a place mends the fault here: what it does must stay wrong.
"""
import pathlib
import sys

STEP = "pipeline/filters/reconstruct_step.c"
FIND = "pipeline/filters/reconstruct_find.c"
CALLS = "pipeline/filters/reduce_calls.c"
TRACE = "pipeline/filters/reduce_trace.c"
CHUNK = "pipeline/filters/decode_chunk.c"
RUN = "pipeline/filters/decode_run.c"
LINKS = "pipeline/filters/reduce_links.c"
JOINER = "pipeline/joiner.c"
JOINED = "pipeline/joiner_shape.c"
CONDENSE = "pipeline/condense.c"
CONDENSE_FEED = "pipeline/condense_feed.c"
CONDENSE_LOG = "pipeline/condense_log.c"
TEMPLATE = "pipeline/filters/reduce_templates_find.c"
LANDING = "pipeline/filters/reconstruct_landing.c"
OUTER = "pipeline/filters/reconstruct_outer.c"
HOT = "pipeline/filters/reconstruct.c"
INNER = "pipeline/filters/reduce_inner.c"
FOLLOW = "pipeline/filters/reduce_follow.c"
NOTED = "pipeline/filters/reduce_noted.c"

# name: (file, place, what stands there instead)
FAULTS = {
    # Nothing is changed: the way faults are planted breaks nothing by itself.
    "none": (STEP, "", ""),
    "exit-of-the-wrong-frame": (
        FIND,
        "    uint64_t hash;\n\n    if (at != MR_RECONSTRUCT_NOT_OPEN)\n        return at;",
        "    uint64_t hash;\n\n    if (at != MR_RECONSTRUCT_NOT_OPEN)\n"
        "        return at > 0 && is_of(stream->calls[at - 1], site) ? at - 1 : at;"),
    "exit-passes-unknown-calls": (FIND, "return (uint32_t)call == site || (call & MR_CALL(0, MR_EVENT_UNKNOWN));",
                                  "return (uint32_t)call == site;"),
    "self-time-without-children": (CALLS, "        stream->frames[stream->depth - 2].child_ns += total;", "        (void)total;"),
    "bin-boundary-inclusive": ("pipeline/bins.c", "(uint8_t)(mr_histogram_index5(low) + 1 - 63 * 32)",
                               "(uint8_t)(mr_histogram_index5(low + 1) + 1 - 63 * 32)"),
    "full-byte-forgotten": ("pipeline/bins.c", "        carry(pool, at, 1);", "        (void)0;"),
    "fold-count": (CALLS, "*last += UINT64_C(1) << 32;", "*last += UINT64_C(2) << 32;"),
    "hash-ignores-order": (
        "net/ids.c", "        mr_id_put(children[i].id, at);\n",
        "        mr_id_put(children[mr_id_compare(children[0].id, children[count - 1].id) < 0 ? i : count - 1 - i].id, at);\n"),
    "min-of-empty": ("net/delta_stats.c", "    if (into_empty) {\n        *into = *from;\n        return;\n    }\n", "    (void)into_empty;\n"),
    "merge-forgets-maximum": ("net/delta_stats.c", "    into->min = min_of(into->min, from->min);\n    into->max = max_of(into->max, from->max);",
                              "    into->min = min_of(into->min, from->min);"),
    "loss-between-chunks": (CHUNK, "    return lose_blindly(decode, missing, MR_LOSS_FORMAT);", "    return lose_blindly(decode, 1, MR_LOSS_FORMAT);"),
    "gap-without-status": (TRACE, "return trace->is_broken || (close->flags", "return (close->flags"),
    "gap-leaves-calls-open": (STEP, "    return close_above(rebuild, stream, stream->outer_depth, ns, MR_EVENT_INCOMPLETE);", "    return MR_OK;"),
    "window-of-the-start": (CALLS, "        mr_reduce_enter_window(reduce, event->ns);",
                            "        mr_reduce_enter_window(reduce, stream->frames[stream->depth - 1].enter_ns);"),
    "unwind-one-too-many": (STEP, "close_above(rebuild, stream, (uint32_t)depth, event->ns, MR_EVENT_UNWOUND)",
                            "close_above(rebuild, stream, depth ? (uint32_t)depth - 1 : 0, event->ns, MR_EVENT_UNWOUND)"),
    "landing-takes-an-exit-twice": (LANDING, "    if (at == stream->depth) /* landed in, and its own exit came */\n        return MR_OK;\n", ""),
    "landing-closes-the-call-landed-in": (LANDING, "    for (uint32_t i = at + 1; i < end; i++)", "    for (uint32_t i = at; i < end; i++)"),
    "landing-forgets-inner-ones": (LANDING, "stream->landings[stream->landing_count - 1].at >= at", "stream->landings[stream->landing_count - 1].at > at + 1"),
    "landing-closes-a-call-further-out": (LANDING, "    at = mr_reconstruct_find(stream, event->site);\n    if (at == MR_RECONSTRUCT_NOT_OPEN)\n        return MR_OK;\n    return mr", "    if (at > stream->depth)\n        at = mr_reconstruct_find(stream, event->site);\n    if (at == MR_RECONSTRUCT_NOT_OPEN)\n        return MR_OK;\n    return mr"),
    "landing-is-of-whatever-call": (LANDING, "at < stream->depth && (stream->calls[at] & MR_CALL_LANDED) &&", "at < stream->depth &&"),
    "time-runs-back": (RUN, "ticks += step < 0 ? 0 : (uint32_t)step;", "ticks += (uint64_t)(int64_t)step;"),
    "depth-limit-forgets-an-exit": (
        STEP, "    if (stream->overflow) {\n        stream->overflow--;\n", "    if (stream->overflow) {\n        stream->overflow = 0;\n"),
    "forced-root-in-its-encloser": (
        TRACE, "        stream->traces[stream->trace_count - 1].elsewhere += calls + trace.elsewhere;", "        (void)calls;"),
    "base-is-sure-too-soon": (STEP, "    stream->unsynced_roots++;\n", "    stream->unsynced_roots += 2;\n"),
    "loop-is-heard-of-too-late": (OUTER, "((learn_ns) / 8)", "((learn_ns) / 4)"),
    "loop-has-the-children-of-its-child": (OUTER, "            top->children = 0;\n", ""),
    "loop-of-a-stream-without-a-past": (OUTER, "top->since_ns - stream->watch.first_ns)", "0)"),
    "loop-below-unknown-calls": (OUTER, "        if (stream->calls[i] & MR_CALL(0, MR_EVENT_UNKNOWN))\n            return false;\n", ""),
    "loop-one-level-less-deep": (OUTER, "    uint32_t highest = stream->outer_depth + MR_RECONSTRUCT_LEVELS;", "    uint32_t highest = stream->outer_depth + MR_RECONSTRUCT_LEVELS - 1;"),
    "leaf-ends-with-any-exit": (HOT, "           event[1].site == event->site && hot->depth > hot->low;", "           hot->depth > hot->low;"),
    "leaf-is-no-child-of-a-candidate": (HOT, "           event[1].site == event->site && hot->depth > hot->low;",
                                        "           event[1].site == event->site;"),
    "loop-learned-at-any-depth": (OUTER, "depth = stream->outer_depth;", "depth = 0;"),
    "loop-learned-for-all-calls-of-its-caller": (OUTER, "    if (stream->depth == first + 1)\n        keep_place", "    keep_place"),
    "loop-quiet-while-children-end": (OUTER, "    watch->last_ns = ns;\n    return is_loop(", "    return is_loop("),
    "followed-exit-of-another-call": (INNER, "word != hot.top->closes ||", "word >> 32 != MR_EVENT_CLOSE ||"),
    "followed-leaf-ends-with-any-exit": (INNER, "mr_event_word(&event[1]) == mr_open_call_closes(site, 0);", "mr_event_word(&event[1]) >> 32 == MR_EVENT_CLOSE;"),
    "followed-leaf-is-no-child-of-a-candidate": (INNER, "    hot->at++;\n    tell_child(hot, end_ns);", "    hot->at++;"),
    "followed-call-is-no-child-of-a-candidate": (INNER, "    tell_child(hot, event->ns);\n", ""),
    "followed-template-is-no-child-of-a-candidate": (INNER, "    tell_child(hot, last->ns);\n", ""),
    "followed-calls-are-not-told": (FOLLOW, "    uint32_t at = stream->depth;\n", "    uint32_t at = 0;\n"),
    "followed-outer-frame-stays-one": (FOLLOW, "    if (event->flags == MR_EVENT_OUTER)\n", "    if (event->flags == MR_EVENT_OUTER && event->kind == MR_EVENT_OPEN)\n"),
    "followed-stepped-call-is-no-child": (FOLLOW, "    return !nesting->has_child_ended;", "    nesting->has_child_ended = false;\n    return true;"),
    "followed-attach-outlives-its-frame": (HOT, "is_sure(rebuild, stream) && !stream->attach_depth,", "is_sure(rebuild, stream),"),
    "loop-looked-for-an-event-late": (OUTER, "next_look(rebuild, rebuild->look_at + 1,", "next_look(rebuild, rebuild->look_at + 2,"),
    "followed-attach-is-not-given-back": (FOLLOW, "nesting->is_unsure && mr_event_is_passed_on(event);",
                                          "nesting->is_unsure && (event->kind == MR_EVENT_WORD || event->kind == MR_EVENT_LINK);"),
    "followed-link-at-an-unsure-base": (FOLLOW, "    return !nesting->is_unsure && mr", "    return mr"),
    "known-root-tells-no-part": ("pipeline/filters/reduce_run.c", "    if (stream->has_links)\n        status = mr_reduce_links_close", "    if (stream->has_links && !stream->links)\n        status = mr_reduce_links_close"),
    "learned-calls-without-a-tree": (CALLS, "    status = mr_reduce_count_part(reduce, stream);", "    status = MR_OK;"),
    "learned-callers-stay-in-the-tree": (CALLS, "    for (uint32_t i = root; i < stream->depth && status == MR_OK; i++)", "    for (uint32_t i = stream->depth - 1; i < stream->depth && status == MR_OK; i++)"),
    "full-table-forgets-a-shape": (TRACE, "            status = mr_reduce_forget(reduce);\n        else\n", "            return MR_OK;\n        else\n"),
    "open-trace-told-twice": ("pipeline/filters/reduce_delta.c", "    entry->open = (struct mr_open_stats){0};\n", ""),
    "compact-exit-pops-one": ("net/chunk.c", "    if (record->is_exit)\n        mr_compact_leave(&reader->stack, number);",
                              "    if (record->is_exit)\n        (void)number;"),
    "bulk-window": ("pipeline/filters/reduce_templates.c", "        !mr_reduce_in_window(reduce, events[2 * template->calls - 1].ns) ||\n", ""),
    "bulk-zero-totals": ("pipeline/filters/reduce_templates.c", "    path->zeros += gain->zeros;\n", ""),
    "bulk-bin-past-the-end": ("pipeline/filters/reduce_templates.c", "total - call->low >= call->width ? total : 0;", "total - call->low > call->width ? total : 0;"),
    "bulk-root-by-its-size": (TEMPLATE, "!mr_code_is_root_close(codes[size - 1], mr_code_close_of(codes[0])) ||\n        !is_like_root(templates, template, codes))\n        template = look_up", "!mr_code_is_root_close(codes[size - 1], mr_code_close_of(codes[0])))\n        template = look_up"),
    "bulk-by-codes-of-the-run-before": ("pipeline/filters/reduce.c", "    reduce->has_codes = false;\n", ""),
    "root-as-the-one-before": ("pipeline/filters/reduce_run.c", "    if (last &&\n        mr_node_has(&reduce->nodes, reduce->shapes[last - 1].node, frame->hash, count))", "    if (last)"),
    "repeat-window": ("pipeline/filters/reduce_run.c", "        !mr_reduce_in_window(reduce, base_ns + times[group->count * size - 1]) ||\n", ""),
    "repeat-outer-self-time": ("pipeline/filters/reduce_run.c", "child_ns += ns;\n    reduce->taken", "child_ns += 0 * ns;\n    reduce->taken"),
    "waiting-bin-past-the-end": ("pipeline/filters/reduce_templates.c", "calls[i].width = templates->lows[end] - calls[i].low;", "calls[i].width = templates->lows[end] - calls[i].low + 1;"),
    "repeat-steps-back": ("pipeline/filters/decode_times.c", " || seen.bad >> 31", ""),
    "repeat-of-another-tree": ("pipeline/filters/decode_times.c", "(seen.other & ~MR_WIRE_LAP) || ", ""),
    "repeat-inside-a-tree": ("pipeline/filters/reconstruct.c", "stream->depth != stream->outer_depth || !is_plain(rebuild, stream) ||\n        stream->depth >= stream->capacity", "!is_plain(rebuild, stream) ||\n        stream->depth >= stream->capacity"),
    "attached-past-its-call": (STEP, "    if (stream->depth < stream->attach_depth && status == MR_OK)\n        status = end_attached(rebuild, stream, ns);\n", ""),
    "attached-past-its-call-in-a-forced-root": (STEP, "stream->attach_depth = is_within ? stream->depth : 0;", "stream->attach_depth = is_within && stream->forced_depth == 0 ? stream->depth : 0;"),
    "missing-detach-is-waited-for": (LINKS, "    if (links->is_attached && stream->trace_count == links->trees_outside)\n", "    if (false)\n"),
    "missing-detach-leaves-calls-to-be-no-roots": (STEP, "    if (stream->attach_depth ? stream->depth == stream->attach_depth : !is_within)\n", "    if (false)\n"),
    "next-is-below": (JOINED, "beside = is_root ? MR_JOINER_NONE : next_out(joiner, slot)", "beside = MR_JOINER_NONE"),
    "attached-call-in-a-forced-root-ends-unseen": (HOT, "return 1 + (is_attached_inside(stream) ?", "return 1 + (false ?"),
    "followed-attached-call-in-a-forced-root-ends-unseen": (HOT, " &&\n           !is_attached_inside(stream);", ";"),
    "attached-past-a-loss": (STEP, "        status = lose_links(rebuild, stream, ns);", "        status = MR_OK;"),
    "received-past-its-end": (LINKS, "status = current(stream) ? MR_OK : end_received(reduce, stream, event->ns);", "status = MR_OK;"),
    "received-over-in-an-attachment": (LINKS, "status = current(stream) ? MR_OK : end_received(reduce, stream, event->ns);",
                                       "status = end_received(reduce, stream, event->ns);"),
    "received-past-a-detach": (LINKS, "MR_REDUCE_LINKS_UNMATCHED, 1);\n        status = end_received(reduce, stream, ns);", "MR_REDUCE_LINKS_UNMATCHED, 1);"),
    "received-past-a-loss": (LINKS, "    case MR_LINK_LOST_RECEIVED:\n        return end_received(reduce, stream, END_UNKNOWN);", "    case MR_LINK_LOST_RECEIVED:\n        return MR_OK;"),
    "stub-of-an-unsure-base-is-whole": (LINKS, "        stub.status = stub_status;", "        stub.status = MR_PART_OK;"),
    "end-at-an-unsure-base-is-whole": (LINKS, ".trace = trace, .status = stub_status}", ".trace = trace}"),
    "received-at-an-unsure-base-is-whole": (LINKS, "        draft->status = stub_status;\n", ""),
    "attached-at-an-unsure-base-is-whole": (LINKS, "        links->attached.status = stub_status;\n", ""),
    "answer-begins-the-call-tree": (LINKS, "draft->in.kind != MR_EDGE_NONE || draft->out_count > 0 || draft->is_ended", "draft->in.kind != MR_EDGE_NONE || draft->is_ended"),
    "received-until-the-next": (LINKS, "        status = end_received(reduce, stream, END_UNKNOWN);\n        draft = &links->next;",
                                "        status = end_received(reduce, stream, edge->ns);\n        draft = &links->next;"),
    "inner-detach-ends-the-outer-attach": (LINKS, "    if (links->nested > 0) {\n        links->nested--;\n    } else if", "    if"),
    "next-edge-from-the-start": (LINKS, "{.ns = draft->end_ns, .kind = MR_EDGE_NEXT}", "{.ns = draft->start_ns, .kind = MR_EDGE_NEXT}"),
    "edges-past-the-limit-are-forgotten": (LINKS, "        draft->is_cut = true;\n        return false;", "        return false;"),
    "stub-without-the-time-of-its-receive": (LINKS, "draft->start_ns = draft->in.kind ? draft->in.ns : draft->out[0].ns;",
                                             "draft->start_ns = ns ? ns : draft->in.kind ? draft->in.ns : draft->out[0].ns;"),
    "trace-ends-with-an-end-missing": (JOINER, "    if (group->missing == 0)\n        end_group", "    if (group->missing <= 1)\n        end_group"),
    "group-forgets-what-is-missing": (JOINER, "    into->missing += from->missing;\n", ""),
    "siblings-of-other-kinds-are-one": (JOINED, "head && head->kind == child->kind && mr_id_equal", "head && mr_id_equal"),
    "edge-before-it-was-sent": (JOINED, ".ns = took < 0 ? 0 : (uint64_t)took", ".ns = (uint64_t)took"),
    "trace-over-with-its-root": (JOINED, "        if ((int64_t)(end_ns - joined->end_ns) > 0)\n            joined->end_ns = end_ns;\n", "        (void)end_ns;\n"),
    "circle-by-arrival": (JOINED, "        if (mr_id_compare(joiner->slots[up].part.id, joiner->slots[top].part.id) < 0)\n", "        if (up < top)\n"),
    "place-of-a-run": (JOINED, "                free_place += child->size;\n", "                free_place++;\n"),
    "longest-calls-the-later": (CONDENSE, "a->total_ns, a->number, b->total_ns, b->number", "a->total_ns, b->number, b->total_ns, a->number"),
    "guess-believed-too-soon": (CONDENSE_LOG, "    if (condense->kept_count >= condense->limit)\n", "    if (condense->kept_count > 0)\n"),
    "guess-forgotten-in-part": (CONDENSE_LOG, "condense->apart = condense->kept_count = 0;", "condense->apart = 0;"),
    "whole-call-is-one": (CONDENSE_FEED, "        run->opened += calls;\n", "        run->opened++;\n"),
    "noted-among-other-events": (CALLS, "        reduce->noted.is_left = true;\n", "        (void)reduce;\n"),
    "noted-after-another-tree": (CONDENSE_FEED, "        condense->is_odd = true;\n", ""),
    "noted-template-without-its-calls": (NOTED, "                    .child_ns = below[i],\n", ""),
    "noted-call-of-an-earlier-run": (NOTED, "return place < count ? place : MR_CONDENSE_BEFORE;", "return place < count ? place : 0;"),
    "elided-with-what-is-kept": (CONDENSE, "    outer->elided_ns -= call->total_ns;\n", ""),
    "exemplar-has-another-trace-in-it": (CONDENSE_FEED, "condense->apart || (condense->depth && event->flags & MR_EVENT_ROOT)", "condense->apart"),
    "exemplar-by-the-last-start": ("net/exemplar.c", "        return a->start_ns < b->start_ns;", "        return a->start_ns > b->start_ns;"),
    "two-traces-one-exemplar": ("pipeline/filters/reduce_exemplars.c", "trace->closed + trace->frame - outers", "trace->closed"),
}

# Those that another test than test_differential must find.
TESTS = {
    "ids-of-12-bits": "collisions",
}
FAULTS["ids-of-12-bits"] = (
    "net/ids.c", "    *id = mr_hash128(mr_buffer_span(scratch));\n",
    "    *id = mr_hash128(mr_buffer_span(scratch));\n    id->hi = 0;\n    id->lo &= 0xfff;\n")

# The scenario that found a fault for which there are hundreds to go through: the search begins there. Where it is none that finds it
# any more, as streams are made in another way, the search goes on from there.
FIRST = {
    "landing-forgets-inner-ones": 0x102,
    "landing-is-of-whatever-call": 0x1913,
    "repeat-inside-a-tree": 0xc52,
    "repeat-outer-self-time": 0x706,
    "repeat-of-another-tree": 0x30a,
    "followed-template-is-no-child-of-a-candidate": 0x324,
    "known-root-tells-no-part": 0x271,
    "repeat-window": 0x3d1,
    "waiting-bin-past-the-end": 0x1cf,
    "followed-attach-outlives-its-frame": 0x124,
    "edges-past-the-limit-are-forgotten": 0x160,
    "repeat-steps-back": 0x14d,
}


def plant(name, root, out):
    file, place, instead = FAULTS[name]
    text = (pathlib.Path(root) / file).read_text()
    count = text.count(place) if place else 1
    if count != 1:
        sys.exit(f"tests/differential/faults.py: fault {name}: its place stands {count} times in {file}, not once; mend it there")
    pathlib.Path(out).write_text(text.replace(place, instead) if place else text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print(";".join(f"{name}={fault[0]}={TESTS.get(name, 'differential')}={FIRST.get(name, 1)}" for name, fault in FAULTS.items()), end="")
    elif len(sys.argv) == 4:
        plant(*sys.argv[1:])
    else:
        sys.exit(__doc__)
