# SPDX-License-Identifier: Apache-2.0
"""What a master says, beside what the programs' logs say."""
import collections
import re

import joined
import replay
import system

ROWS_MAX = 10000

# How far a time between two events may be off what the log says of it: where two programs' clocks are compared by the time of day, and
# where one program's is converted.
Slack = collections.namedtuple("Slack", "of_two_ns of_one_ns")
PRECISE = Slack(5_000_000, 200_000)
HYBRID = Slack(100_000_000, 100_000_000)  # between two looks at the clock a thread gives the time, which may have to wait for a processor


class Said:
    """Joined traces: text -> the API's row."""

    def __init__(self, master):
        self.master = master
        self.shapes = {}
        answer = master.get(f"/api/v1/traces?limit={ROWS_MAX}")
        system.check(len(answer["traces"]) == answer["total"], f"{answer['total']} joined shapes are more than can be asked for")
        self.rows = {}
        for row in answer["traces"]:
            text = self.text(row["tree"])
            system.check(text not in self.rows, f"two joined shapes look the same: {text}")
            self.rows[text] = row

    def shape(self, number):
        if number not in self.shapes:
            self.shapes[number] = tree_text(self.master.get(f"/api/v1/shapes/{number}")["tree"])
        return self.shapes[number]

    def text(self, node):
        """As joined.py has it."""
        name = "?"
        if not node["missing"]:
            place = f"{label(node)}.{node['site']['name']}" if node["site"] else "-.nowhere"
            name = place + ("" if node["call_tree"] else "~") + (f"<{self.shape(node['shape'])}>" if node["shape"] else "")
        if node["large"]:
            return name + "(..)"
        below = " ".join(f"{child['kind']}:{self.text(child)}" + ("*" if child["run"] else "") for child in node["children"])
        return f"{name}({below})" if below else name

    def sums(self):
        return {status: sum(row[status] for row in self.rows.values()) for status in joined.STATUSES}


def label(row):
    """Of the application; where a worker tells hosts apart, on which."""
    return row["app"] + (f"@{row['host']}" if row["host"] else "")


def tree_text(node):
    """As replay.py has it. A set's children are in the order of their ids."""
    children = [tree_text(child) + (f"*{child['repeat']}" if child["repeat"] else "") for child in node["children"]]
    if node["exactness"] == "set":
        children.sort()
    return replay.as_text(node["site"]["name"] if node["site"] else "??", children)


def edges_of(node):
    """Of each node but the first, in preorder."""
    for child in node["children"]:
        yield child["edge"]
        yield from edges_of(child)


def edge_differences(text, edge, known, slack):
    """`edge`: what the API says of one node's; `known`: (sent, received, of one source) of each trace that has it."""
    count = edge["count"] if edge else 0
    if count != len(known):
        yield f"an edge counts {count}, not {len(known)}: {text}"
    if not known or count != len(known):
        return
    is_of_one = all(is_one for _, _, is_one in known)
    slack_ns = slack.of_one_ns if is_of_one else slack.of_two_ns
    least = [max(0, received.before_ns - sent.after_ns) for sent, received, _ in known]
    most = [max(0, received.after_ns - sent.before_ns) for sent, received, _ in known]
    if not sum(least) - slack_ns * count <= edge["time_ns"] <= sum(most) + slack_ns * count:
        yield f"edges took {edge['time_ns']} ns, not {sum(least)} to {sum(most)}: {text}"
    if edge["min_ns"] < min(least) - slack_ns or edge["max_ns"] > max(most) + slack_ns:
        yield f"an edge took {edge['min_ns']} to {edge['max_ns']} ns, not {min(least)} to {max(most)}: {text}"
    if edge["clamped"] and is_of_one and slack is PRECISE:
        yield f"{edge['clamped']} edges are clamped within a program: {text}"


def row_differences(text, said, known, slack):
    counts = tuple(said[status] if said else 0 for status in joined.STATUSES)
    expected = tuple(known.counts.values()) if known else (0, 0, 0)
    if counts != expected:
        yield f"(ok, failed, incomplete) {counts}, not {expected}: {text}"
        return
    if known.is_ambiguous:
        return
    if said["slowest"] and said["slowest"] not in known.traces:
        yield f"the slowest trace {said['slowest']} is not of this shape: {text}"
    if known.took_ns and known.traces and not said["slowest"]:
        yield f"no slowest trace: {text}"
    if known.took_ns and said["max_ns"] > max(known.took_ns) + slack.of_two_ns:
        yield f"a trace took {said['max_ns']} ns, not at most {max(known.took_ns)}: {text}"
    edges = list(edges_of(said["tree"]))
    if len(edges) != len(known.edges):
        yield f"{len(edges)} edges, not {len(known.edges)}: {text}"
    for edge, each in zip(edges, known.edges):
        yield from edge_differences(text, edge, each, slack)


def counters(master):
    """Of the whole chain."""
    return {name: int(float(value)) for name, value in
            re.findall(r'millrace_chain_counter_total\{name="([a-z_]+)"[^}]*\} ([0-9.e+]+)', master.get_text("/metrics"))}


def counter_differences(what, said, known):
    for name in sorted(set(said) | set(known)):
        if said[name] != known[name]:
            yield f"{what} {name}: {said[name]}, not {known[name]}"


def call_count_differences(master, streams):
    calls = collections.Counter()
    for row in master.get(f"/api/v1/functions?limit={ROWS_MAX}")["functions"]:
        calls[row["name"]] += row["calls"]
    yield from counter_differences("calls of", calls, sum((stream.call_counts for stream in streams), collections.Counter()))


def entry_differences(master, streams):
    entries = collections.Counter()
    for row in master.get(f"/api/v1/entries?limit={ROWS_MAX}")["entries"]:
        for status in joined.STATUSES:
            entries[(label(row), row["name"], status)] += row[status]
    known_entries = sum((stream.entries for stream in streams), collections.Counter())
    yield from counter_differences("entries", collections.Counter({key: count for key, count in entries.items() if count}), known_entries)


def ledger_differences(master, known, part_count, lost):
    answer = master.get("/api/v1/ledger")
    ledger, parts = answer["ledger"], answer["parts"]
    if not ledger["balanced"] or ledger["lost"] != lost or ledger["held"]:
        yield f"the ledger, of {lost} lost: {ledger}"
    if not parts["balanced"] or parts["came"] != parts["joined"] + parts["waiting"] + parts["incomplete"]:
        yield f"parts do not balance: {parts}"
    if parts["came"] > part_count or parts["incomplete"] != known.incomplete_parts:
        yield f"of {part_count} parts, {known.incomplete_parts} in incomplete traces: {parts}"


def joined_differences(said, known, slack):
    for text in sorted(set(said.rows) | set(known.rows)):
        yield from row_differences(text, said.rows.get(text), known.rows.get(text), slack)


def differences(master, streams, *late, slack=PRECISE):
    """All between what the master says and what the streams of all its programs were, as lines; `late` are those whose parts came when the
    others had ended. No part waits any more."""
    groups = [[part for stream in group for part in stream.parts] for group in (streams, late)]
    streams, part_count = [*streams, *late], sum(map(len, groups))
    known = joined.Joined(*groups)
    counted = sum((stream.counters for stream in streams), collections.Counter())
    said_counters = counters(master)
    yield from joined_differences(Said(master), known, slack)
    yield from ledger_differences(master, known, part_count, sum(stream.lost for stream in streams))
    yield from call_count_differences(master, streams)
    yield from entry_differences(master, streams)
    for name in ("reduce_links_malformed", "reduce_links_unmatched", "reduce_links_past_limit"):
        if said_counters.get(name, 0) != counted[name]:
            yield f"{name}: {said_counters.get(name, 0)}, not {counted[name]}"
