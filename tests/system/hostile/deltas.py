# SPDX-License-Identifier: Apache-2.0
"""What a worker tells: items of a delta, and those of its dictionary (docs/FORMAT.md, sections 5, 7 and 8)."""
import math
import time

from sender import id_of, varint, zigzag

(HEAD, SITE, SCOPE, PATH, PATH_STAT, SOURCE, SHAPE, SHAPE_STAT, ENTRY_STAT, LEDGER, OPEN, EXEMPLAR, PART, COUNTER, SPAN_COUNTER,
 PATH_COUNTER, SHAPE_PATH) = range(1, 18)
JOINED, JOINED_STAT, JOINED_EDGE, ASKED = range(20, 24)
SCALE = 5
MOST = 2**64 - 1
NOW_S = int(time.time())
NOW_NS = NOW_S * 10**9

SITE_ID, SCOPE_ID, SOURCE_ID, OTHER_ID = (id_of(name) for name in (b"site", b"scope", b"source", b"other"))
PATH_ID = id_of(b"mr-path\0" + SCOPE_ID + SITE_ID)
NODE_ID = id_of(b"mr-node\0" + b"\0" + SITE_ID)


def fields(*values):
    """Each a number, or bytes that are there as they are."""
    return b"".join(value if isinstance(value, bytes) else varint(value) for value in values)


def item(tag, *values):
    data = fields(*values)
    return varint(tag) + varint(len(data)) + data


def head(level=1, created_ns=NOW_NS):
    return item(HEAD, level, created_ns)


def histogram(values):
    """Of values from 1 on, at the scale of section 8 for a range that fits 512 buckets."""
    if not values:
        return fields(0, zigzag(0), zigzag(0), 0)
    buckets = [math.ceil(math.log2(value) * 2**SCALE) - 1 for value in values]
    first, last = min(buckets), max(buckets)
    counts = [buckets.count(bucket) for bucket in range(first, last + 1)]
    return fields(0, zigzag(SCALE), zigzag(first), len(counts), *counts)


def one_bucket(count, bucket=2047):
    return fields(0, zigzag(SCALE), zigzag(bucket), 1, count)


def times(*values):
    return fields(sum(values), min(values, default=0), max(values, default=0), histogram(values))


def path_stat(*durations, path=0, window=NOW_S, ok=None):
    """Calls without others in them."""
    ok = len(durations) if ok is None else ok
    return item(PATH_STAT, path, window, ok, 0, 0, sum(durations), min(durations), max(durations), times(*durations))


def shape_stat(duration, shape=0):
    return item(SHAPE_STAT, shape, NOW_S, 1, 0, 1, 0, NOW_NS, NOW_NS + duration, times(duration))


def ledger(last, reduced, held=0, lost=(), stream=1, source=0):
    """`lost`: (reason, events) ..."""
    return item(LEDGER, source, stream, last, reduced, zigzag(held), len(lost), *(number for pair in lost for number in pair))


def exemplar(*calls, stream=1, start_ns=NOW_NS, count=None):
    """Of a path, of no shape. A call: up, site, gap, total, flags, elided calls and their time."""
    count = len(calls) if count is None else count
    counted = sum(1 + each[5] for each in calls)
    return item(EXEMPLAR, 0, 0, 3, 0, 0, stream, 0, start_ns, counted, count, *(number for each in calls for number in each))


def part(name, came_from=None, goes_to=(), source=SOURCE_ID):
    """A part of a trace; the names of edges are made to ids."""
    def edge(of, after):
        return fields(1, id_of(of), zigzag(after))
    return item(PART, id_of(name), 0, 0, id_of(b"trace"), PATH_ID, NODE_ID, source, NOW_NS, 100, zigzag(0),
                edge(came_from, 0) if came_from else fields(0), len(goes_to), *(edge(to, 5) for to in goes_to))


def joined_shape(children=0):
    made = id_of(b"mr-joined\0" + b"\0" + PATH_ID + NODE_ID)
    return item(JOINED, made, 1, 0, 0, children, PATH_ID, NODE_ID)


# What most deltas begin with: site 0, scope 0, path 0 of both, source 0, shape 0 of the path.
TABLES = item(SITE, SITE_ID) + item(SCOPE, SCOPE_ID) + item(PATH, 0, 0, 0, 0) + item(SOURCE, SOURCE_ID) + item(SHAPE, 0, 0, NODE_ID)
BEGINNING = head() + TABLES


def site_item(number=SITE_ID, name="forged", file="forged.c", module="/nowhere/forged"):
    return [16, number, 0, module, bytes(range(20)), 5, name, file, 1, 2]


def scope_item(number=SCOPE_ID, app="forged"):
    return [17, number, app, "", ""]


def source_item(number=SOURCE_ID, scope=SCOPE_ID, app="forged", state=0, end_ns=0):
    return [18, number, scope, "host", 1, app, "", "", NOW_NS, 0, bytes(range(16)), state, end_ns, 0]


def node_item(number=NODE_ID, exactness=0, children=b""):
    return [20, number, SITE_ID, exactness, children]


def note_item(about, key, value, site=bytes(16), version=1):
    return [22, about, site, key, value, version]


DICTIONARY = [site_item(), scope_item(), source_item(), node_item()]
