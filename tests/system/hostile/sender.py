# SPDX-License-Identifier: Apache-2.0
"""A sender made from docs/FORMAT.md alone: it shares no code with millrace, so that what both understand is what is written there.

    with Sender(worker, probe_hello("an-app")) as sender:
        sender.data(DICT, pack([...]))
        sender.data(CHUNKS, chunk(...))
        sender.wait_acknowledged()
        sender.bye()
"""
import ctypes
import os
import socket
import struct
import time

from msgpack import pack

HELLO, WELCOME, ACK, ERROR, HEARTBEAT, MOVE, BYE, SETTLE, ASK, ANSWER, WANTED, RESUME, OFFER = range(1, 14)
DICT, CHUNKS, DELTA = 16, 17, 18
FORMAT, VERSION, LIMIT, CHECKSUM, TOKEN, SEQUENCE, STATE, BUSY, LOOP, INTERNAL = range(1, 11)  # codes of ERROR
FINISHED, MOVING, DRAINING = range(3)  # reasons of BYE
COMPRESSED = 1  # flag of a frame
HEADER = struct.Struct("<4sBBHIIQ")
SECONDS = 60
BEAT_S = 1

XXHASH = ctypes.CDLL("libxxhash.so.0")
XXHASH.XXH3_64bits_withSeed.restype = ctypes.c_uint64
XXHASH.XXH3_64bits_withSeed.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]
ZSTD = ctypes.CDLL("libzstd.so.1")
ZSTD.ZSTD_compress.restype = ctypes.c_size_t
ZSTD.ZSTD_compress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


XXHASH.XXH3_128bits.restype = Hash128
XXHASH.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


class Ended(Exception):
    """The receiver has closed the connection."""


def hash64(data, seed=0):
    return XXHASH.XXH3_64bits_withSeed(data, len(data), seed)


def id_of(data):
    """The id that section 7 makes of these bytes."""
    made = XXHASH.XXH3_128bits(data, len(data))
    return struct.pack(">QQ", made.high, made.low)


def compress(data):
    out = ctypes.create_string_buffer(len(data) + 65536)
    return out.raw[:ZSTD.ZSTD_compress(out, len(out), data, len(data), 1)]


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def zigzag(number):
    return varint(2 * number if number >= 0 else -2 * number - 1)


def frame(kind, payload=b"", sequence=0, flags=0, version=1, magic=b"MLRC", length=None, checksum=None):
    """With a checksum that is right, whatever else is not."""
    length = len(payload) if length is None else length
    if checksum is None:
        unsummed = HEADER.pack(magic, version, kind, flags, length, 0, sequence)
        checksum = hash64(payload, hash64(unsummed)) & 0xFFFFFFFF
    return HEADER.pack(magic, version, kind, flags, length, checksum, sequence) + payload


def compressed_payload(payload, size=None):
    """`size`: what it claims to be when expanded."""
    return struct.pack("<I", len(payload) if size is None else size) + compress(payload)


def hello(role, level, **more):
    return {"sender": os.urandom(16), "role": role, "level": level, "oldest": 1} | more


def probe_hello(app, base_ns=None, clock=None, source=None, **more):
    """Its clock ticks in ns, from `base_ns` on."""
    base_ns = base_ns or time.time_ns()
    ticks = {"kind": "tsc", "mult": 1, "shift": 0, "ticks": 0, "realtime_ns": base_ns} | (clock or {})
    about = {"host": "host", "pid": os.getpid(), "app": app, "start_ns": base_ns, "clock": ticks} | (source or {})
    return hello("probe", 0, **({"source": about} | more))


def worker_hello(level=1, **more):
    return hello("worker", level, **more)


def custody_of(**more):
    """What HELLO says of custody when it is the first connection."""
    return {"custodian": bytes(16), "epoch": 0, "acked": 0, "sent": 0, "attempt": 1, "shown": 0} | more


def settle(sequence):
    return frame(SETTLE, struct.pack("<Q", sequence))


def bye(reason=FINISHED):
    return frame(BYE, bytes([reason]) + bytes(7))


class Connection:
    """Frames to a server and back. What came is in kinds, error (code, text), acknowledged."""

    def __init__(self, server):
        host, port = server.ready["listen"].rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=SECONDS)
        self.received = b""
        self.kinds = []
        self.error = None
        self.acknowledged = 0

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as end:
            raise Ended from end

    def take_frame(self):
        """One whole frame of those that were received: (kind, payload); or None."""
        if len(self.received) < HEADER.size:
            return None
        magic, version, kind, flags, length, checksum, sequence = HEADER.unpack_from(self.received)
        size = HEADER.size + length
        if len(self.received) < size:
            return None
        payload = self.received[HEADER.size:size]
        self.received = self.received[size:]
        if frame(kind, payload, sequence, flags, version, magic)[12:16] != struct.pack("<I", checksum):
            raise ValueError(f"a frame of type {kind} from the server has a wrong checksum")
        self.note(kind, payload)
        return kind, payload

    def note(self, kind, payload):
        if kind != HEARTBEAT:
            self.kinds.append(kind)
        if kind == ACK:
            self.acknowledged = max(self.acknowledged, struct.unpack_from("<Q", payload)[0])
        elif kind == ERROR:
            code, size = struct.unpack_from("<HH", payload)
            self.error = code, payload[4:4 + size].decode()

    def next(self, seconds=SECONDS):
        """The next frame; None when none comes in time."""
        end = time.monotonic() + seconds
        while not (found := self.take_frame()):
            self.socket.settimeout(max(end - time.monotonic(), 0.001))
            try:
                data = self.socket.recv(1 << 20)
            except TimeoutError:
                return None
            except ConnectionResetError as end_of_it:
                raise Ended from end_of_it
            if not data:
                raise Ended
            self.received += data
        return found

    def wait(self, is_over, what):
        """Until is_over(); heartbeats go out meanwhile."""
        end = time.monotonic() + SECONDS
        while not is_over():
            if time.monotonic() > end:
                raise ValueError(f"no {what} within {SECONDS} s; came: {self.kinds} {self.error}")
            if not self.next(BEAT_S):
                self.send(frame(HEARTBEAT))

    def wait_end(self):
        """Until the receiver closes, whether this side may still write or not."""
        end = time.monotonic() + SECONDS
        try:
            while time.monotonic() < end:
                self.next(end - time.monotonic())
        except Ended:
            return
        raise ValueError(f"the connection does not end within {SECONDS} s; came: {self.kinds} {self.error}")


class Sender(Connection):
    """One that is welcome: numbers its frames, and settles what is acknowledged where custody is kept."""

    def __init__(self, server, says):
        super().__init__(server)
        self.says = says
        self.sequence = says["oldest"] - 1
        self.send(frame(HELLO, pack(says)))
        self.wait(lambda: WELCOME in self.kinds, "WELCOME")

    def note(self, kind, payload):
        super().note(kind, payload)
        if kind == ACK and "custody" in self.says:
            self.send(settle(self.acknowledged))

    def data(self, kind, payload, packed=False):
        self.sequence += 1
        payload = compressed_payload(payload) if packed else payload
        self.send(frame(kind, payload, self.sequence, COMPRESSED if packed else 0))

    def wait_acknowledged(self, left=0):
        """Until no more than `left` frames are on their way."""
        self.wait(lambda: self.acknowledged >= self.sequence - left, f"ACK of {self.sequence}")

    def bye(self, reason=FINISHED):
        """Says so and waits for the end."""
        self.send(bye(reason))
        self.wait_end()
