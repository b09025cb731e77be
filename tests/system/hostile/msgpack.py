# SPDX-License-Identifier: Apache-2.0
"""As much of msgpack as HELLO and DICT need (docs/FORMAT.md, sections 3 and 5), and what they must not have."""
import struct


class Raw(bytes):
    """Bytes that stand in the message as they are."""


class Text(bytes):
    """A string that need not be UTF-8."""


def head(size, short, forms):
    """The head of something of `size`: in one byte where `short` (base, limit) allows, else in the first of `forms`
    (limit, first byte, format of the size) that does."""
    if short and size < short[1]:
        return bytes([short[0] | size])
    for limit, byte, form in forms:
        if size < limit:
            return bytes([byte]) + struct.pack(form, size)
    raise ValueError(f"{size} is too much")


BYTE, SHORT, LONG, LONGEST = 1 << 8, 1 << 16, 1 << 32, 1 << 64
NUMBERS = [(BYTE, 0xCC, ">B"), (SHORT, 0xCD, ">H"), (LONG, 0xCE, ">I"), (LONGEST, 0xCF, ">Q")]
TEXTS = [(BYTE, 0xD9, ">B"), (SHORT, 0xDA, ">H"), (LONG, 0xDB, ">I")]
BINARIES = [(BYTE, 0xC4, ">B"), (SHORT, 0xC5, ">H"), (LONG, 0xC6, ">I")]
ARRAYS = [(SHORT, 0xDC, ">H"), (LONG, 0xDD, ">I")]
MAPS = [(SHORT, 0xDE, ">H"), (LONG, 0xDF, ">I")]


def pack(value):
    if isinstance(value, Raw):
        return bytes(value)
    if isinstance(value, Text):
        return head(len(value), (0xA0, 32), TEXTS) + value
    if isinstance(value, str):
        return pack(Text(value.encode()))
    if isinstance(value, bytes):
        return head(len(value), None, BINARIES) + value
    if isinstance(value, int):
        return struct.pack(">Bq", 0xD3, value) if value < 0 else head(value, (0, 128), NUMBERS)
    if isinstance(value, dict):
        return head(len(value), (0x80, 16), MAPS) + b"".join(pack(key) + pack(each) for key, each in value.items())
    return head(len(value), (0x90, 16), ARRAYS) + b"".join(map(pack, value))
