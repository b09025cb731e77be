# SPDX-License-Identifier: Apache-2.0
"""What a level refuses, each with one clear line: a worker that sends to itself, workers that send to each other, a peer of another version
of the format, a second master over one store. None of it harms a program that is traced meanwhile."""
import os
import signal
import socket
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import level  # pylint: disable=wrong-import-position
from level import check, system  # pylint: disable=wrong-import-position

HEADER = struct.Struct("<4sBBHIIQ")
ERROR, HELLO = 4, 1
VERSION = 2  # of the codes of ERROR


def wait_log(server, text):
    system.wait_until(lambda: text in server.log.read_text(), level.WAIT_S, f"{server.name} says {text!r}")


def end(chain, server):
    """It has nowhere to send to, and nothing to send."""
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(system.STOP_S)
    check(server in chain.servers, "a server of the chain")


def loops(chain):
    ports = [level.free_port() for _ in range(3)]
    alone = chain.worker(f"tcp://127.0.0.1:{ports[0]}", listen=f"127.0.0.1:{ports[0]}")
    wait_log(alone, "refused (9): this worker sends to itself: check its --forward")
    pair = [chain.worker(f"tcp://127.0.0.1:{ports[2 - i]}", listen=f"127.0.0.1:{ports[1 + i]}") for i in range(2)]
    for one in pair:
        wait_log(one, "refused (9): a worker of level 1 cannot send to one of level 1: give the receiver a higher --level")
    for one in [alone, *pair]:
        end(chain, one)


def read_all(connection):
    answer = b""
    while part := connection.recv(4096):
        answer += part
    return answer


def version(at):
    """A peer that speaks the next version; the checksum of its frame nobody looks at."""
    host, port = at.ready["listen"].rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(HEADER.pack(b"MLRC", 2, HELLO, 0, 4, 0, 0) + b"\x80\0\0\0")
        answer = read_all(connection)
    magic, spoken, kind, _, size, _, _ = HEADER.unpack_from(answer)
    check((magic, spoken, kind) == (b"MLRC", 1, ERROR) and len(answer) == HEADER.size + size, f"answer {answer}")
    code, length = struct.unpack_from("<HH", answer, HEADER.size)
    text = answer[HEADER.size + 4:HEADER.size + 4 + length].decode()
    print(f"version 2: code {code}, {text!r}")
    check(code == VERSION and "version 2" in text and "speaks 1" in text, text)
    wait_log(at, text)


def second_master(master):
    run = subprocess.run([system.MILLRACE, "master", "--store", str(master.store), "--listen", "tcp://127.0.0.1:0", "--http", "127.0.0.1:0"],
                         capture_output=True, text=True, timeout=60, check=False)
    check(run.returncode != 0 and "in use by another master" in run.stderr and run.stderr.count("\n") == 1, f"{run.returncode}: {run.stderr}")


def test():
    with system.System() as chain:
        master = chain.master()
        worker = chain.worker(master.endpoint)
        programs = level.Programs(chain, level.STEADY)
        try:
            programs.start(worker.endpoint)
            loops(chain)
            version(worker)
            second_master(master)
            printed = programs.end()
        finally:
            programs.kill()
        chain.stop(worker)
        chain.stop(master)
        level.check_counts(master, printed)


if __name__ == "__main__":
    system.main(test)
