# SPDX-License-Identifier: Apache-2.0
"""Payloads that a sender could have made, and what becomes of them by chance."""
from deltas import (BEGINNING, COUNTER, ENTRY_STAT, NOW_NS, NOW_S, OPEN, OTHER_ID, PATH_COUNTER, SHAPE_PATH, SPAN_COUNTER, exemplar, item,
                    joined_shape, ledger, part, path_stat, shape_stat)
from events import (ATTACH, CAPTURE, COUNTER as COUNTER_RECORD, CUT, DETACH, LABEL, LANDING, MARK, PLOT, PRUNE, RECEIVE, SEND, STATUS,
                    SWITCH, SYNC, UNWIND, WIDE, chunk, compact, event, module, named_site, record, site, stream)

DICTIONARY = [module(), stream(), named_site(0, "a"), named_site(1, "b", "f.c", 3, 2)]
MORE_ITEMS = [[5, 1, "key", 0], [6, 0, "counter", "1", 0, ""], [7, 1, 2, 3], [8, 1, "text"], [9, 1, 5], [10, 1, 1, 5, 5], [11, 1, 2, 3, 4],
              [12, site(1), 1, 1, 5, 7, 50], [22, bytes(16), bytes(16), "depth_limit", "5", 0], [2, 9, 0]]
DELTA_OF_ALL = (BEGINNING + path_stat(100, 100, 100) + shape_stat(5) + item(ENTRY_STAT, 0, NOW_S, 1, 1, 5, *[0] * 9)
                + ledger(10, 8, lost=[(1, 2)]) + item(OPEN, 0, NOW_NS, 3, 1, NOW_NS, 5, 1, 1, 1, 0, 0)
                + exemplar((0, 0, 0, 10, 0, 0, 0), (0, 0, 1, 2, 0, 0, 0)) + part(b"part", b"from", [b"to"]) + item(COUNTER, 4, b"name", 5)
                + item(SPAN_COUNTER, OTHER_ID) + item(PATH_COUNTER, 0, NOW_S, 0, 1, 0, *[5] * 6) + item(SHAPE_PATH, 0, 0, 1, 0, *[5] * 6)
                + joined_shape())
SITES = [site(1), site(2), site(3), 1 << 16, 1 << 16 | 1, 2**30 - 1]
STEPS = [0, 1, 5, 100, 2**31 - 1]
# kind: words of its payload (least, most), whether it counts as an event
RECORDS = [(SYNC, 1, 1, 0), (WIDE, 1, 1, 1), (SEND, 4, 4, 1), (RECEIVE, 4, 4, 1), (CAPTURE, 1, 1, 1), (ATTACH, 1, 1, 1), (DETACH, 1, 1, 1),
           (STATUS, 1, 1, 1), (LABEL, 2, 2, 1), (MARK, 1, 1, 1), (PLOT, 2, 2, 1), (SWITCH, 1, 1, 1), (COUNTER_RECORD, 1, 4, 0),
           (UNWIND, 1, 1, 1), (PRUNE, 1, 1, 0), (CUT, 1, 1, 0), (LANDING, 2, 7, 0)]
PAYLOADS = [0, 1, 2, 5, site(1), site(1) | 1 << 32, 0x400010, 2**62, 2**63 - 1]


def random_words(random):
    """(words, how many of them are events): records as the format has them, whatever sense they make."""
    words, events, time = [], 0, 5
    for _ in range(random.randrange(1, 60)):
        time += random.choice(STEPS)
        if random.randrange(2):
            words.append(event(random.choice(SITES), time, random.randrange(2)))
            events += 1
        else:
            kind, least, most, counts = random.choice(RECORDS)
            payload = [random.choice(PAYLOADS + [random.getrandbits(63)]) for _ in range(random.randint(least, most))]
            words += record(kind, payload, time, random.randrange(2))
            events += counts
    return words, events


def random_chunk(random, first):
    """(chunk, events)"""
    if random.randrange(4) == 0:
        calls, time = [], 0
        for _ in range(random.randrange(1, 60)):
            time += random.choice(STEPS)
            calls.append((random.choice(SITES), time, random.randrange(2)))
        return compact(calls, first=first, flags=0), len(calls)
    words, events = random_words(random)
    flags, number = random.choice((0, 0, 0, 1, 2, 6)), random.choice((1, 1, 1, 2))
    return chunk(words, events, first=first, flags=flags, stream=number), events


def mutated(random, data):
    """With bits turned, bytes replaced, left out, put in, and parts of it repeated."""
    data = bytearray(data)
    for _ in range(random.choice((0, 1, 1, 2, 4, 16))):
        if not data:
            break
        at, size = random.randrange(len(data)), random.randrange(1, 12)
        how = random.randrange(5)
        if how == 0:
            data[at] ^= 1 << random.randrange(8)
        elif how == 1:
            data[at] = random.choice((0, 1, 127, 128, 255))
        elif how == 2:
            del data[at:at + size]
        elif how == 3:
            data[at:at] = bytes([random.randrange(256)]) * size
        else:
            start = random.randrange(len(data))
            data[at:at] = data[start:start + 4 * size]
    return bytes(data)
