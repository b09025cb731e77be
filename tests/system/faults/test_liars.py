# SPDX-License-Identifier: Apache-2.0
"""What a chain is told that cannot be: gaps in sequences, acknowledgements never given, another version, silence, loops. Each is refused
in one clear line, to the one who said it and in the log, and harms nobody else: a program that runs after it is counted exactly.

(Two masters on one store: tests/system/bad_input. Each rule by itself: tests/unit/net/test_conn.c, test_hello.c, worker/test_greeter.c.)
"""
import ctypes
import os
import re
import select
import socket
import struct
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

HEADER = struct.Struct("<IBBHIIQ")
HELLO, ERROR, SETTLE, DATA = 1, 4, 8, range(16, 19)
SECONDS = 60
CALLS = 1 + 3 * 100000  # of tests/system/bad_input/program.c
XXH = ctypes.CDLL("libxxhash.so.0").XXH3_64bits_withSeed
XXH.restype, XXH.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]


def frames(data):
    """(type, sequence, bytes) of each whole frame."""
    while len(data) >= HEADER.size and len(data) >= HEADER.size + HEADER.unpack_from(data)[4]:
        _, _, kind, _, length, _, sequence = HEADER.unpack_from(data)
        yield kind, sequence, data[:HEADER.size + length]
        data = data[HEADER.size + length:]


def forge(frame, version=None, sequence=None, kind=None, payload=None):
    """The frame with other words in it, and a checksum that is right."""
    magic, old_version, old_kind, flags, _, _, old_sequence = HEADER.unpack_from(frame)
    payload = frame[HEADER.size:] if payload is None else payload
    words = [magic, old_version if version is None else version, old_kind if kind is None else kind, flags, len(payload), 0,
             old_sequence if sequence is None else sequence]
    head = HEADER.pack(*words)
    words[5] = XXH(payload, len(payload), XXH(head, len(head), 0)) & 0xFFFFFFFF
    return HEADER.pack(*words) + payload


def record(worker, run):
    """The frames that a program sends when all is well."""
    seen = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def relay():
            sender, _ = listener.accept()
            with sender, connect(worker) as receiver:
                while True:
                    ready, _, _ = select.select([sender, receiver], [], [])
                    data = ready[0].recv(1 << 16)
                    if not data:
                        return
                    (receiver if ready[0] is sender else sender).sendall(data)
                    if ready[0] is sender:
                        seen.append(data)
        thread = threading.Thread(target=relay)
        thread.start()
        run("tcp://127.0.0.1:%d" % listener.getsockname()[1])
        thread.join()
    return list(frames(b"".join(seen)))


def connect(server):
    host, port = server.ready["listen"].rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=SECONDS)


def answer(peer):
    """All that comes until the end: the ERROR frame's text."""
    data = b""
    try:
        while more := peer.recv(1 << 16):
            data += more
    except ConnectionResetError:
        pass
    texts = [frame[HEADER.size + 4:].decode() for kind, _, frame in frames(data) if kind == ERROR]
    return texts[0] if texts else None


def lie(worker, what, words, *said):
    with connect(worker) as peer:
        peer.sendall(b"".join(said))
        text = answer(peer)
    print(f"{what}: {text}")
    check(text is not None and re.search(words, text), f"{what}: was told {text!r}, not {words!r}")
    check(text in worker.log.read_text(), f"{what}: the log does not say why")


def lies(worker, taken):
    hello = next(frame for kind, _, frame in taken if kind == HELLO)
    first = next(frame for kind, sequence, frame in taken if kind in DATA and sequence == 1)
    # Another sender each time: one that is known already would be in doubt.
    source = iter(range(1, 100))
    incarnation = re.search(rb"\xc4\x10(.{16})", hello, re.DOTALL).group(1)

    def greeting():
        return forge(hello, payload=hello[HEADER.size:].replace(incarnation, bytes(15) + bytes([next(source)])))

    lie(worker, "a gap in the sequence", "sequence|order|expected", greeting(), forge(first, sequence=7))
    lie(worker, "a settlement of nothing", "SETTLE|settle|acknowledged", greeting(),
        forge(hello, kind=SETTLE, payload=struct.pack("<Q", 1 << 40), sequence=0))
    lie(worker, "an older version", "version", forge(hello, version=0))
    lie(worker, "data before HELLO", "HELLO", first)
    with connect(worker) as peer:
        peer.sendall(greeting())
        system.wait_until(lambda: "silent for" in worker.log.read_text(), SECONDS, "a sender that is silent is left")


def loops(chain):
    """Workers that forward to one of their own level, and to themselves."""
    first = chain.worker("tcp://127.0.0.1:1")
    second = chain.worker(first.endpoint)
    system.wait_until(lambda: re.search("refused.*--level", second.log.read_text()), SECONDS, "the same level is refused")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    itself = chain.worker(f"tcp://127.0.0.1:{port}", listen=f"127.0.0.1:{port}", level=2)
    system.wait_until(lambda: re.search("refused.*--forward", itself.log.read_text()), SECONDS, "itself is refused")
    for server in (second, itself):
        line = next(line for line in server.log.read_text().splitlines() if "refused" in line)
        print(f"a loop: {line}")


def test():
    with system.System() as chain:
        master = chain.master()
        worker = chain.worker(master.endpoint, "--source-grace", "1s")
        program = system.compile_program(chain.folder / "program", [system.SOURCE / "tests/system/bad_input/program.c"])

        def run(endpoint):
            subprocess.run([program], env=chain.environment(MILLRACE_ENDPOINT=endpoint, MILLRACE_POLICY="block",
                                                            MILLRACE_BLOCK_TIMEOUT="60s"), stdout=subprocess.DEVNULL, check=False)

        lies(worker, record(worker, run))
        loops(chain)
        run(worker.endpoint)
        chain.stop(worker)
        sources = master.get("/api/v1/ledger")["sources"]
        whole = [row for row in sources if row["ledger"]["written"] == 2 * CALLS and row["ledger"]["balanced"]]
        check(len(whole) == 2, f"the programs before and after are not counted exactly: {[row['ledger'] for row in sources]}")
        chain.stop(master)


if __name__ == "__main__":
    system.main(test)
