# SPDX-License-Identifier: Apache-2.0
"""What a random program says of its own calls (truth.h) against what was recorded: the store's paths, and the report.

    for difference in differences(program, truth_folder, recording): print(difference)
"""
import collections
import json
import re
import sqlite3
import subprocess

import system

ENDS = ("ok", "failed", "incomplete")
FLOATING = ("on_tick",)  # handlers that come at any time
OUTER = 1  # of a path's flags: MR_PATH_OUTER
SHOWN = 8  # of a kind of differences
TAIL = 6  # names of a path that are shown


class Path:
    """A call path: how often its calls ended how, and what they called."""

    def __init__(self):
        self.ends = [0, 0, 0]
        self.self_ns = self.total_ns = 0
        self.children = {}

    def child(self, name):
        return self.children.setdefault(name, Path())

    def add(self, other):
        """All of another, with what is below."""
        pairs = [(self, other)]
        while pairs:
            to, source = pairs.pop()
            to.ends = [a + b for a, b in zip(to.ends, source.ends)]
            pairs += [(to.child(name), child) for name, child in source.children.items()]


def walk(tree):
    """(names, path) of all below."""
    left = [((), tree)]
    while left:
        names, path = left.pop()
        for name, child in path.children.items():
            found = (*names[-TAIL:], name)
            yield found, child
            left.append((found, child))


def take_floating(trees):
    """Handlers that come at any time are taken out of the calls that they came in."""
    for tree in (trees["root"], trees["outer"]):
        for path in [tree, *(path for _, path in walk(tree))]:
            for name in FLOATING:
                handler = path.children.pop(name, None)
                if handler:
                    trees["floating"].child(name).add(handler)


def functions_of(trees):
    found = collections.defaultdict(lambda: [0, 0, 0])
    for tree in trees.values():
        for names, path in walk(tree):
            found[names[-1]] = [a + b for a, b in zip(found[names[-1]], path.ends)]
    return {name: ends for name, ends in found.items() if any(ends)}


def new_trees():
    return {"root": Path(), "outer": Path(), "floating": Path()}


# --- both sides ---------------------------------------------------------------------------------------------------------

def read_truth(folder):
    trees = new_trees()
    files = list(folder.iterdir())
    system.check(files, "the program has not said what it did")
    for path in files:
        stack = []
        for line in path.read_text(encoding="ascii").splitlines():
            tree, depth, name, *ends = line.split(" ")
            del stack[int(depth) - 1:]
            child = (stack[-1] if stack else trees[tree]).child(name)
            child.ends = [a + int(b) for a, b in zip(child.ends, ends)]
            stack.append(child)
    return trees


def short_name(name):
    """Without scope, parameters, and what an optimiser adds."""
    name = re.sub(r"\.(constprop|isra|part|cold|llvm)\b.*", "", name.split("(")[0])
    return name.split("::")[-1].split(" ")[-1]


def read_store(database):
    trees = new_trees()
    names = {index: short_name(name or "?") for index, name in database.execute("select idx, name from site")}
    paths = {}
    rows = database.execute("select p.idx, parent, site, flags, ok, failed, incomplete, self_sum, total_sum from path p "
                            "left join path_total t on t.path = p.idx order by p.idx")
    for index, parent, site, flags, *numbers in rows:
        above = paths[parent] if parent in paths else trees["outer" if flags & OUTER else "root"]
        path = paths[index] = above.child(names[site])
        if numbers[0] is not None:
            path.ends = [a + b for a, b in zip(path.ends, numbers)]
            path.self_ns += numbers[3]
            path.total_ns += numbers[4]
    return trees


def read_report(recording):
    told = subprocess.run([system.MILLRACE, "report", "--json", "--functions", "100000", "--entries", "100000", recording],
                          capture_output=True, text=True, check=True).stdout
    return json.loads(told)


def ends_of(rows):
    found = collections.defaultdict(lambda: [0, 0, 0])
    for row in rows:
        name = short_name(row["name"])
        found[name] = [a + row[end] for a, end in zip(found[name], ENDS)]
    return found


# --- differences --------------------------------------------------------------------------------------------------------

def some(kind, found):
    if found:
        yield f"{kind}: {len(found)} differ; said by the program, recorded:"
        yield from ("    " + line for line in found[:SHOWN])


def differ(kind, expected, found):
    """Of dicts name -> ends."""
    names = [name for name in sorted({*expected, *found}) if expected.get(name, [0, 0, 0]) != found.get(name, [0, 0, 0])]
    yield from some(kind, [f"{name}: {expected.get(name)}, {found.get(name)}" for name in names])


def differ_in_paths(kind, expected, found):
    lines = []
    pairs = [((), expected, found)]
    while pairs:
        names, want, got = pairs.pop()
        if want.ends != got.ends:
            lines.append(f"{'/'.join(names)}: {want.ends}, {got.ends}")
        for name in {*want.children, *got.children}:
            below = [side.children.get(name) or Path() for side in (want, got)]
            pairs.append(((*names[-TAIL:], name), *below))
    yield from some(f"{kind} paths", sorted(lines, key=len))


def has_lost_handlers(program, ledger):
    """Calls of a handler are lost that comes while the probe itself works for its thread, or once it has taken the thread's ring back; they
    are counted as that (docs/FORMAT.md: nested, exit)."""
    lost = ledger["lost_by_reason"]
    return "ticks" in program.features and 0 < ledger["lost"] == lost["nested"] + lost["exit"]


def differ_in_ledger(ledger):
    if not ledger["balanced"] or ledger["held"] or ledger["lost"] or ledger["missing"] or ledger["excess"]:
        yield f"ledger: {ledger}"


def differ_in_times(trees):
    """What ends is as long as its own time and what it calls."""
    lines = []
    for names, path in walk(trees["root"]):
        children = path.children.values()
        below = sum(child.total_ns for child in children)
        if path.self_ns > path.total_ns:
            lines.append(f"{'/'.join(names)}: self {path.self_ns}, total {path.total_ns}")
        elif not any(each.ends[2] for each in (path, *children)) and names[0] != names[-1] and path.self_ns + below != path.total_ns:
            lines.append(f"{'/'.join(names)}: self {path.self_ns}, below {below}, total {path.total_ns}")
    yield from some("times", lines)


def differ_in_sums(report, database):
    """What is told twice."""
    for row in report["functions"]:
        if row["calls"] != sum(row[end] for end in ENDS) or row.get("self_ns", 0) > row.get("total_ns", 0):
            yield f"function {row}"
    for row in report["entries"]:
        count = row["count"]
        if count != sum(row[end] for end in ENDS) or count != sum(row["coverage"].values()):
            yield f"entry point {row}"
    query = ("select e.idx, whole_traces + folded_traces, coalesce((select sum(t.ok + t.failed) from shape s join shape_total t on "
             "t.shape = s.idx where s.entry = e.idx), 0) from entry e")
    for entry, traces, in_shapes in database.execute(query):
        if traces != in_shapes:
            yield f"entry point {entry}: {traces} traces in shapes, {in_shapes} by shape"
    calls, in_entries = database.execute(
        "select (select sum(ok + failed + incomplete) from path_total t join path p on p.idx = t.path where p.flags & 1 = 0), "
        "(select sum(whole_calls + folded_calls + paths_calls + incomplete_calls) from entry)").fetchone()
    if (calls or 0) != (in_entries or 0):
        yield f"{calls} calls by path, {in_entries} by entry point"


def differences(program, truth_folder, recording):
    expected = read_truth(truth_folder)
    report = read_report(recording)
    database = sqlite3.connect(f"file:{recording}/millrace.sqlite?mode=ro", uri=True)
    found = read_store(database)
    yield from differ_in_sums(report, database)
    yield from differ_in_times(found)
    if has_lost_handlers(program, report["ledger"]):
        return
    yield from differ_in_ledger(report["ledger"])
    take_floating(found)
    functions = ends_of(report["functions"])
    if "turns" in program.features:
        # Two stacks on one thread are one stream: that all is counted is all that is promised.
        sums = [{name: [sum(ends)] for name, ends in side.items()} for side in (functions_of(expected), functions)]
        yield from differ("functions", *sums)
        return
    yield from differ("functions", functions_of(expected), functions)
    for kind, tree in expected.items():
        yield from differ_in_paths(kind, tree, found[kind])
    roots = {name: path.ends for name, path in expected["root"].children.items() if any(path.ends)}
    entries = ends_of(report["entries"])
    yield from differ("entry points", roots, {name: ends for name, ends in entries.items() if name not in FLOATING})
