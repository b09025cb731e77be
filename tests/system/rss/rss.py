# SPDX-License-Identifier: Apache-2.0
"""RSS of a worker in the quiet moments of a run: when all of a burst is reduced and acknowledged above, and the worker has
given back what only the burst needed."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position

FACTOR = 1.05
QUIET_NS = 10_000_000_000  # after which a worker has given back what a burst took


def wait_quiet(stats, events=None, quiet_ns=QUIET_NS):
    """Until everything (`events` of them, if told) is reduced and acknowledged above, and has been so for quiet_ns. Returns
    the number of events."""
    began, before = None, None

    def is_quiet():
        nonlocal began, before
        told = json.loads(stats.read_text())
        taken = told["counters"]["reduced"] + told["counters"]["held"]
        if taken != (events or before) or told["forward"]["held"] != 0:
            began, before = None, taken
            return False
        began = began or told["uptime_ns"]
        return told["uptime_ns"] - began >= quiet_ns

    system.wait_until(is_quiet, 60, f"{events or 'all'} events reduced and acknowledged above")
    return events or before


def check_growth(found):
    """found: [(events, RSS in KiB)], from the one to compare with to the last."""
    for at, kib in found:
        print(f"RSS of the worker after {at:,} events: {kib:,} KiB")
    ratio = found[-1][1] / found[0][1]
    system.check(ratio <= FACTOR, f"{ratio:.3f} times from {found[0][0]:,} to {found[-1][0]:,} events, more than {FACTOR}")
    print(f"{ratio:.3f} times, at most {FACTOR} allowed")
