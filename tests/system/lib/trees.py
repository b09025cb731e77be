# SPDX-License-Identifier: Apache-2.0
"""Call trees as text: from an expected file, from the witness (tree_hooks.c), from the master.

A set of trees is a Counter: tree -> how often. A tree is a tuple (name, (child, ...)), folded: of a run of equal
children one is kept. As text, sorted:

    50 do_visit
        enter
            ask
"""
import collections
import difflib
import re
import subprocess

INDENT = "    "
DIFF_LINES = 80  # shown of a difference


def fold(name, children):
    kept = []
    for child in children:
        if not kept or kept[-1] != child:
            kept.append(child)
    return (name, tuple(kept))


def lines_of(tree, depth=0):
    yield INDENT * depth + tree[0]
    for child in tree[1]:
        yield from lines_of(child, depth + 1)


def to_lines(trees):
    """The sorted text of a set of trees, as a list of lines."""
    blocks = []
    for tree, count in trees.items():
        lines = list(lines_of(tree))
        blocks.append((lines, count))
    text = []
    for lines, count in sorted(blocks):
        text.append(f"{count} {lines[0]}")
        text.extend(lines[1:])
    return text


def calls_of(tree):
    return 1 + sum(calls_of(child) for child in tree[1])


# --- expected files ---------------------------------------------------------------------------------------------------

def from_file(name):
    trees = collections.Counter()
    stack = []  # open (name, children), outermost first
    count = 0

    def close(depth):
        while len(stack) > depth:
            node = fold(*stack.pop())
            if stack:
                stack[-1][1].append(node)
            else:
                trees[node] += count

    with open(name, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if not line.strip() or line.startswith("#"):
                continue
            depth = (len(line) - len(line.lstrip(" "))) // len(INDENT)
            if depth > len(stack):
                raise ValueError(f"{name}:{number}: indented too far")
            close(depth)
            text = line.strip()
            if depth == 0:
                digits, text = text.split(" ", 1)
                count = int(digits)
            stack.append((text, []))
        close(0)
    return trees


# --- the witness --------------------------------------------------------------------------------------------------------

def symbolise(program, addresses):
    """address -> name of the function, by addr2line."""
    ordered = sorted(addresses)
    run = subprocess.run(["addr2line", "-f", "-C", "-e", program], input="\n".join(ordered) + "\n",
                         capture_output=True, text=True, check=True)
    names = run.stdout.splitlines()[0::2]
    return {address: short_name(name) for address, name in zip(ordered, names)}


def short_name(name):
    """A C++ name without its return type and parameters, so that every demangler's output looks the same."""
    depth = 0
    kept = []
    for char in name.replace("(anonymous namespace)", "{anonymous}").replace("operator()", "operator{}"):
        if char == "(":
            depth += 1
        if depth == 0:
            kept.append(char)
        if char == ")":
            depth -= 1
    text = "".join(kept).replace("operator{}", "operator()").replace(" const", "").strip()
    text = re.sub(r"\[abi:\w+\]", "", text)
    # What is left of the last blank outside <...> is a return type.
    depth = 0
    start = 0
    for index, char in enumerate(text):
        depth += (char == "<") - (char == ">")
        if char == " " and depth == 0:
            start = index + 1
    return text[start:]


def from_witness(log, program, outer):
    """The folded trees in a log of tree_hooks.c that start below the functions named in `outer`."""
    with open(log, encoding="utf-8") as file:
        events = [line.split() for line in file]
    names = symbolise(program, {address for _, _, address in events})
    trees = collections.Counter()
    stacks = collections.defaultdict(list)
    for thread, direction, address in events:
        stack = stacks[thread]
        if direction == "+":
            stack.append((names[address], []))
            continue
        name, children = stack.pop()
        if name != names[address]:
            raise ValueError(f"{log}: {names[address]} returns inside {name}")
        node = fold(name, children)
        if not stack or stack[-1][0] in outer:
            if name not in outer:
                trees[node] += 1
        else:
            stack[-1][1].append(node)
    if any(stacks.values()):
        raise ValueError(f"{log}: calls still open")
    return trees


# --- the master -----------------------------------------------------------------------------------------------------------

def from_node(node):
    """A node of /api/v1/shapes/ID, with all below it."""
    if not node["known"] or node.get("more"):
        raise ValueError(f"node {node['id']} is not known, or not shown whole")
    return fold(short_name(node["site"]["name"]), [from_node(child) for child in node["children"]])


def from_master(master, app):
    """The trees of all shapes of an application."""
    shapes = master.get("/api/v1/shapes?limit=10000")
    if shapes["total"] != len(shapes["shapes"]):
        raise ValueError(f"the master shows {len(shapes['shapes'])} of {shapes['total']} shapes")
    trees = collections.Counter()
    for shape in shapes["shapes"]:
        if shape["app"] == app:
            tree = master.get(f"/api/v1/shapes/{shape['id']}?depth=256&limit=10000")["tree"]
            trees[from_node(tree)] += shape["traces"]
    return trees


def check_complete(master):
    """Nothing is lost, held, incomplete, or counted by path alone."""
    ledger = master.get("/api/v1/ledger")["ledger"]
    if not ledger["balanced"] or ledger["lost"] or ledger["held"]:
        raise ValueError(f"the ledger: {ledger}")
    coverage = master.get("/api/v1/entries")["coverage"]["traces"]
    if coverage["incomplete"] or coverage["paths"]:
        raise ValueError(f"traces without a shape: {coverage}")
    print(f"ledger: {ledger['written']} events = {ledger['reduced']} reduced, {ledger['lost']} lost, "
          f"{ledger['held']} held; traces {coverage}")


# --- comparing ----------------------------------------------------------------------------------------------------------

def compare(what, expected, found):
    """Prints what was compared; True if they are equal, else shows where they differ."""
    expected_lines, found_lines = to_lines(expected), to_lines(found)
    if expected_lines == found_lines:
        print(f"{what}: {len(expected)} shapes, {sum(expected.values())} traces, {len(expected_lines)} lines: equal")
        return True
    print(f"{what}: differ (- expected, + found)")
    lines = list(difflib.unified_diff(expected_lines, found_lines, lineterm="", n=4))
    for line in lines[2:DIFF_LINES]:
        print("    " + line)
    if len(lines) > DIFF_LINES:
        print(f"    ... and {len(lines) - DIFF_LINES} lines more")
    return False
