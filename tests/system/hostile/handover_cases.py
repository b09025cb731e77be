# SPDX-License-Identifier: Apache-2.0
"""RESUME payloads (sections 4 and 10 of docs/FORMAT.md) that are damaged, or come near it, from a sender that says it comes from
another worker. Behind them it goes on with a call on stream 1."""
import struct
import time

from case import Case
from sender import FORMAT, id_of

SITE, STREAM = 1, 2  # kinds of entries
ROOT = 2  # flag of a call
LISTS, LANDINGS = 1 << 29, 1 << 30  # bits of `traces`
MOST = 2**64 - 1
MODULE, OFFSET = b"/nowhere/program", 5
SITE_ID = id_of(b"mr-site-path\0" + MODULE + b"\0" + struct.pack("<Q", OFFSET))
NOW_NS = time.time_ns()
DAMAGED = (FORMAT, "RESUME: what it tells of a stream is damaged")


def entry(kind, data, size=None):
    return struct.pack("<BI", kind, len(data) if size is None else size) + data


def of_stream(number=1, base=8, last=2, reduced=0, lost=0, closed=0, last_ns=NOW_NS, traces=(), bits=0, calls=(), depth=None, tail=b""):
    """`traces`: calls closed in each open root; `calls`: flags of each open one."""
    data = struct.pack("<IQQQQQQ", number, base, last, reduced, lost, closed, last_ns)
    data += struct.pack(f"<I{len(traces)}Q", len(traces) | bits, *traces)
    data += struct.pack("<I", len(calls) if depth is None else depth)
    data += b"".join(struct.pack("<QQ", NOW_NS - 10**9, 0) + SITE_ID + struct.pack("<H", flags) for flags in calls)
    return entry(STREAM, data + tail)


def text(data):
    return struct.pack("<I", len(data)) + data


KNOWN_SITE = entry(SITE, SITE_ID + b"\0" + text(MODULE) + text(b"") + struct.pack("<Q", OFFSET))
OPEN_ROOT = {"traces": [0], "calls": [ROOT], "last": 1}
NODE_OF_ITSELF = struct.pack("<BBI", 0, 0, 1) + SITE_ID + struct.pack("<IQ", 1, 1) + struct.pack("<IQ", 1, 1)

RESUMES = [
    Case("an open call", KNOWN_SITE + of_stream(**OPEN_ROOT)),
    Case("an open call of no known site", of_stream(**OPEN_ROOT)),
    Case("no entry", b"\xff" * 500, DAMAGED),
    Case("an entry of no bytes", entry(STREAM, b""), DAMAGED),
    Case("an entry of 4 GiB", entry(STREAM, b"", 2**32 - 1), DAMAGED),
    Case("entries of an unknown kind", entry(9, b"x") * 1000),
    Case("2^32 - 1 open calls", of_stream(depth=2**32 - 1), DAMAGED),
    Case("base 2^64 - 1", of_stream(base=MOST, last=5), DAMAGED),
    Case("2^64 - 1 events", of_stream(last=MOST), DAMAGED),
    Case("more lost than there were", of_stream(lost=7), DAMAGED),
    Case("stream 0", of_stream(0)),
    Case("stream 2^32 - 1", of_stream(2**32 - 1)),
    Case("a stream twice", of_stream() * 2),
    Case("700 streams", b"".join(of_stream(each + 1) for each in range(700))),
    Case("the end of time", of_stream(last_ns=MOST), DAMAGED),
    Case("three traces of one call", KNOWN_SITE + of_stream(traces=[1, 2, 3], calls=[ROOT]), DAMAGED),
    Case("a call of all flags", KNOWN_SITE + of_stream(**OPEN_ROOT | {"calls": [0xFFFF]}), DAMAGED),
    Case("a landing past all calls", KNOWN_SITE + of_stream(**OPEN_ROOT, bits=LANDINGS, tail=struct.pack("<IIH", 1, 99, 5)), DAMAGED),
    Case("lists of 2^32 - 1 nodes", KNOWN_SITE + of_stream(**OPEN_ROOT, bits=LISTS, tail=struct.pack("<BBI", 0, 1, 2**32 - 1)), DAMAGED),
    Case("a node that is its own child", KNOWN_SITE + of_stream(**OPEN_ROOT, bits=LISTS, tail=NODE_OF_ITSELF), DAMAGED),
]
