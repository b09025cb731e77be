# SPDX-License-Identifier: Apache-2.0
"""A link of 100 ms there and back: a sender begins with little credit, and is told more, as its worker has to wait for it otherwise.

The proxy passes on what comes 50 ms later, and reads the credit in what goes back.
"""
import contextlib
import os
import queue
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import wire as lib  # pylint: disable=wrong-import-position
from wire import check, system  # pylint: disable=wrong-import-position

DELAY_S = 0.05
HEADER = struct.Struct("<IBBHIIQ")
ACK = 3
FIRST, MOST = 512 << 10, 2 << 20  # worker/lane_credit.c; --credit
ROUNDS = 60000  # 58 MB of words
TRIES = 3


class Proxy:
    def __init__(self, endpoint):
        self.target = endpoint.removeprefix("tcp://").rsplit(":", 1)
        self.credits = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            near, _ = self.listener.accept()
            far = socket.create_connection((self.target[0], int(self.target[1])))
            for source, target, see in ((near, far, None), (far, near, self.see)):
                passing = queue.Queue()
                threading.Thread(target=self.take, args=(source, passing, see), daemon=True).start()
                threading.Thread(target=self.give, args=(target, passing), daemon=True).start()

    @staticmethod
    def take(source, passing, see):
        rest = b""
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 18):
                passing.put((time.monotonic() + DELAY_S, data))
                if see:
                    rest = see(rest + data)
        passing.put((0, b""))

    @staticmethod
    def give(target, passing):
        with contextlib.suppress(OSError):
            while (item := passing.get())[1]:
                time.sleep(max(0, item[0] - time.monotonic()))
                target.sendall(item[1])
            target.shutdown(socket.SHUT_WR)

    def see(self, data):
        """Takes the frames off the front; what is left."""
        while len(data) >= HEADER.size:
            _, _, kind, _, length, _, _ = HEADER.unpack_from(data)
            if len(data) < HEADER.size + length:
                break
            if kind == ACK:
                self.credits.append(struct.unpack_from("<Q", data, HEADER.size + 8)[0])
            data = data[HEADER.size + length:]
        return data


def credits_told():
    with system.System() as setup:
        master = setup.master()
        worker = setup.worker(master.endpoint, "--credit", str(MOST))
        proxy = Proxy(worker.endpoint)
        run = setup.run([lib.build(setup), "count", str(ROUNDS)], endpoint=proxy.endpoint, MILLRACE_ENCODING="words",
                        MILLRACE_BLOCK_TIMEOUT="60s", MILLRACE_EXIT_TIMEOUT="60s")
        print(lib.link_of(run))
        setup.stop(worker)
        setup.stop(master)
        lib.check_ledger(lib.report(master.store)["ledger"])
        return [credit for credit, before in zip(proxy.credits, [0] + proxy.credits) if credit != before]


def test():
    for _ in range(TRIES):
        told = credits_told()
        print("credits told:", told)
        if told[0] != MOST:  # else the proxy's own handshake took a millisecond, on a busy machine: that link is long
            break
    check(told[0] <= FIRST, f"the first credit: {told}")
    check(FIRST < max(told) <= MOST, f"most that was told: {told}")


if __name__ == "__main__":
    system.main(test)
