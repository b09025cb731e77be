# SPDX-License-Identifier: Apache-2.0
"""Dictionaries and deltas of a worker that break sections 5 and 8 of docs/FORMAT.md, or come near it."""
from case import Case
from deltas import (ASKED, BEGINNING, COUNTER, ENTRY_STAT, EXEMPLAR, HEAD, JOINED, JOINED_STAT, LEDGER, MOST, NODE_ID, NOW_NS,
                    NOW_S, OPEN, OTHER_ID, PART, PATH, PATH_COUNTER, PATH_ID, PATH_STAT, SCOPE, SCOPE_ID, SHAPE_PATH, SHAPE_STAT, SITE,
                    SITE_ID, SOURCE_ID, SPAN_COUNTER, exemplar, fields, head, histogram, item, joined_shape, ledger, node_item, note_item,
                    one_bucket, part, path_stat, scope_item, shape_stat, site_item, source_item)
from msgpack import Text
from sender import FORMAT, id_of, varint, zigzag

YEAR_S = 365 * 86400
ALL_MOST = fields(MOST, MOST, MOST, one_bucket(MOST))  # times


def breaks(tag):
    return FORMAT, f"item breaks the format (tag {tag})"


def breaks_item(kind, place=1):
    return FORMAT, f"item {place} of {place}, kind {kind}, breaks the format"


def timed(values):
    """A path stat of a call, whose times end with this histogram."""
    return item(PATH_STAT, 0, NOW_S, 1, 0, 0, 5, 5, 5, 5, 5, 5, values)


def root(total, elided=0, elided_ns=0):
    return 0, 0, 0, total, 0, elided, elided_ns


HEADS = [
    Case("nothing", b""),
    Case("no head", BEGINNING[len(head()):]),
    Case("two heads", BEGINNING + head(3)),
    Case("a level of 2^64 - 1", item(HEAD, MOST, MOST), breaks(HEAD)),
    Case("made in the year 2554", head(1, MOST) + BEGINNING[len(head()):] + path_stat(5)),
    Case("tags that are not known", head() + item(99, b"abc") + item(2**63, b"abc")),
    Case("an item of 2^64 - 1 bytes", head() + varint(99) + varint(MOST), (FORMAT, "no whole item")),
    Case("an item that is cut", head() + varint(PATH_STAT) + varint(1000) + b"ab", (FORMAT, "no whole item")),
    Case("an id of three bytes", head() + item(SITE, b"abc"), breaks(SITE)),
]

PATHS = [
    Case("a path that is its own parent", head() + item(SITE, SITE_ID) + item(SCOPE, SCOPE_ID) + item(PATH, 1, 0, 0, 0), breaks(PATH)),
    Case("a parent that comes later", head() + item(SITE, SITE_ID) + item(SCOPE, SCOPE_ID) + item(PATH, 2, 0, 0, 0), breaks(PATH)),
    Case("a path of no site", head() + item(SCOPE, SCOPE_ID) + item(PATH, 0, 0, 5, 0), breaks(PATH)),
    Case("a path of all ones", BEGINNING + item(PATH, MOST, MOST, MOST, MOST), breaks(PATH)),
    Case("a path of 20,000 levels", head() + item(SITE, SITE_ID) + item(SCOPE, SCOPE_ID)
         + b"".join(item(PATH, each, 0, 0, 0) for each in range(20000)) + path_stat(5, path=19999)),
    Case("a stat of no path", BEGINNING + path_stat(5, path=7), breaks(PATH_STAT)),
]

STATS = [
    Case("calls", BEGINNING + path_stat(100, 100, 100) + shape_stat(5) + item(ENTRY_STAT, 0, NOW_S, 1, 1, 5, *[0] * 9)),
    Case("a path stat of all ones, twice", BEGINNING + item(PATH_STAT, 0, NOW_S, MOST, MOST, MOST, MOST, MOST, MOST, ALL_MOST) * 2),
    Case("a shape stat of all ones, twice", BEGINNING + item(SHAPE_STAT, 0, NOW_S, *[MOST] * 6, ALL_MOST) * 2),
    Case("an entry stat of all ones, twice", BEGINNING + item(ENTRY_STAT, 0, NOW_S, *[MOST] * 12) * 2),
    Case("calls that nobody timed", BEGINNING + item(PATH_STAT, 0, NOW_S, 5, 0, 0, 5, 1, 1, 5, 1, 1, histogram([]))),
    Case("a min above the max", BEGINNING + item(PATH_STAT, 0, NOW_S, 5, 0, 0, 5, 9, 1, 5, 9, 1, histogram([5])), breaks(PATH_STAT)),
    Case("windows of all times", BEGINNING + b"".join(path_stat(5, window=each) for each in (0, 2**63, MOST, NOW_S + YEAR_S))),
    Case("20,000 windows", BEGINNING + b"".join(path_stat(5, window=NOW_S - 60 * each) for each in range(20000))),
    Case("a histogram of scale -64", BEGINNING + timed(fields(0, zigzag(-64), zigzag(0), 1, 1)), breaks(PATH_STAT)),
    Case("a histogram from 2^40 on", BEGINNING + timed(fields(0, zigzag(5), zigzag(2**40), 1, 1)), breaks(PATH_STAT)),
    Case("a histogram of 513 buckets", BEGINNING + timed(fields(0, zigzag(5), zigzag(0), 513, *[1] * 513)), breaks(PATH_STAT)),
    Case("a shape path of all ones, twice", BEGINNING + item(SHAPE_PATH, 0, 0, *[MOST] * 8) * 2),
    Case("a path counter of all ones, twice", BEGINNING + item(SPAN_COUNTER, OTHER_ID) + item(PATH_COUNTER, 0, NOW_S, 0, *[MOST] * 8) * 2),
]

LEDGERS = [
    Case("a ledger", BEGINNING + ledger(10, 8, lost=[(1, 2)])),
    Case("a ledger of all ones, twice", BEGINNING + ledger(MOST, MOST, 2**63 - 1, [(1, MOST)], stream=2) * 2),
    Case("a ledger that holds less than nothing", BEGINNING + ledger(5, 5, -2**63, stream=3) * 2),
    Case("a ledger that does not balance", BEGINNING + ledger(5, 50, -3, [(4, 7)], stream=4)),
    Case("a loss for reason 0", BEGINNING + ledger(5, 3, lost=[(0, 2)]), breaks(LEDGER)),
    Case("a loss for reason 99", BEGINNING + ledger(5, 3, lost=[(99, 2)]), breaks(LEDGER)),
    Case("a loss for reason 2^64 - 1", BEGINNING + ledger(5, 3, lost=[(MOST, 2)]), breaks(LEDGER)),
    Case("a reason twice", BEGINNING + ledger(5, 3, lost=[(1, 1), (1, 1)]), breaks(LEDGER)),
    Case("a ledger of stream 2^40", BEGINNING + ledger(5, 5, stream=2**40), breaks(LEDGER)),
    Case("2^64 - 1 reasons", BEGINNING + item(LEDGER, 0, 9, 5, 5, zigzag(0), MOST), breaks(LEDGER)),
]

OPENS = [
    Case("open since the end of time", BEGINNING + item(OPEN, 0, MOST, MOST, 1, MOST, 5, *[MOST] * 5)),
    Case("open since ever", BEGINNING + item(OPEN, 0, 5, 3, 1, 6, 5, 0, 0, 0, 0, 3)),
    Case("open by 1,000 ages", BEGINNING + item(OPEN, 0, NOW_NS, 3, 1, NOW_NS, 1000, *[1] * 1000)),
]

TRACES = [
    Case("an exemplar", BEGINNING + exemplar(root(10))),
    Case("an exemplar of no call", BEGINNING + exemplar(), breaks(EXEMPLAR)),
    Case("an exemplar of 2^40 calls", BEGINNING + exemplar(root(10), count=2**40), breaks(EXEMPLAR)),
    Case("more has ended than was open", BEGINNING + exemplar(root(10), (5, 0, 1, 2, 0, 0, 0)), breaks(EXEMPLAR)),
    Case("a call that is longer than its caller", BEGINNING + exemplar(root(10), (0, 0, 1, 200, 0, 0, 0)), breaks(EXEMPLAR)),
    Case("2^64 - 2 calls left out", BEGINNING + exemplar(root(MOST, MOST - 1, MOST), stream=3)),
    Case("an exemplar of the end of time", BEGINNING + exemplar(root(MOST), start_ns=MOST)),
    Case("what nobody asked for", BEGINNING + item(ASKED, OTHER_ID, 1, 0, 1, 0, 0, 1, 9, NOW_NS, 1, 1, *root(10))),
]

PARTS = [
    Case("a part", BEGINNING + part(b"alone")),
    Case("10,000 parts of one edge", BEGINNING + b"".join(part(b"edge%d" % each, b"edge") for each in range(10000))),
    Case("parts in a circle", head() + part(b"c1", b"e1", [b"e2"]) + part(b"c2", b"e2", [b"e1"])),
    Case("a part that called itself", head() + part(b"self", b"e9", [b"e9"])),
    Case("a part with one edge 64 times", head() + part(b"same", None, [b"e10"] * 64)),
    Case("a part with 65 edges", head() + part(b"many", None, [b"m%d" % each for each in range(65)]), breaks(PART)),
    Case("a chain of 15,000 parts", head() + b"".join(part(b"k%d" % each, b"ke%d" % each if each else None, [b"ke%d" % (each + 1)])
                                                      for each in range(15000))),
    Case("a part of all ones", head() + item(PART, id_of(b"ones"), 0, 0, OTHER_ID, PATH_ID, NODE_ID, SOURCE_ID, MOST, MOST, zigzag(-2**63),
                                             1, OTHER_ID, zigzag(2**63 - 1), 0), breaks(PART)),
    Case("a joined shape of nothing", head() + item(JOINED, OTHER_ID, 0), breaks(JOINED)),
    Case("a joined shape that lacks children", head() + joined_shape(children=500), breaks(JOINED)),
    Case("a joined shape", head() + joined_shape()
         + item(JOINED_STAT, 0, NOW_S, 1, 0, 0, NOW_NS, NOW_NS, 5, 5, 5, OTHER_ID, histogram([5]))),
    Case("a joined stat of all ones, twice", head() + joined_shape()
         + item(JOINED_STAT, 0, NOW_S, *[MOST] * 8, OTHER_ID, one_bucket(MOST)) * 2),
]

COUNTERS = [
    Case("counters of odd names", head() + item(COUNTER, 8, b"a\x1b[2Jb\n\"", 7) + item(COUNTER, 4, b"x\"}\\", MOST) * 2),
    Case("a counter's name that is no UTF-8", head() + item(COUNTER, 4, b"a\xff\xc3b", 7)),
    Case("a counter's name of 63 bytes", head() + item(COUNTER, 63, b"n" * 63, 7)),
    Case("a counter's name of 64 bytes", head() + item(COUNTER, 64, b"n" * 64, 7), breaks(COUNTER)),
    Case("20,000 counters", head() + b"".join(item(COUNTER, 12, b"flood%07d" % each, 1) for each in range(20000))),
]

DELTAS = HEADS + PATHS + STATS + LEDGERS + OPENS + TRACES + PARTS + COUNTERS

ITSELF, LEFT, RIGHT = id_of(b"itself"), id_of(b"left"), id_of(b"right")
DOUBLED = [id_of(b"doubled%d" % each) for each in range(60)]

# After what a good worker tells first.
DICTIONARIES = [
    Case("names that drive a terminal", [site_item(OTHER_ID, "\x1b[2J\n" + "n" * 4000, "f\r.c")]),
    Case("a name with a zero byte", [site_item(OTHER_ID, Text(b"ab\xff\xfe\x00"))], breaks_item(16)),
    Case("a node that is its own child", [node_item(ITSELF, children=ITSELF + varint(0))]),
    Case("a node of odd children", [node_item(OTHER_ID, children=b"abc")], breaks_item(20)),
    Case("a node of unknown children", [node_item(OTHER_ID, 1, id_of(b"nowhere") + varint(MOST))]),
    Case("nodes in a circle", [node_item(LEFT, children=RIGHT + varint(0)), node_item(RIGHT, children=LEFT + varint(0))]),
    Case("a tree of 4^59 leaves", [node_item(each, 1, (DOUBLED[place - 1] + varint(2)) * 2 if place else b"")
                                   for place, each in enumerate(DOUBLED)]),
    Case("a node of 5,000 children", [node_item(id_of(b"wide"), children=(NODE_ID + varint(0)) * 5000)]),
    Case("a source in state 9", [source_item(state=9)], breaks_item(18)),
    Case("a source that is told otherwise", [source_item(scope=id_of(b"other scope"), app="b\x1b", state=2, end_ns=MOST), source_item()]),
    Case("notes that are no numbers", [note_item(SOURCE_ID, "tick_ns", "not a number"), note_item(SOURCE_ID, "sent_events", "-5", version=MOST),
                                       note_item(SOURCE_ID, "pruned_calls", "9" * 30, SITE_ID), note_item(OTHER_ID, "key", "value")]),
    Case("20,000 notes", [note_item(SOURCE_ID, "key", "value", id_of(b"%d" % each)) for each in range(20000)]),
    Case("an outer frame for reason 9", [[19, SCOPE_ID, SITE_ID, 9]]),
    Case("a counter that is absent oddly", [[21, SCOPE_ID, OTHER_ID, "n" * 63, "odd\x1b", "because\n\x1b"]]),
    Case("a scope that is told twice", [scope_item(), scope_item(app="other")]),
]

# A worker refuses them; for the master they say nothing.
PROBE_ITEMS = [[1, 1, 0, 1 << 24, 0, 1 << 20, 0, b"", "/p", 1], [9, 1, 5], [10, 1, 1, 1, 1], [7, 1, 2, 3]]

# Shapes of nodes that cannot be: what is shown of them has an end.
ODD_SHAPES = [DOUBLED[-1], ITSELF, LEFT]
