# SPDX-License-Identifier: Apache-2.0
"""From the log of one thread to the parts that millrace must make of it, by docs/FORMAT.md sections 6.2 and 8 and probe.h; written from
these, not from the code. One Stream a thread.

A thread has open calls, of which the first may be outer frames; at most two call trees, the second one below an attach inside the
first; and at most one attachment, which the call trees below it belong to."""
import collections
import fnmatch
import itertools

EDGES_MAX = 64  # of one part
TREES_MAX = 256  # of one attach
PROBE_ATTACHES_MAX = 8
UNKNOWN_NS = 10**15  # later than any time is not known to be

Edge = collections.namedtuple("Edge", "kind key before_ns after_ns")  # it was made between the two
# children: of these, (name, children); failed: [bool]; is_forced: its call tree may lie within another one
Call = collections.namedtuple("Call", "name children start_ns failed is_forced")


class Part:
    """A call tree, or a stub, which has none."""

    def __init__(self, app, source, draft):
        self.app, self.source = app, source
        self.edge_in, self.edges_out = draft.edge_in, list(draft.edges_out)
        self.trace = draft.trace
        self.site, self.shape, self.status = draft.site, draft.shape, "incomplete" if draft.is_cut else draft.status
        self.start_ns, self.end_ns = draft.start_ns, draft.end_ns
        self.is_stub = False

    def become_stub(self, site, over_ns):
        first = self.edge_in or self.edges_out[0]
        self.is_stub, self.site, self.start_ns, self.end_ns = True, site, first.before_ns, max(over_ns, first.before_ns)

    def last_ns(self):
        """It was over by then."""
        return max([self.start_ns, self.end_ns, *(edge.after_ns for edge in (self.edge_in, *self.edges_out) if edge and edge.kind != "next")])


class Draft:
    """A part that is not told yet."""

    def __init__(self, edge_in=None, trace=None):
        self.edge_in, self.edges_out, self.trace = edge_in, [], trace
        self.is_used = edge_in is not None
        self.is_ended = self.is_cut = False
        self.site = self.shape = None
        self.status, self.start_ns, self.end_ns = "ok", 0, 0


class Tree:
    def __init__(self, call, at):
        self.call, self.at = call, at  # at: of its root among the open calls
        self.draft = Draft()


class Attachment:
    def __init__(self, edge, outside):
        self.draft = Draft(edge)
        self.outside = outside  # call trees that were open when it began
        self.trees = 0  # of it, so far


def as_text(name, texts):
    return name + ("{" + ",".join(texts) + "}" if texts else "")


def folded(name, children):
    """A call tree as text: of a run of equal children one is kept."""
    return as_text(name, [text for text, _ in itertools.groupby(folded(*child) for child in children)])


def exact(name, children):
    """As folded, but that each run has its length."""
    runs = itertools.groupby(exact(*child) for child in children)
    return as_text(name, [f"{text}*{len(list(run))}" for text, run in runs])


def as_set(name, children):
    """Of children of one name there is one, which calls what they all call."""
    below = {}
    for child, grandchildren in children:
        below.setdefault(child, []).extend(grandchildren)
    return as_text(name, sorted(as_set(*child) for child in below.items()))


SHAPES = {"folded": folded, "exact": exact, "set": as_set}  # by --shapes


class Stream:
    def __init__(self, app, source, name, roots=(), shapes="folded"):
        self.app, self.source, self.name = app, source, name
        self.shape_of = SHAPES[shapes]
        self.roots = roots  # globs of functions that are roots wherever they are called (--root)
        self.calls, self.trees = [], []
        self.outer_count = 0
        self.received = None  # draft of the next call tree
        self.attachment = None
        self.nested = 0  # attaches within the attachment
        self.root_depth = 0  # calls at this depth are roots, as an attach was inside a call tree; 0: none was
        self.root_attaches = 0  # attaches that hold there
        self.probe_attaches = 0  # that the probe knows of
        self.next_count = 0
        self.parts = []
        self.call_counts, self.entries = collections.Counter(), collections.Counter()
        self.counters = collections.Counter()
        self.lost = 0

    # --- parts ---

    def current(self):
        """The draft that an edge now belongs to; None outside of all."""
        if self.attachment and len(self.trees) <= self.attachment.outside + 1:
            return self.attachment.draft
        return self.trees[-1].draft if self.trees else None

    def place(self):
        if self.trees:
            return self.trees[-1].call.name
        return self.calls[self.outer_count - 1].name if self.outer_count else None

    def tell(self, draft, over_ns=0):
        """over_ns: when it was, if that is known."""
        part = Part(self.app, self.source, draft)
        if not draft.is_ended:
            part.become_stub(self.place(), over_ns)
        self.parts.append(part)

    def go_out(self, edge, trace=None):
        draft = self.current()
        if not draft:
            draft = Draft(trace=trace)
            draft.edges_out.append(edge)
            self.tell(draft)
            return
        draft.is_used = True
        draft.trace = draft.trace or trace
        if len(draft.edges_out) < EDGES_MAX:
            draft.edges_out.append(edge)
        else:
            draft.is_cut = True
            self.counters["reduce_links_past_limit"] += 1
            self.lost += 1

    def come_in(self, edge, trace=None):
        draft = self.current()
        if not draft:
            self.end_received()
            draft = self.received = Draft()
        if draft.edge_in or draft.edges_out or draft.is_ended:
            self.tell(Draft(edge, trace))
        else:
            draft.edge_in = edge
        draft.is_used = True
        draft.trace = draft.trace or trace

    def end_received(self, over_ns=0):
        """No call tree came of it."""
        if self.received:
            self.tell(self.received, over_ns)
        self.received = None

    # --- attachments ---

    def attach(self, edge):
        self.attach_root(len(self.calls))
        if self.attachment and len(self.trees) == self.attachment.outside:
            self.end_attachment()  # its detach is missing
        if self.attachment:
            self.nested += 1
            self.tell(Draft(edge))
        elif len(self.trees) == 2:
            self.nested += 1
            self.come_in(edge)
        else:
            self.nested = 0
            self.attachment = Attachment(edge, len(self.trees))

    def attach_root(self, depth):
        """Which calls are roots below it."""
        is_inside = depth > self.outer_count
        if depth == self.root_depth if self.root_depth else not is_inside:
            self.root_attaches = 0
        if self.root_attaches == 0:
            self.root_depth = depth if is_inside else 0
        self.root_attaches += 1

    def detach(self, now_ns):
        """Of an attach that the probe knows of; else of what was received."""
        if not self.probe_attaches:
            if not self.current():
                self.end_received(now_ns)
            return
        self.probe_attaches -= 1
        if self.root_attaches:
            self.root_attaches -= 1
            if self.root_attaches == 0:
                self.root_depth = 0
        if self.nested:
            self.nested -= 1
        elif self.attachment:
            self.end_attachment(now_ns)
        else:
            self.counters["reduce_links_unmatched"] += 1
            self.end_received(now_ns)

    def end_attachment(self, over_ns=0):
        attachment, self.attachment = self.attachment, None
        if not attachment:
            return
        if len(self.trees) > attachment.outside:
            self.trees[attachment.outside].draft = attachment.draft  # goes on by itself
        else:
            self.tell(attachment.draft, over_ns)

    # --- calls ---

    def enter_outer(self, name):
        self.call_counts[name] += 1
        self.outer_count += 1
        self.calls.append(Call(name, [], 0, [False], False))

    def is_forced(self, name):
        is_asked = any(fnmatch.fnmatchcase(name, root) for root in self.roots) or self.root_depth and self.root_depth == len(self.calls)
        return bool(is_asked) and not any(call.is_forced for call in self.calls)

    def enter(self, name, now_ns):
        call = Call(name, [], now_ns, [False], self.is_forced(name))
        is_root = call.is_forced or not self.trees
        if not is_root:
            self.calls[-1].children.append((name, call.children))
        self.call_counts[name] += 1
        self.calls.append(call)
        if is_root:
            self.open_tree(call)

    def open_tree(self, call):
        index = len(self.trees)
        is_attached = self.attachment and index == self.attachment.outside
        if is_attached and self.attachment.draft.is_ended:
            self.begin_next(call.start_ns)
        self.trees.append(Tree(call, len(self.calls) - 1))
        if is_attached:
            self.count_attached()
        elif index == 0 and self.received:
            self.trees[0].draft, self.received = self.received, None

    def count_attached(self):
        """Of too many call trees the last one ends what is attached."""
        self.attachment.trees += 1
        if self.attachment.trees > TREES_MAX:
            self.attachment.draft.is_cut = True
            self.counters["reduce_links_past_limit"] += 1
            self.end_attachment()

    def begin_next(self, now_ns):
        """One more call tree under one attach hangs on the one before."""
        before = self.attachment.draft
        key = ("next", self.name, self.next_count)
        self.next_count += 1
        if len(before.edges_out) < EDGES_MAX:
            before.edges_out.append(Edge("next", key, before.end_ns, before.end_ns))
        else:
            before.is_cut = True
        self.tell(before)
        self.attachment.draft = Draft(Edge("next", key, now_ns, UNKNOWN_NS), before.trace)

    def exit(self, now_ns, is_incomplete=False):
        call = self.calls[-1]
        if self.trees and self.trees[-1].at == len(self.calls) - 1:
            self.close_tree(call, now_ns, is_incomplete)
        elif len(self.calls) <= self.outer_count:
            self.outer_count -= 1
        self.calls.pop()
        if len(self.calls) < self.root_depth:  # the call that attached has ended
            self.root_attaches = self.root_depth = self.nested = 0
            self.end_attachment(now_ns)

    def close_tree(self, call, now_ns, is_incomplete):
        tree, index = self.trees[-1], len(self.trees) - 1
        status = "incomplete" if is_incomplete else "failed" if call.failed[0] else "ok"
        self.entries[(self.app, call.name, status)] += 1
        is_attached = self.attachment and index == self.attachment.outside
        draft = self.attachment.draft if is_attached else tree.draft
        draft.site, draft.status, draft.start_ns, draft.end_ns = call.name, status, call.start_ns, now_ns
        draft.shape = None if is_incomplete else self.shape_of(call.name, call.children)
        draft.is_ended = True
        if not is_attached and draft.is_used:
            self.tell(draft)
        self.trees.pop()

    def end(self, now_ns):
        """Of the thread, or of the program."""
        while self.calls:
            self.exit(now_ns, is_incomplete=True)
        self.end_attachment()
        self.end_received()


def message(header, before, after):
    """The edge, and its trace."""
    _, trace, span, _ = header.split("-")
    return Edge("message", (trace, span), int(before), int(after)), trace


def hand_off(stream, number, before, after):
    return Edge("hand-off", (stream.source, number), int(before), int(after))


def take_receive(stream, header, before, after):
    if header != "unreadable":
        stream.come_in(*message(header, before, after))
        return
    stream.counters["reduce_links_malformed"] += 1
    if not stream.current():
        stream.end_received()


def take_line(stream, word, values):
    if word == "enter":
        stream.enter(values[0], int(values[1]))
    elif word == "exit":
        stream.exit(int(values[1]))
    elif word == "outer-enter":
        stream.enter_outer(values[0])
    elif word == "outer-exit":
        stream.exit(0)
    elif word == "failed":
        if stream.calls:
            stream.calls[-1].failed[0] = True
    elif word == "capture":
        stream.go_out(hand_off(stream, *values))
    elif word == "attach":
        stream.probe_attaches = min(PROBE_ATTACHES_MAX, stream.probe_attaches + 1)
        stream.attach(hand_off(stream, *values))
    elif word == "detach":
        stream.detach(int(values[0]))
    elif word == "send":
        stream.go_out(*message(*values))
    elif word == "receive":
        take_receive(stream, *values)
    elif word == "begin":
        if not stream.current():
            stream.end_received()
    else:
        raise ValueError(f"{stream.name}: {word}")


def replay(path, app, source, **options):
    """options: as of Stream."""
    stream = Stream(app, source, str(path), **options)
    now_ns = 0
    for line in path.read_text().splitlines(keepends=True):
        if not line.endswith("\n"):
            break  # killed while it wrote
        word, *values = line.split()
        take_line(stream, word, values)
        if word in ("enter", "exit"):
            now_ns = int(values[1])
    stream.end(now_ns)
    return stream
