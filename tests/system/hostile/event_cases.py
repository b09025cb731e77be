# SPDX-License-Identifier: Apache-2.0
"""Dictionaries and chunks of a probe that break sections 5 and 6 of docs/FORMAT.md, or come near it. Of each the ledger tells in the
end how many events there were, and which of them were lost for what reason; the rest was reduced."""
from case import Case
from events import (ATTACH, CAPTURE, COUNTER, CUT, DETACH, EXIT, FIRST, LABEL, LANDING, LAST, LOSS, MARK, MODULE_SITE, PLOT, PRUNE, RECEIVE,
                    SEND, SOURCE_ENDS, STATUS, SWITCH, SYNC, UNWIND, WIDE, call, chunk, compact, event, module, named_site, record, site,
                    stream)
from sender import FORMAT, varint

MOST = 2**64 - 1
ONES = (1 << 63) - 1
DAY = 86400 * 10**9
FULL = 1 << 48  # reason of a loss: the ring was full
PAIR = call()

# What a probe says first, and then one call.
DICTIONARIES = [
    Case("nothing was said", [], written=2),
    Case("a stream twice, and a module, and a name", [module(), module(path="/other", build_id=b"\2" * 20), stream(), stream(tid=99),
                                                      named_site(0, "a"), named_site(0, "b", "g.c", 9, 1)], written=2),
    Case("200 modules over each other", [module(each, base=MODULE_SITE + 16 * each, address=0x400000 + each) for each in range(200)],
         written=2),
    Case("a module in 300 epochs", [module(epoch=each) for each in range(300)], written=2),
    Case("a module at the end of memory", [module(size=2**30, address=MOST - 15, bias=MOST)], (FORMAT, "item 1 of 1, kind 1,")),
    Case("a module of no sites", [module(size=0)], written=2),
    Case("a module past the last site", [module(base=2**30 - 1, size=1000)], (FORMAT, "item 1 of 1, kind 1,")),
    Case("a path of 4,096 bytes", [module(path="p" * 4096, build_id=b"b" * 64)], written=2),
    Case("a build-id of 65 bytes", [module(build_id=b"b" * 65)], (FORMAT, "item 1 of 1, kind 1,")),
    Case("a name of 4,097 bytes", [stream(name="n" * 4097)], (FORMAT, "item 1 of 1, kind 4,")),
    Case("a loss for no reason", [[9, 12, 5]], (FORMAT, "item 1 of 1, kind 9,")),
    Case("a loss of 2^56 + 1", [[9, 3, 2**56 + 1]], (FORMAT, "item 1 of 1, kind 9,")),
    Case("a counter in a place that there is not", [[6, 4, "c", "1", 0, ""]], written=2),
    Case("a link of 2^64 - 1 events", [[10, 0, 1, MOST, MOST]], (FORMAT, "item 1 of 1, kind 10,")),
    Case("a link of no known encoding", [[10, 99, 99, 0, 0]], written=2),
    Case("a ticker past all limits", [[11, MOST, MOST, MOST, MOST]], written=2),
    Case("a wall clock at its end", [[7, 2**62, MOST, MOST], [7, 0, 0, 0]], written=2),
    Case("pruned past all limits", [[12, site(1), 1, 2**32 - 1, MOST, MOST, MOST]], written=2),
    Case("a module that never was is gone", [[2, 2**32 - 1, 2**32 - 1]], written=2),
    Case("items of a worker", [[16, bytes(16), 0, "/p", b"", 5, "forged", "f.c", 1, 2], [20, bytes(16), bytes(16), 0, b""]],
         (FORMAT, "item 16 is not a probe's")),
    Case("notes that are no numbers", [[22, bytes(16), bytes(16), "depth_limit", "\x1b[31m-5", 0],
                                       [22, bytes(16), bytes(16), "depth_skipped", "9" * 40, 0]], written=2),
]


def of_kind(kind, *payload, times=1, first=PAIR[:1], then=PAIR[1:]):
    """A call in which such a record comes."""
    return first + record(kind, payload, time=15) * times + then


NOT_ITS_RECORDS = (FORMAT, "its records do not fill its body")
NO_HEADER = (FORMAT, "its header_size is less than 56, or more than its size")
PAST_FRAME = (FORMAT, "its size is more than what is left of the frame")
PAST_NUMBERS = (FORMAT, "its events have numbers past 2^56")
NO_STREAM = (FORMAT, "its stream has no number from 1 to 2^32 - 2")
BROKEN = (FORMAT, "a record breaks the format after event")
CAME_ALREADY = (FORMAT, "which came already")
MORE = (FORMAT, "a chunk holds more events than it tells")

HEADERS = [
    Case("stream 0", chunk(PAIR, stream=0), NO_STREAM),
    Case("stream 2^32 - 1", chunk(PAIR, stream=2**32 - 1), NO_STREAM),
    Case("a stream that nobody named", chunk(PAIR, stream=77), written=2),
    Case("an epoch that nobody named", chunk(PAIR, epoch=2**32 - 1), written=2),
    Case("size 0", chunk(PAIR, size=0), NO_HEADER),
    Case("size 63", chunk(PAIR, size=63), NOT_ITS_RECORDS),
    Case("size 1,000 of 72", chunk(PAIR, size=1000), PAST_FRAME),
    Case("size 2^32 - 8", chunk(PAIR, size=2**32 - 8), PAST_FRAME),
    Case("three records of two", chunk(PAIR, records=3), NOT_ITS_RECORDS),
    Case("one record of two", chunk(PAIR, records=1), NOT_ITS_RECORDS),
    Case("2^32 - 1 records", chunk(PAIR, records=2**32 - 1), NOT_ITS_RECORDS),
    Case("encoding 9", chunk(PAIR, encoding=9), (FORMAT, "its encoding is not known")),
    Case("flag 128", chunk(PAIR, flags=0x80), (FORMAT, "it has flags that are not known")),
    Case("a header of 40 bytes", chunk(PAIR, header_size=40), NO_HEADER),
    Case("a header of 65,535 bytes", chunk(PAIR, header_size=65535), NO_HEADER),
    Case("a header of 64 bytes", chunk(PAIR, header_size=64, more_header=bytes(8)), written=2),
    Case("time 2^62", chunk(PAIR, time=2**62), (FORMAT, "its time is past 2^62")),
    Case("time 2^62 - 1", chunk(PAIR, time=2**62 - 1), written=2, lost={"clock": 2}),
    Case("ten days ahead", chunk(PAIR, time=10 * DAY), written=2, lost={"clock": 2}),
    Case("more lost than there were", chunk(PAIR, lost=5), (FORMAT, "more events are lost than there were")),
    Case("event 2^64 - 1", chunk(PAIR, first=MOST), PAST_NUMBERS),
    Case("event 2^60", chunk(PAIR, first=2**60), PAST_NUMBERS),
    Case("2^64 - 1 events", chunk(PAIR, events=MOST), PAST_NUMBERS),
    Case("2^40 events of two", chunk(PAIR, events=2**40), (FORMAT, "events are missing after event 2"), written=2**40,
         lost={"format": 2**40 - 2}),
    Case("no event of two", chunk(PAIR, events=0), MORE, written=2),
    Case("one event of two", chunk(PAIR, events=1), MORE, written=2),
]

SEQUENCES = [
    Case("chunks out of order", chunk(PAIR, first=2, flags=FIRST) + chunk(PAIR), CAME_ALREADY, written=4, lost={"format": 2}),
    Case("chunks twice", chunk(PAIR, flags=FIRST) * 2, CAME_ALREADY, written=2),
    Case("a gap of 1,000", chunk(PAIR, flags=FIRST) + chunk(PAIR, first=1002, flags=LAST), written=1004, lost={"format": 1000}),
    Case("after the last", chunk(PAIR) + chunk(PAIR, first=2), (FORMAT, "after the last"), written=2),
    Case("the first, three times", chunk(PAIR, flags=FIRST) + chunk(PAIR, first=2, flags=FIRST)
         + chunk(PAIR, first=4, flags=FIRST | LAST | SOURCE_ENDS), written=6),
    Case("1,000 chunks of an event", b"".join(chunk([event(site(1), each, each & 1)], first=each, time=each, flags=0)
                                               for each in range(1000)), written=1000),
]

WORDS = [
    Case("a call", chunk(PAIR), written=2),
    Case("exits without enters", chunk([event(site(each % 5), each, EXIT) for each in range(1000)]), written=1000),
    Case("enters without exits", chunk([event(site(each % 5), each) for each in range(1000)]), written=1000),
    Case("sites of no module", chunk([event(0x3FFFFFF0 + each % 8, each, each & 1) for each in range(1000)]), written=1000),
    Case("sites of no name", chunk([event((1 << 16) + each // 2, each, each & 1) for each in range(1000)]), written=1000),
    Case("the last sites", chunk(call(MODULE_SITE - 1) + call(2**30 - 1, 30, 40)), written=4),
    Case("time runs back", chunk([event(site(1), 1000), event(site(2), 500), event(site(2), 400, EXIT), event(site(1), 300, EXIT)],
                                 time=900), written=4),
    Case("time jumps", chunk(record(SYNC, [2**62 - 1]) + PAIR + record(SYNC, [5]) + PAIR, events=4), written=4, lost={"clock": 4}),
    Case("a known day in 40 steps", chunk(sum((record(SYNC, [each * DAY // 48]) + [event(site(1), each * DAY // 48, each & 1)]
                                               for each in range(40)), []), events=40), written=40),
    Case("a record of kind 0", chunk([event(0, 5)] + PAIR, events=2), BROKEN, written=2, lost={"format": 2}),
    Case("a record of kind 200", chunk(of_kind(200, 1, 2, 3), events=2), written=2),
    Case("SEND of two words", chunk(record(SEND, [1, 2]) + PAIR, events=3), BROKEN, written=3, lost={"format": 3}),
    Case("a payload past the end", chunk(PAIR + [event(SEND | 4 << 8, 30)], events=3), BROKEN, written=3, lost={"format": 1}),
    Case("a loss of 2^48 - 1", chunk(record(LOSS, [2**48 - 1 | FULL, 0]) + PAIR, events=2**48 + 1), written=2**48 + 1,
         lost={"ring-full": 2**48 - 1}),
    Case("a loss for an unknown reason", chunk(record(LOSS, [5 | 99 << 48, 0]) + PAIR, events=7), written=7, lost={"format": 5}),
    Case("a loss of most pops and pushes", chunk(PAIR[:1] + record(LOSS, [5 | FULL, (1 << 62) - 1]) + PAIR, events=8), written=8,
         lost={"ring-full": 5, "budget": 2}),
    Case("pushes past all limits", chunk(PAIR[:1] + record(LOSS, [5 | FULL, ((1 << 31) - 1) << 31]) * 100 + PAIR, events=503),
         written=503, lost={"ring-full": 500, "budget": 2}),
    Case("1,000 times one SEND", chunk(of_kind(SEND, 5, 6, 7 << 4, 8, times=1000), events=1002), written=1002, lost={"budget": 936}),
    Case("1,000 times RECEIVE in a call", chunk(of_kind(RECEIVE, 5, 6, 7 << 4, 8, times=1000), events=1002), written=1002),
    Case("RECEIVE of what could not be read", chunk(of_kind(RECEIVE, 0, 0, 0, 0), events=3), written=3),
    Case("DETACH without ATTACH", chunk(of_kind(DETACH, 3, times=1000), events=1002), written=1002),
    Case("ATTACH without DETACH", chunk(of_kind(ATTACH, 3, times=1000), events=1002), written=1002),
    Case("a counter of 17 values", chunk(of_kind(COUNTER, *range(17)), events=2), BROKEN, written=2, lost={"format": 1}),
    Case("a landing of 17 words", chunk(of_kind(LANDING, *range(17)), events=2), BROKEN, written=2, lost={"format": 1}),
]

# Each with payloads of nothing but ones, and of zeros: how many words, and whether it counts as an event.
KINDS = [("WIDE", WIDE, 1, 1), ("SEND", SEND, 4, 1), ("RECEIVE", RECEIVE, 4, 1), ("CAPTURE", CAPTURE, 1, 1), ("ATTACH", ATTACH, 1, 1),
         ("DETACH", DETACH, 1, 1), ("STATUS", STATUS, 1, 1), ("LABEL", LABEL, 2, 1), ("MARK", MARK, 1, 1), ("PLOT", PLOT, 2, 1),
         ("SWITCH", SWITCH, 1, 1), ("COUNTER", COUNTER, 16, 0), ("UNWIND", UNWIND, 1, 1), ("PRUNE", PRUNE, 1, 0), ("CUT", CUT, 1, 0),
         ("LANDING", LANDING, 16, 0)]
PAYLOADS = [Case(f"{name} of {what}", chunk(of_kind(kind, *[word] * words), events=2 + events), written=2 + events)
            for name, kind, words, events in KINDS for what, word in (("ones", ONES), ("zeros", 0))]

CALLS = [(site(1), 10, 0), (site(2), 12, 0), (site(2), 15, EXIT), (site(1), 20, EXIT)]
NEW_SITE = varint(4) + varint(0)  # one tick later an enter of the site that follows


def one(body, events=1):
    """A compact chunk of one record."""
    return compact([], body, count=events, records=1)


COMPACT = [
    Case("compact", compact(CALLS), written=4),
    Case("a time of 11 bytes", compact(CALLS, b"\xff" * 11, 4), BROKEN, written=4, lost={"format": 4}),
    Case("a time of 2^64", compact(CALLS, b"\xff" * 9 + b"\x01", 4), BROKEN, written=4, lost={"format": 4}),
    Case("an exit of nothing", one(varint(4 | 1)), BROKEN, written=1, lost={"format": 1}),
    Case("a site that was not told", one(varint(4) + varint(99)), BROKEN, written=1, lost={"format": 1}),
    Case("site 2^30", one(NEW_SITE + varint(2**30)), BROKEN, written=1, lost={"format": 1}),
    Case("site 2^63", one(NEW_SITE + varint(2**63)), BROKEN, written=1, lost={"format": 1}),
    Case("a site that is a kind", one(NEW_SITE + varint(5)), BROKEN, written=1, lost={"format": 1}),
    Case("a sync without its word", one(varint(4 | 3) + varint(SYNC << 9), 0), BROKEN, written=0),
    Case("a record of 255 words", one(varint(4 | 3) + varint(200 << 9 | 255 << 1) + bytes(8 * 255), 0), written=0),
    Case("a record of 256 words", one(varint(4 | 3) + varint(200 << 9 | 256 << 1) + bytes(8 * 256), 0), BROKEN, written=0),
    Case("a kind of 2^40", one(varint(4 | 3) + varint(1 << 49), 0), BROKEN, written=0),
    Case("a payload with bit 63", one(varint(4 | 3) + varint(SYNC << 9 | 1 << 1) + b"\xff" * 8, 0), BROKEN, written=0),
    Case("a step of 2^61", one(varint(2**61 << 2) + varint(0) + varint(site(1))), written=1, lost={"clock": 1}),
    Case("two steps to the end of time", compact([], varint((2**62 - 1) << 2) + varint(0) + varint(site(1)) + varint((2**62 - 1) << 2 | 1), 2),
         written=2, lost={"clock": 2}),
    Case("5,000 sites", compact([(site(each), each, 0) for each in range(5000)]), BROKEN, written=5000, lost={"format": 904}),
    Case("5,000 deep", compact([(site(1), each, 0) for each in range(5000)] + [(site(1), 6000 + each, EXIT) for each in range(5000)]),
         written=10000),
    Case("bytes behind the last record", compact(CALLS, body=compact(CALLS)[56:] + bytes(3), count=4), BROKEN, written=4,
         lost={"format": 1}),
]

CHUNKS_OF_ALL = HEADERS + SEQUENCES + WORDS + PAYLOADS + COMPACT
