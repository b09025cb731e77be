# SPDX-License-Identifier: Apache-2.0
"""How long until others have what a program recorded just after its worker died, and what its calls took meanwhile.

    test_failover.py [--rounds N] [--seed N] [--calm S]

One fault at a time befalls a worker. For each program, the time until the events that it had written a moment later are acknowledged by
somebody; the longest is the one whose worker it was. The same for the workers of level 1 and the frames they held, when it was one
of level 2. Half of the programs go through HAProxy, the others have the four addresses. Then the time that calls took (a batch of 16
or 33 of them), while it lasted and in the seconds before. Times are printed, none is asserted; the accounts are, at the end.
"""
import argparse
import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import account  # pylint: disable=wrong-import-position
import faults  # pylint: disable=wrong-import-position
import test_faults as lib  # pylint: disable=wrong-import-position
from cast import HAS_SPOOL, check, system  # pylint: disable=wrong-import-position
from hosts import Absent  # pylint: disable=wrong-import-position

WAIT_S, AFTER_S = 60, 1
MOMENT_S = {1: 0.05, 2: 0.25}
KINDS = [faults.KillWorker1, faults.KillWorker2, faults.Rolling, faults.LinkCut, faults.Deaf, faults.Stop]


def latency(programs):
    """Bins of the time of a call, all programs' together."""
    return [sum(bins) for bins in zip(*(program.life().told().latency for program in programs))]


def quantile_ns(bins, share):
    """The upper end of the bin in which it lies; eight bins an octave."""
    wanted = share * sum(bins)
    for i, count in enumerate(bins):
        wanted -= count
        if wanted <= 0 and count:
            return (8 + i % 8 + 1) * 2 ** (i // 8 - 3)
    return 0


class Round:
    """One fault, from the moment before it until all is acknowledged."""

    def __init__(self, stage, member):
        self.stage, self.member = stage, member
        self.level = 1 if member.kind == "worker1" else 2
        self.wanted, self.took = {}, {}

    def senders(self):
        return self.stage.programs if self.level == 1 else self.stage.workers(1)

    def counts(self, sender):
        """What it has given to be sent, and of that what is acknowledged: events, or frames."""
        if self.level == 1:
            told = sender.life().told()
            return told.written, told.acked
        acked = sender.metric("forward_acked_total")
        return acked + sender.metric("forward_held"), acked

    def watch(self, since):
        """What was made within a moment of the fault is what has to find another way."""
        time.sleep(MOMENT_S[self.level])
        self.wanted = {sender: self.counts(sender)[0] for sender in self.senders()}
        end = since + WAIT_S
        while len(self.took) < len(self.wanted):
            self.stage.tend()
            for sender, wanted in self.wanted.items():
                if sender not in self.took and self.counts(sender)[1] >= wanted:
                    self.took[sender] = time.monotonic() - since
            check(time.monotonic() < end, f"{self.member.name}: not acknowledged within {WAIT_S} s")
            time.sleep(0.005)

    def through(self, is_balanced):
        took = [seconds for sender, seconds in self.took.items()
                if self.level == 2 or (sender.endpoint == self.stage.balancer.endpoint) == is_balanced]
        return max(took)


def play(stage, kind, member, draw, calm_s):
    stage.wait(lambda: all(m.is_alive() for m in stage.members), 60, "everybody is alive")
    before = latency(stage.programs)
    time.sleep(calm_s)
    calm = latency(stage.programs)
    fault, this = kind(stage, member, draw), Round(stage, member)
    fault.begin(time.monotonic())
    since = time.monotonic()
    member.due = None if member.due is not None and member.process is None else member.due  # a killed one stays dead
    this.watch(since)
    time.sleep(AFTER_S)
    during = latency(stage.programs)
    fault.end(time.monotonic())
    if member.due is None:
        member.due = time.monotonic()
    stage.wait(fault.is_over, 240, "the end of the fault")
    difference = lambda a, b: [y - x for x, y in zip(a, b)]  # pylint: disable=unnecessary-lambda-assignment
    return this, difference(before, calm), difference(calm, during)


def test():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--calm", type=float, default=3)  # seconds before each fault, for what calls take then
    options = parser.parse_args()
    options.full, options.custody, options.keep = False, "register", False
    draw = random.Random(options.seed)
    with lib.staged(options) as stage:
        for program in stage.programs[1::2]:
            program.endpoint = ",".join(worker.endpoint for worker in stage.workers(1))
        lib.begin(stage)
        print("fault                        level    HAProxy  addresses   a batch of calls, p99 before, while (p99.9)")
        for kind in KINDS:
            if not issubclass(kind, faults.Kill) and kind.absent(stage):
                print(f"{kind.name:28} absent: {kind.absent(stage)}")
                continue
            for level in (1, 2):
                if f"worker{level}" not in kind.targets:
                    continue
                for _ in range(options.rounds):
                    this, calm, during = play(stage, kind, draw.choice(stage.workers(level)), draw, options.calm)
                    times = ", ".join(f"{quantile_ns(bins, share) / 1000:.1f} us" for bins, share in
                                      ((calm, 0.99), (during, 0.99), (calm, 0.999), (during, 0.999)))
                    print(f"{kind.name:28} {level:5} {this.through(True):8.2f} s {this.through(False):8.2f} s   {times}", flush=True)
        lib.end(stage)
        wrong = lib.settle(stage) if HAS_SPOOL else []  # what a killed worker held without one is lost
        lib.drain(stage, stage.workers(1), stage.workers(2), [stage.master])
        check(not wrong, "the accounts differ:\n" + "\n".join(wrong))


if __name__ == "__main__":
    try:
        system.main(test)
    except Absent as absent_here:
        print(f"skipped: {absent_here}")
        sys.exit(system.SKIP)
