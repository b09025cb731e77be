# SPDX-License-Identifier: Apache-2.0
"""The whole call tree of every thread, as `probe_sink --trees` tells it (tests/system/probe/sink_trees.h), as text:

    process
        thread
            main
                leaf x3
                dive ^100000
                    leaf
                thrower [unwound]

`x3`: three equal calls in a row (or three equal threads, or processes). `^100000`: that many calls of this name, each the
only call of the one before; what is below it is below the innermost. Threads and processes are sorted by their text, calls
stand in their order. In brackets what is not plain: a call `unwound` (it was left without an exit of its own),
`incomplete` (no exit came), `unknown` (entered during a loss); a thread that lost events, or had exits of no open call; a
process that `died`, that is, left without saying goodbye.

What comes at any time, such as the handler of a timer's signal, is named as floating: its calls are taken out of where they
came and counted by their text at the end.
"""
import collections

INDENT = "    "
FLAGS = ((8, "incomplete"), (16, "unwound"), (32, "unknown"))


class Node(collections.namedtuple("Node", "text times depth children")):
    """`children` are Nodes; equal ones in a row are one of them with its times."""


def fold(children):
    kept = []
    for child in children:
        if kept and kept[-1]._replace(times=child.times) == child:
            kept[-1] = kept[-1]._replace(times=kept[-1].times + child.times)
        else:
            kept.append(child)
    return tuple(kept)


def node(text, children):
    children = fold(children)
    if len(children) == 1 and children[0].text == text and children[0].times == 1:
        return children[0]._replace(depth=children[0].depth + 1)
    return Node(text, 1, 1, children)


def lines_of(tree, indent=0):
    depth = f" ^{tree.depth}" if tree.depth > 1 else ""
    times = f" x{tree.times}" if tree.times > 1 else ""
    yield INDENT * indent + tree.text + depth + times
    for child in tree.children:
        yield from lines_of(child, indent + 1)


def text_of(tree):
    return "\n".join(lines_of(tree))


class Thread:
    """Children are kept folded while calls come, so that a loop of a million calls is one node."""

    def __init__(self):
        self.stack = [("", [])]
        self.counted = collections.Counter()

    def add(self, tree):
        siblings = self.stack[-1][1]
        if siblings and siblings[-1]._replace(times=tree.times) == tree:
            siblings[-1] = siblings[-1]._replace(times=siblings[-1].times + tree.times)
        else:
            siblings.append(tree)

    def close(self, name, flags, floating, found):
        _, children = self.stack.pop()
        marks = [text for flag, text in FLAGS if flags & flag]
        tree = node(name + (f" [{', '.join(marks)}]" if marks else ""), children)
        if name in floating:
            found[text_of(tree)] += 1
        else:
            self.add(tree)

    def tree(self, reasons):
        marks = []
        for reason, events in sorted(self.counted.items()):
            marks.append(f"{events} lost: {reasons[reason]}" if reason else f"{events} exits of no call")
        if len(self.stack) > 1:
            raise ValueError("calls still open at the end")
        return node("thread" + (f" [{', '.join(marks)}]" if marks else ""), self.stack[0][1])


REASONS = ["", "ring full", "block time-out", "overwritten", "budget", "source died", "clock", "format", "nested", "exit"]


class Calls:
    """`process`: how each is told; `text`: all of it; `floating`: text of a tree -> how often."""

    def __init__(self, path, floating=(), keep=lambda tree: True):
        self.floating = collections.Counter()
        self.threads = collections.defaultdict(lambda: collections.defaultdict(Thread))
        self.state = {}
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        names = self.names_of(lines)
        for line in lines:
            self.take(line.split(" "), names, floating)
        self.processes = sorted((self.process(number, keep) for number in self.state), key=text_of)

    @staticmethod
    def names_of(lines):
        names = {}
        for line in lines:
            if line.startswith("site "):
                _, number, name = line.split(" ", 2)
                names[number] = short_name(name)
        return names

    def take(self, line, names, floating):
        kind, rest = line[0], line[1:]
        if kind == "source":
            self.state[rest[0]] = 0
        elif kind == "stream":
            _ = self.threads[rest[0]][rest[1]]
        elif kind == "end":
            self.state[rest[0]] = int(rest[1])
        elif kind == "site":
            pass
        else:
            thread = self.threads[rest[0]][rest[1]]
            if kind == "o":
                thread.stack.append((rest[2], []))
            elif kind == "c":
                thread.close(names[rest[2]], int(rest[3]), floating, self.floating)
            elif kind == "n":
                thread.counted[int(rest[3])] += int(rest[2])

    def process(self, number, keep):
        threads = [thread.tree(REASONS) for thread in self.threads[number].values()]
        threads = sorted((tree for tree in threads if keep(tree)), key=text_of)
        return node("process [died]" if self.state[number] == 2 else "process", threads)

    def text(self):
        return "\n".join(text_of(tree) for tree in fold(self.processes)) + "\n"


def short_name(name):
    """A C++ name without its return type and parameters."""
    if "(" not in name:
        return name
    depth = 0
    for index, char in enumerate(name):
        depth += (char == "<") - (char == ">")
        if char == "(" and depth == 0 and not name.startswith("(anonymous", index):
            head = name[:index]
            break
    else:
        return name
    depth = 0
    start = 0
    for index, char in enumerate(head):
        depth += (char == "<") - (char == ">")
        if char == " " and depth == 0 and "operator" not in head[index:]:
            start = index + 1
    return head[start:] if not head.startswith("(") else head
