# SPDX-License-Identifier: Apache-2.0
"""The memory of a level-1 worker does not grow with the events: its RSS after 500 million events is at most 1.05 times
its RSS after 50 million. rss_sender (sender.c) is a probe without a program; what it sends is like SQLite's benchmark
(pattern.h): first with long traces of 64 shapes, then with ever new ones and tables that are too small for them, so that
they fill and are forgotten again and again (half as many events)."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rss  # pylint: disable=wrong-import-position
import system  # pylint: disable=wrong-import-position
from system import check

MILLION = 1_000_000
MARKS = [10 * MILLION, 50 * MILLION, 200 * MILLION, 500 * MILLION]
FIRST = 1  # the mark to compare with
LONG_SHAPES = "64"
NEW_MARKS = [50 * MILLION, 250 * MILLION]
NEW_LIMITS = ["--max-shapes", "256", "--max-nodes", "8192", "--new-nodes", "1000000000"]


def read_mark(sender):
    line = sender.stdout.readline()
    check(line, "rss_sender ended early")
    events, traces = line.split()
    return int(events), int(traces)


def send(chain, worker, stats, long_shapes, marks):
    """[(events, RSS in KiB)] at each mark, and the numbers of events and traces sent in all."""
    sender = subprocess.Popen([system.BIN / "rss_sender", worker.endpoint, long_shapes, *map(str, marks)], text=True,
                              env=chain.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        found = []
        for _ in marks:
            events, _ = read_mark(sender)
            rss.wait_quiet(stats, events)
            found.append((events, worker.rss_kib()))
            sender.stdin.write("\n")
            sender.stdin.flush()
        total = read_mark(sender)
        check(sender.wait(60) == 0, f"rss_sender ended with {sender.returncode}")
        return found, total
    finally:
        sender.kill()
        sender.wait()


def run(long_shapes, marks, *options):
    """The marks, and the worker's counters."""
    with system.System() as chain:
        master = chain.master()
        stats = chain.folder / "worker.json"
        worker = chain.worker(master.endpoint, "--stats-file", str(stats), "--log-level", "warn", *options)
        found, (events, traces) = send(chain, worker, stats, long_shapes, marks)
        chain.stop(worker)
        chain.stop(master)
        counters = json.loads(stats.read_text())["counters"]
    print(f"sent {events:,} events in {traces:,} traces, reduced {counters['reduced']:,}, tables forgotten "
          f"{counters['reduce_tables_forgotten']} times")
    check(counters["reduced"] == events, "the worker did not reduce what was sent")
    return found, counters


def test():
    found, _ = run(LONG_SHAPES, MARKS)
    rss.check_growth(found[FIRST:])
    found, counters = run("0", NEW_MARKS, *NEW_LIMITS)
    check(counters["reduce_tables_forgotten"] >= 10, "the tables were never full: the limits are not tested")
    rss.check_growth(found)


if __name__ == "__main__":
    system.main(test)
