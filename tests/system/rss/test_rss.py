# SPDX-License-Identifier: Apache-2.0
"""The memory of a level-1 worker does not grow with the events: its RSS after 500 million events is at most 1.05 times
its RSS after 50 million. rss_sender (sender.c) is a probe without a program; what it sends is like SQLite's benchmark
(pattern.h), with ever new shapes. Both numbers are taken while everything sent is acknowledged."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

MARKS = [50_000_000, 500_000_000]
FACTOR = 1.05


def read_mark(sender):
    line = sender.stdout.readline()
    check(line, "rss_sender ended early")
    events, traces = line.split()
    return int(events), int(traces)


def send(chain, worker):
    """[(events, RSS in KiB)] at each mark, and the numbers of events and traces sent in all."""
    sender = subprocess.Popen([system.BIN / "rss_sender", worker.endpoint, *map(str, MARKS)], text=True,
                              env=chain.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        found = []
        for _ in MARKS:
            events, _ = read_mark(sender)
            found.append((events, worker.rss_kib()))
            sender.stdin.write("\n")
            sender.stdin.flush()
        total = read_mark(sender)
        check(sender.wait(60) == 0, f"rss_sender ended with {sender.returncode}")
        return found, total
    finally:
        sender.kill()
        sender.wait()


def test():
    with system.System() as chain:
        master = chain.master()
        stats = chain.folder / "worker.json"
        worker = chain.worker(master.endpoint, "--stats-file", str(stats), "--log-level", "warn")
        found, (events, traces) = send(chain, worker)
        chain.stop(worker)
        chain.stop(master)
        reduced = json.loads(stats.read_text())["counters"]["reduced"]
        for at, rss in found:
            print(f"RSS of the worker after {at:,} events: {rss:,} KiB")
        print(f"sent {events:,} events in {traces:,} traces, reduced {reduced:,}")
        check(reduced == events, "the worker did not reduce what was sent")
        check(found[-1][1] <= FACTOR * found[0][1], f"{found[-1][1] / found[0][1]:.3f} times, more than {FACTOR}")
        print(f"{found[-1][1] / found[0][1]:.3f} times, at most {FACTOR} allowed")


if __name__ == "__main__":
    system.main(test)
