# SPDX-License-Identifier: Apache-2.0
"""What a probe tells: events as words and compact, chunks, and the items of its dictionary (docs/FORMAT.md, sections 5 and 6)."""
import struct

from sender import varint

WORDS, COMPACT = 0, 1
FIRST, LAST, SOURCE_ENDS = 1, 2, 4  # flags of a chunk
SYNC, LOSS, WIDE, SEND, RECEIVE, CAPTURE, ATTACH, DETACH, STATUS, LABEL, MARK, PLOT, SWITCH, COUNTER, UNWIND, PRUNE, CUT, LANDING = \
    range(1, 19)
EXIT = 1
CHUNK = struct.Struct("<IBBHIIQQQQII")
PAYLOAD = (1 << 63) - 1
NAMED_SITE, MODULE_SITE = 1 << 16, 1 << 24
STACK_MAX = 4096  # of a compact chunk


def site(number):
    """A function of module()."""
    return MODULE_SITE + 16 * number


def event(at, time, direction=0):
    return direction << 62 | at << 32 | time & 0xFFFFFFFF


def record(kind, payload=(), time=0, direction=0):
    """A list: the word that says what it is, and those of its payload."""
    return [event(kind | len(payload) << 8, time, direction)] + [word & PAYLOAD for word in payload]


def call(at=None, start=10, end=20):
    at = at or site(1)
    return [event(at, start), event(at, end, EXIT)]


def chunk(words=(), events=None, first=0, time=0, stream=1, flags=FIRST | LAST, encoding=WORDS, body=None, records=None, size=None,
          header_size=CHUNK.size, reserved=0, epoch=1, lost=0, more_header=b""):
    """Of words, each an event, unless something else is said."""
    body = struct.pack(f"<{len(words)}Q", *words) if body is None else body
    records = len(words) if records is None else records
    events = len(words) if events is None else events
    size = CHUNK.size + len(more_header) + len(body) if size is None else size
    head = CHUNK.pack(size, encoding, flags, header_size, stream, epoch, first, events, lost, time, records, reserved)
    return head + more_header + body


def compact_body(events):
    """Of (site, time, direction), from time 0 on."""
    out, numbers, stack, now = bytearray(), {}, [], 0

    def number(at):
        if at in numbers:
            return varint(numbers[at])
        numbers[at] = len(numbers) + 1
        return varint(0) + varint(at)

    for at, time, direction in events:
        step, now = time - now, time
        if direction != EXIT:
            out += varint(step << 2) + number(at)
            stack += [at] if len(stack) < STACK_MAX else []
        elif stack and stack[-1] == at:
            out += varint(step << 2 | 1)
            stack.pop()
        else:
            out += varint(step << 2 | 2) + number(at)
            while at in stack and stack.pop() != at:
                pass
    return bytes(out)


def compact(events, body=None, count=None, **more):
    """A chunk of (site, time, direction), unless `body` is given."""
    body = compact_body(events) if body is None else body
    count = len(events) if count is None else count
    return chunk(encoding=COMPACT, body=body, events=count, records=more.pop("records", count), **more)


def module(number=0, epoch=1, base=MODULE_SITE, address=0x400000, size=1 << 20, bias=0, build_id=bytes(range(20)),
           path="/nowhere/program", flags=1):
    return [1, epoch, number, base, address, size, bias, build_id, path, flags]


def named_site(number, name, file="f.c", line=1, flags=0):
    return [3, NAMED_SITE + number, name, file, line, flags]


def stream(number=1, tid=1, name="thread", start=0, kind=0):
    return [4, number, tid, name, start, kind]
