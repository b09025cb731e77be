# SPDX-License-Identifier: Apache-2.0
"""From parts to joined traces, by docs/FORMAT.md section 8: which parts are one trace, and what its joined shape is, as text.

    p0.f1<f1{f2}>(hand-off:p0.f3<f3>* message:p1.nowhere~(message:?))

is a call tree f1, which called f2, of program p0; it handed one or more times work over that became a call tree f3, one after the
other, and sent a message that no call tree of p1 received, but that came where another one was sent, which nobody received."""

STATUSES = ("ok", "failed", "incomplete")
NODES_MAX = 256  # of a joined shape; of one with more, its root alone is kept


class Row:
    """All traces of one joined shape. edges: of each node but the first, in preorder, (sent, received, whether of one source) of each."""

    def __init__(self, edge_count):
        self.counts = dict.fromkeys(STATUSES, 0)
        self.edges = [[] for _ in range(edge_count)]
        self.traces = set()
        self.took_ns = []
        self.is_ambiguous = False  # which of two parts is the second depends on which came first


class Node:
    def __init__(self, part, kind, edge=None):
        self.part, self.kind, self.edge = part, kind, edge  # part None: it was not seen
        self.children = []

    def name(self):
        if not self.part:
            return "?"
        part = self.part
        place = f"{part.app}.{part.site}" if part.site else "-.nowhere"
        return place + ("~" if part.is_stub else "") + (f"<{part.shape}>" if part.shape else "")

    def as_root(self):
        text, edges = self.folded()
        return (text, edges) if len(edges) < NODES_MAX else (self.name() + "(..)", [])

    def folded(self):
        """Its text, and the edges of each node below it; equal children one after the other are one."""
        texts, edges = [], []
        for child in self.children:
            text, below = child.folded()
            text, own = f"{child.kind}:{text}", [[child.edge] if child.edge else [], *below]
            if texts and texts[-1].rstrip("*") == text:
                texts[-1] = text + "*"
                for known, more in zip(edges[-1], own):
                    known.extend(more)
            else:
                texts.append(text)
                edges.append(own)
        return self.name() + (f"({' '.join(texts)})" if texts else ""), [edge for own in edges for edge in own]


class Joining:
    def __init__(self, parts):
        self.receivers = {}  # key of an edge -> the part it leads to
        self.senders = {}
        self.doubles = set()  # parts whose edge another one had first
        self.ambiguous = set()
        for part in sorted(parts, key=lambda part: part.edge_in.before_ns if part.edge_in else 0):
            self.add(part)
        self.tops = [part for part in parts
                     if not part.edge_in or part in self.doubles or part.edge_in.key not in self.senders]

    def add(self, part):
        if part.edge_in:
            first = self.receivers.setdefault(part.edge_in.key, part)
            if first is not part:
                self.doubles.add(part)
                self.ambiguous |= {part, first}
        for edge in part.edges_out:
            if edge.key in self.senders:
                raise ValueError(f"{edge} was sent twice")
            self.senders[edge.key] = part

    def node(self, part, kind, edge, is_root, seen):
        """With all below it but what stands beside it."""
        node = Node(part, kind, edge)
        if part:
            seen.append(part)
            beside = None if is_root else next_edge(part)
            for sent in part.edges_out:
                if sent is not beside:
                    node.children.extend(self.chain(part, sent, seen))
        return node

    def chain(self, part, sent, seen):
        """Where the edge leads, and what follows that under the same attach."""
        while sent:
            to = self.receivers.get(sent.key)
            edge = (sent, to.edge_in, to.source == part.source) if to else None
            yield self.node(to, sent.kind, edge, False, seen)
            part, sent = to, next_edge(to) if to else None

    def trace(self, top, seen):
        if not top.edge_in:
            return self.node(top, None, None, True, seen)
        root = Node(None, None)
        root.children.append(self.node(top, top.edge_in.kind, None, False, seen))
        root.children.extend(self.chain(top, next_edge(top), seen))
        return root

    def misses_parts(self, top, seen):
        return top.edge_in or any(edge.key not in self.receivers for part in seen for edge in part.edges_out)

    def status(self, top, seen):
        if self.misses_parts(top, seen) or any(part.status == "incomplete" for part in seen):
            return "incomplete"
        return top.status


def next_edge(part):
    return next((edge for edge in part.edges_out if edge.kind == "next"), None)


class Joined:
    """rows: text -> Row; incomplete_parts: of traces where one is missing. Parts of one group do not meet those of another."""

    def __init__(self, *groups):
        self.rows = {}
        self.incomplete_parts = 0
        for group in groups:
            self.join(group)

    def join(self, parts):
        joining = Joining(parts)
        counted = 0
        for top in joining.tops:
            seen = []
            text, edges = joining.trace(top, seen).as_root()
            counted += len(seen)
            self.incomplete_parts += len(seen) if joining.misses_parts(top, seen) else 0
            self.add(text, edges, joining.status(top, seen), top, seen)
            self.rows[text].is_ambiguous |= bool(joining.ambiguous & set(seen))
        if counted != len(parts):
            raise ValueError(f"{counted} parts are in traces, of {len(parts)}")

    def add(self, text, edges, status, top, seen):
        row = self.rows.setdefault(text, Row(len(edges)))
        row.counts[status] += 1
        for known, more in zip(row.edges, edges):
            known.extend(more)
        row.traces |= {part.trace for part in seen if part.trace}
        if status != "incomplete":
            row.took_ns.append(max(part.last_ns() for part in seen) - top.start_ns)

    def sums(self):
        return {status: sum(row.counts[status] for row in self.rows.values()) for status in STATUSES}
