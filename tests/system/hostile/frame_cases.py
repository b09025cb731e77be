# SPDX-License-Identifier: Apache-2.0
"""Frames and HELLO that break sections 2 to 4 of docs/FORMAT.md, or come near it: what they are, and what must come of them. Worker and
master are told the same."""
import struct

from case import Case
from events import chunk
from msgpack import Raw, Text, pack
from sender import (ACK, ANSWER, BYE, CHUNKS, COMPRESSED, DELTA, DICT, ERROR, HEARTBEAT, HELLO, MOVE, OFFER, RESUME, SETTLE,
                    WANTED, WELCOME, bye, compress, compressed_payload, custody_of, frame, settle)
from sender import CHECKSUM, FORMAT, INTERNAL, LIMIT, STATE, VERSION

MOST = 2**64 - 1
EMPTY_DICT = pack([])
LONGEST_CONTROL = 65536
MAX_FRAME = 4 << 20

NO_MAP = (FORMAT, "HELLO: not one whole msgpack map, or nested more than 8 deep")
NOT_FROM_A_SENDER = (STATE, "a frame that no sender sends")
MISSING = (FORMAT, "data frames are missing")
OTHER_SIZE = (FORMAT, "compressed frame does not expand to its size")

# In the place of HELLO: made of what a good one says.
FIRST_FRAMES = [
    Case("another magic", lambda says: frame(HELLO, pack(says), magic=b"XXXX"), (FORMAT, "no millrace frame: it begins with 0x58585858")),
    Case("version 2", lambda says: frame(HELLO, pack(says), version=2), (VERSION, "frame of wire version 2; this side speaks 1")),
    Case("version 0", lambda says: frame(HELLO, pack(says), version=0), (VERSION, "frame of wire version 0; this side speaks 1")),
    Case("an unknown flag", lambda says: frame(HELLO, pack(says), flags=2), (FORMAT, "HELLO frame with flags 0x2")),
    Case("HELLO is compressed", lambda says: frame(HELLO, compressed_payload(pack(says)), flags=COMPRESSED),
         (FORMAT, "HELLO frame with flags 0x1")),
    Case("type 0", lambda says: frame(0), (FORMAT, "frame of unknown type 0")),
    Case("a reserved control type", lambda says: frame(14), (FORMAT, "frame of unknown type 14")),
    Case("data before HELLO", lambda says: frame(DICT, EMPTY_DICT, 1), (STATE, "the first frame is no HELLO")),
    Case("HELLO of no bytes", lambda says: frame(HELLO), NO_MAP),
    Case("HELLO is an array", lambda says: frame(HELLO, pack([])), (FORMAT, "HELLO: no msgpack map from texts")),
    Case("HELLO and more", lambda says: frame(HELLO, pack(says) + b"\x01"), NO_MAP),
    Case("HELLO of 2^32 - 1 keys", lambda says: frame(HELLO, b"\xdf\xff\xff\xff\xff" + b"\xa1a\x01" * 5), NO_MAP),
    Case("HELLO with a wrong checksum", lambda says: frame(HELLO, pack(says), checksum=5),
         (CHECKSUM, "HELLO frame 0: its checksum does not match")),
    Case("HELLO of 64 KiB and a byte", lambda says: frame(HELLO, bytes(LONGEST_CONTROL + 1)),
         (LIMIT, "HELLO frame of 65537 bytes; the limit is 65536")),
]

# Behind a good HELLO.
LATER_FRAMES = [
    Case("an unknown data type", frame(19, b"x", 1), (FORMAT, "frame of unknown type 19")),
    Case("type 255", frame(255, b"x", 1), (FORMAT, "frame of unknown type 255")),
    Case("a frame of 4 GiB", frame(DICT, b"abc", 1, length=2**32 - 1), (LIMIT, "DICT frame of 4294967295 bytes; the limit is 4194304")),
    Case("DICT of no bytes", frame(DICT, b"", 1), (FORMAT, "DICT: not one whole msgpack array")),
    Case("a control frame of 64 KiB and a byte", frame(BYE, bytes(LONGEST_CONTROL + 1)),
         (LIMIT, "BYE frame of 65537 bytes; the limit is 65536")),
    Case("a wrong checksum", frame(DICT, EMPTY_DICT, 1, checksum=5), (CHECKSUM, "DICT frame 1: its checksum does not match")),
    Case("frame 2 first", frame(DICT, EMPTY_DICT, 2), MISSING),
    Case("frame 2^64 - 1 first", frame(DICT, EMPTY_DICT, MOST), MISSING),
    Case("a control frame with a sequence", frame(HEARTBEAT, b"", 7), (FORMAT, "HEARTBEAT frame with sequence 7")),
    Case("HEARTBEAT with a payload", frame(HEARTBEAT, b"xx")),
    Case("CHUNKS out of custody", frame(CHUNKS, chunk(), 0), (FORMAT, "CHUNKS frame with sequence 0")),
    Case("DELTA out of custody", frame(DELTA, b"", 0), (FORMAT, "DELTA frame with sequence 0")),
    Case("DICT out of custody", frame(DICT, EMPTY_DICT, 0)),
    Case("DICT out of custody, of more than 64 KiB", frame(DICT, pack([[8, 1, "x" * 4000]] * 17), 0),
         (LIMIT, "DICT frame of 68105 bytes; the limit is 65536")),
    Case("DICT out of custody, compressed", frame(DICT, compressed_payload(EMPTY_DICT), 0, COMPRESSED),
         (FORMAT, "DICT frame with flags 0x1")),
    Case("a second HELLO", frame(HELLO, pack({})), (STATE, "a second HELLO")),
    Case("WELCOME from a sender", frame(WELCOME, bytes(40)), NOT_FROM_A_SENDER),
    Case("ACK from a sender", frame(ACK, bytes(24)), NOT_FROM_A_SENDER),
    Case("MOVE from a sender", frame(MOVE, bytes(4)), NOT_FROM_A_SENDER),
    Case("ANSWER from a sender", frame(ANSWER, bytes(40)), NOT_FROM_A_SENDER),
    Case("WANTED from a sender", frame(WANTED, bytes(8)), NOT_FROM_A_SENDER),
    Case("RESUME where none was offered", frame(RESUME, bytes(40)), (STATE, "RESUME that was not asked for")),
    Case("OFFER that answers none", frame(OFFER, bytes(8)), (STATE, "OFFER accepted that was not made")),
    Case("SETTLE of what was not acknowledged", settle(99), (FORMAT, "SETTLE of what was not acknowledged")),
    Case("SETTLE of three bytes", frame(SETTLE, b"abc"), (FORMAT, "SETTLE of what was not acknowledged")),
    Case("BYE of no bytes", frame(BYE), (FORMAT, "bad BYE")),
    Case("BYE for an unknown reason", bye(99)),
    Case("data behind BYE", bye() + frame(DICT, EMPTY_DICT, 1)),
    Case("ERROR that drives a terminal", frame(ERROR, struct.pack("<HH", 1, 12) + b"\x1b[31mred\nred"),
         (INTERNAL, "gave up (1): ?[31mred?red")),
    Case("ERROR that is shorter than it says", frame(ERROR, struct.pack("<HH", 1, 3000) + b"I am"), (FORMAT, "bad ERROR")),
    Case("items of no kind", frame(DICT, pack([["x"], []]), 1), (FORMAT, "DICT: item 1 of 2, kind 0, breaks the format")),
    Case("an item that is no array", frame(DICT, pack([5]), 1), (FORMAT, "DICT: item 1 of 1, kind 0, breaks the format")),
    Case("an item of an unknown kind", frame(DICT, pack([[99, 1, 2]]), 1)),
    Case("compressed, said to be 4 GiB", frame(DICT, struct.pack("<I", 2**32 - 1) + compress(bytes(100)), 1, COMPRESSED),
         (LIMIT, "frame of 4294967295 bytes when expanded; the limit is 4194304")),
    Case("compressed, and more than it says", frame(DICT, compressed_payload(bytes(64 << 20), MAX_FRAME), 1, COMPRESSED), OTHER_SIZE),
    Case("compressed, and less than it says", frame(DICT, compressed_payload(bytes(100), 5000), 1, COMPRESSED), OTHER_SIZE),
    Case("compressed nothing", frame(DICT, compressed_payload(b""), 1, COMPRESSED), OTHER_SIZE),
    Case("compressed, but cut", frame(DICT, b"ab", 1, COMPRESSED), (FORMAT, "compressed frame without its size")),
    Case("compressed, but no zstd", frame(DICT, struct.pack("<I", 100) + bytes(range(50)), 1, COMPRESSED), OTHER_SIZE),
]

# Keys of HELLO that are other than in a good one; None: it is not there.
HELLO_KEYS = [
    Case("no sender", {"sender": None}, (FORMAT, "key 'sender'")),
    Case("no role", {"role": None}, (FORMAT, "key 'role'")),
    Case("no level", {"level": None}, (FORMAT, "key 'level'")),
    Case("no oldest", {"oldest": None}, (FORMAT, "key 'oldest'")),
    Case("sender of 15 bytes", {"sender": bytes(15)}, (FORMAT, "key 'sender'")),
    Case("sender is text", {"sender": "x" * 16}, (FORMAT, "key 'sender'")),
    Case("sender is zero", {"sender": bytes(16)}, (FORMAT, "key 'sender'")),
    Case("an unknown role", {"role": "king"}, (FORMAT, "key 'role'")),
    Case("level 2^40", {"level": 2**40}, (FORMAT, "key 'level'")),
    Case("oldest 0", {"oldest": 0}, (FORMAT, "key 'oldest'")),
    Case("oldest 2^62", {"oldest": 2**62}),
    Case("oldest 2^62 + 1", {"oldest": 2**62 + 1}, (FORMAT, "key 'oldest'")),
    Case("oldest 2^64 - 1", {"oldest": MOST}, (FORMAT, "key 'oldest'")),
    Case("a token of 4,096 bytes", {"token": "t" * 4096}),
    Case("a token of 5,000 bytes", {"token": "t" * 5000}, (FORMAT, "key 'token'")),
    Case("offers 2^63", {"offers": 2**63}),
    Case("wanted 2", {"wanted": 2}),
    Case("a key that is not known", {"later": [1, {"a": b"b"}]}),
    Case("nested 10 deep", {"x": [[[[[[[[[[1]]]]]]]]]]}, NO_MAP),
    Case("nested 60,000 deep", {"x": Raw(b"\x91" * 60000 + b"\x01")}, NO_MAP),
    Case("a key with a zero byte", {"a\0b": 1}),
    Case("text that is no UTF-8", {"x": Text(b"\xff\xfe")}),
    Case("custody of nothing", {"custody": {}}, (FORMAT, "key 'custodian'")),
    Case("custody that sent less than was acknowledged", {"custody": custody_of(acked=7, sent=3, epoch=5)}, (FORMAT, "key 'custody'")),
    Case("custody shown 9 times", {"custody": custody_of(shown=9)}, (FORMAT, "key 'shown'")),
    Case("custody of more epochs than 2^62", {"custody": custody_of(epoch=2**62 + 1)}, (FORMAT, "key 'custody'")),
    Case("custody of more frames than 2^62", {"custody": custody_of(sent=2**62 + 1)}, (FORMAT, "key 'custody'")),
]

# Keys of `source`, from a probe.
SOURCE_KEYS = [
    Case("no host", {"host": None}, (FORMAT, "key 'host'")),
    Case("no clock", {"clock": None}, (FORMAT, "key 'clock'")),
    Case("a rate of 0", {"clock": {"mult": 0}}, (FORMAT, "key 'clock'")),
    Case("a rate of 2^32", {"clock": {"mult": 2**32}}, (FORMAT, "key 'mult'")),
    Case("a shift of 64", {"clock": {"shift": 64}}, (FORMAT, "key 'shift'")),
    Case("an unknown clock", {"clock": {"kind": "sundial"}}, (FORMAT, "key 'kind'")),
    Case("wall time 2^64 - 1", {"clock": {"realtime_ns": MOST}}),
    Case("ticks 2^64 - 1", {"clock": {"ticks": MOST}}),
    Case("a host that drives a terminal", {"host": "a\x1b[2Jb\nc"}),
    Case("an application of no name", {"app": ""}),
    Case("an application of 5,000 bytes", {"app": "a" * 5000}, (FORMAT, "key 'app'")),
    Case("an application that is no UTF-8", {"app": Text(b"\xff\xfe")}),
    Case("32 attributes", {"attributes": {str(each): "x" for each in range(32)}}),
    Case("33 attributes", {"attributes": {str(each): "x" for each in range(33)}}, (FORMAT, "key 'attributes'")),
    Case("an unknown policy", {"policy": "maybe"}, (FORMAT, "key 'policy'")),
    Case("pid 2^40", {"pid": 2**40}, (FORMAT, "key 'pid'")),
    Case("pid -1", {"pid": -1}, (FORMAT, "key 'pid'")),
    Case("ticks of 2^64 - 1 ns", {"tick_ns": MOST, "tick_events": 2**32 - 1}, (FORMAT, "key 'tick_ns'")),
    Case("begun at 0", {"start_ns": 0}),
]
