# SPDX-License-Identifier: Apache-2.0
"""A sender that keeps to the format, beside those that do not: what it sends must all be there at the end."""
import os
import threading
import time

from events import EXIT, FIRST, LAST, SOURCE_ENDS, chunk, event, module, site, stream
from msgpack import pack
from sender import CHUNKS, DICT, Sender, custody_of, probe_hello
from system import check

APP = "honest"
TREES = 200  # a round: call trees of two calls
EVENTS = 4 * TREES
NS = 10  # from one event to the next
PAUSE_S = 0.02


class Honest:
    """with Honest(worker) as honest: ...; honest.finish(); honest.check(master)"""

    def __init__(self, worker):
        self.worker = worker
        self.id = os.urandom(16)
        self.rounds = 0
        self.failure = None
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            self.send_until_over()
        except Exception as failure:  # pylint: disable=broad-except
            self.failure = failure

    def send_until_over(self):
        start_ns = time.time_ns()
        now = 0
        with Sender(self.worker, probe_hello(APP, start_ns, sender=self.id, custody=custody_of())) as sender:
            sender.data(DICT, pack([module(), stream()]))
            while not self.is_over.is_set():
                now = max(now, time.time_ns() - start_ns)
                words, start = [], now
                for _ in range(TREES):
                    words += [event(site(1), now), event(site(2), now + NS), event(site(2), now + 2 * NS, EXIT),
                              event(site(1), now + 3 * NS, EXIT)]
                    now += 4 * NS
                sender.data(CHUNKS, chunk(words, first=self.rounds * EVENTS, time=start, flags=0 if self.rounds else FIRST))
                self.rounds += 1
                while sender.next(PAUSE_S):
                    pass
            sender.data(CHUNKS, chunk(first=self.rounds * EVENTS, time=now, flags=LAST | SOURCE_ENDS))
            sender.wait_acknowledged()
            sender.bye()

    def finish(self):
        self.is_over.set()
        self.thread.join()
        check(not self.failure, f"the honest sender was disturbed: {self.failure!r}")
        check(self.rounds > 0, "the honest sender sent nothing")

    def check(self, master):
        """When the worker has ended: all of it is at the master."""
        streams = master.get(f"/api/v1/ledger?source={self.id.hex()}")["streams"]
        check(len(streams) == 1, f"the honest sender has one stream, not {streams}")
        ledger = streams[0]
        events = self.rounds * EVENTS
        check(ledger["written"] == ledger["reduced"] == events and ledger["balanced"],
              f"the honest sender's {events} events: {ledger}")
        entries = [row for row in master.get("/api/v1/entries?limit=1000")["entries"] if row["app"] == APP]
        traces = sum(row["count"] for row in entries)
        check(len(entries) == 1 and traces == self.rounds * TREES, f"{traces} traces of {self.rounds * TREES}: {entries}")
