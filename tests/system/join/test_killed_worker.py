# SPDX-License-Identifier: Apache-2.0
"""Workers are killed in the middle of requests that cross three programs, and started again on their spools: every request is one
trace whose parts have their edges, incomplete at most where a call tree of it was open."""
import os
import random
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
import test_services as services  # pylint: disable=wrong-import-position
from system import check

KILLS = 12
REQUESTS = 200  # of a client
SEED = 5


class Victim:
    """A worker of level 1 at one address, with one spool."""

    def __init__(self, chain, master, number):
        self.start = lambda: chain.worker(master.endpoint, "--outer", "main,run_client,run_server", "--spool",
                                          str(chain.folder / f"spool{number}"), listen=self.address)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.worker = self.start()

    def kill(self):
        self.worker.process.kill()
        self.worker.process.wait()
        self.worker = self.start()


class Asking(threading.Thread):
    """One client after the other, until it is stopped."""

    def __init__(self, chain, endpoint, port):
        super().__init__()
        self.client = lambda: services.client(chain, endpoint, REQUESTS, port)
        self.is_over = threading.Event()
        self.asked = 0

    def run(self):
        while not self.is_over.is_set():
            self.asked += self.client()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.join()


def kill_them(victims):
    """At moments of no request's choosing."""
    moments = random.Random(SEED)
    for number in range(KILLS):
        time.sleep(moments.uniform(0.1, 0.6))
        victims[number % len(victims)].kill()


def test():
    with system.System() as chain:
        system.compile_program(chain.folder / "service", [system.SOURCE / "tests/system/join/service.c"])
        master = chain.master("--join-timeout", "30s")
        victims = [Victim(chain, master, number) for number in range(2)]
        endpoints = [victim.worker.endpoint for victim in victims]
        backend = services.Service(chain, "backend", endpoints[0])
        frontend = services.Service(chain, "frontend", endpoints[1], backend.port)
        with Asking(chain, endpoints[0], frontend.port) as asking:
            kill_them(victims)
        frontend.end()
        backend.end()
        for victim in victims:
            chain.stop(victim.worker)
        rows, waiting = services.shapes(master)
        print({name: (row["ok"], row["failed"], row["incomplete"]) for name, row in rows.items()})
        check(waiting == 0 and not any("missing" in name for name in rows), f"{waiting} parts wait for others, of {sorted(rows)}")
        sums = services.sums(master)
        check(sum(sums) == asking.asked, f"{sums} of {asking.asked} requests")
        check(sums[2] <= 2 * KILLS, f"{sums[2]} are incomplete")  # the client's and the backend's may be of two requests
        ledger = master.get("/api/v1/ledger")["ledger"]
        check(ledger["balanced"] and ledger["lost"] == 0, f"ledger {ledger}")
        chain.stop(master)


if __name__ == "__main__":
    system.main(test)
