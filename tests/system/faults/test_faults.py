# SPDX-License-Identifier: Apache-2.0
"""A chain under faults: six programs, HAProxy, four workers, two above them and a master, each a host of its own (a namespace).

    test_faults.py [--full] [--seed N] [--each N] [--custody register|none]

While the programs run, faults befall hosts, drawn from a seed that is printed, each at a moment with data unacknowledged if there is one
within half a second. Then it becomes quiet, and the accounts are compared: calls per life of a program and function at the master are
what the program counted itself, minus what the ledger lists as lost; and never more. Last, a short run without the register
(--custody none) has to end with calls counted twice, or this test would find nothing.

Without a namespace to be had it is skipped; kinds of faults that this machine cannot make are told as absent.
"""
import argparse
import contextlib
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import account  # pylint: disable=wrong-import-position
import faults  # pylint: disable=wrong-import-position
from cast import Balancer, Master, Program, Worker, check, system  # pylint: disable=wrong-import-position
from hosts import Absent, Lan  # pylint: disable=wrong-import-position

PROGRAMS, DROPPING, LEVEL1, LEVEL2 = 6, 2, 4, 2
TURN_S = 0.02
SEEK_S = 0.5  # for unacknowledged data
END_S, QUIET_S = 240, 120
SANITIZED = os.environ.get("MR_SANITIZE")


def compile_shim(output):
    """Without the probe: what is started through it is not to have threads."""
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", str(system.SOURCE / "tests/system/faults/clock_step.c"), "-o", str(output)],
                   check=True)
    return output


class Stage:
    """All that runs, and where."""

    def __init__(self, lan, folder, options):
        self.lan, self.folder, self.is_full, self.load = lan, folder, options.full, 1 if SANITIZED else 3
        self.clock_shim = None if SANITIZED else compile_shim(folder / "clock_step.so")
        self.master = Master(self, lan.host("master"))
        more = ("--custody", options.custody, "--drain-timeout", "200s")
        upper = [Worker(self, lan.host(f"upper{i}"), 2, self.master.endpoint, more) for i in range(LEVEL2)]
        ends = [worker.endpoint for worker in upper]
        lower = [Worker(self, lan.host(f"lower{i}"), 1, ",".join(ends[i % 2:] + ends[:i % 2]), more) for i in range(LEVEL1)]
        self.balancer = Balancer(self, lan.host("balancer"))
        self.balancer.write(lower)
        self.programs = []
        for i in range(PROGRAMS):
            policy = "drop" if i < DROPPING else "block"
            self.programs.append(Program(self, lan.host(f"program{i}"), self.balancer.endpoint, policy))
        self.members = [self.master, *upper, *lower, self.balancer, *self.programs]

    def environment(self, **more):
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MILLRACE_")}
        return {**kept, **more}

    def workers(self, level):
        return [member for member in self.members if member.kind == f"worker{level}"]

    def tend(self):
        for member in self.members:
            member.tend(time.monotonic())

    def wait(self, condition, seconds, what):
        end = time.monotonic() + seconds
        while not condition():
            check(time.monotonic() < end, f"{what}: not within {seconds} s")
            self.tend()
            time.sleep(TURN_S)

    def close(self):
        for member in self.members:
            if member.process is not None and member.process.poll() is None:
                member.process.kill()
                member.process.wait()


class Driver:
    """Draws faults and has them happen, several at a time, none of two at one host."""

    def __init__(self, stage, seed, kinds, each, at_once):
        self.stage, self.random, self.at_once = stage, random.Random(seed), at_once
        self.waiting = [kind for kind in kinds for _ in range(each)]
        self.random.shuffle(self.waiting)
        self.active = []  # (when to end, fault)
        self.tally = {kind.name: [0, 0] for kind in kinds}  # happened, of them with data unacknowledged
        self.rss = {}

    def begin_one(self):
        """The first kind in the row that finds a member."""
        for i, kind in enumerate(self.waiting):
            members = kind.candidates(self.stage)
            if members:
                member = self.random.choice(members)
                fault = self.waiting.pop(i)(self.stage, member, self.random)
                end = time.monotonic() + SEEK_S
                while (pending := member.unacknowledged()) == 0 and time.monotonic() < end:
                    self.stage.tend()
                member.fault = fault
                fault.begin(time.monotonic())
                self.tally[kind.name][0] += 1
                self.tally[kind.name][1] += pending > 0
                self.active.append((time.monotonic() + fault.seconds, fault))
                print(f"{time.monotonic() - self.start:7.2f} s: {kind.name} of {member.name}, {fault.seconds:.1f} s, "
                      f"{pending} unacknowledged", flush=True)
                return

    def end_some(self):
        now = time.monotonic()
        for item in [item for item in self.active if item[0] <= now]:
            fault = item[1]
            if not getattr(fault, "is_ended", False):
                fault.end(now)
                fault.is_ended = True
            if fault.is_over() and fault.member.is_alive():
                fault.member.fault = None
                self.active.remove(item)

    def note_rss(self):
        for member in self.stage.members:
            self.rss[member.kind] = max(self.rss.get(member.kind, 0), member.rss_kib())

    def run(self):
        self.start = time.monotonic()
        pause = self.start
        while self.waiting or self.active:
            self.stage.tend()
            self.end_some()
            if self.waiting and len(self.active) < self.at_once and time.monotonic() >= pause:
                self.begin_one()
                self.note_rss()
                pause = time.monotonic() + self.random.expovariate(4)
            time.sleep(TURN_S)
        print(f"{sum(count for count, _ in self.tally.values())} faults in {time.monotonic() - self.start:.0f} s")

    def print_tally(self, absent):
        print("fault                         count  with unacknowledged data")
        for name, (count, pending) in self.tally.items():
            print(f"{name:28} {count:6} {pending:6}  {100 * pending / max(count, 1):3.0f} %")
        for name, why in absent.items():
            print(f"{name:28} absent: {why}")
        print("largest resident size, MiB: " + ", ".join(f"{kind} {kib // 1024}" for kind, kib in sorted(self.rss.items())))


def begin(stage):
    stage.tend()
    stage.wait(lambda: all(p.life() and p.life().told().acked > 0 for p in stage.programs), 60, "every program at a worker")


def end(stage):
    """All goes well again: programs end by themselves, workers drain, level by level. The books of the store."""
    stage.wait(lambda: all(member.is_alive() for member in stage.members), 60, "everybody is alive")
    for program in stage.programs:
        program.stop()
    stage.wait(lambda: all(program.process is None for program in stage.programs), END_S, "the ends of the programs")
    for program in stage.programs:
        check(program.ends[-1][0] == 0, f"{program.name} ended with {program.ends[-1]}")


def drain(stage, *groups):
    """SIGTERM to each group; all end by themselves."""
    for group in groups:
        for member in group:
            member.due = None
            member.process.terminate()
        stage.wait(lambda group=group: all(member.process is None for member in group), END_S, f"the end of {group[0].kind}s")
        for member in group:
            check(member.ends[-1][0] == 0, f"{member.name} ended with {member.ends[-1]}")


def settle(stage):
    """Waits until the books are right while all still runs, or the patience is over."""
    since = time.monotonic()
    wrong = ["nothing was asked yet"]
    while wrong and time.monotonic() < since + QUIET_S:
        stage.tend()
        time.sleep(0.5)
        books = account.Books.of(stage.master)
        wrong = account.all_differences(stage.programs, books) if books else ["the master does not answer"]
    print(f"quiet {time.monotonic() - since:.1f} s after the last program: {len(wrong)} differences")
    return wrong


def print_ends(stage):
    """Ends that nobody asked for, and their last words."""
    for member in stage.members:
        for status, words in member.ends:
            if status != 0:
                print(f"{member.name} ended by itself, status {status}: {words}")


@contextlib.contextmanager
def staged(options):
    """A stage, gone at the end; where all fails, with the last words of everybody."""
    lan = Lan()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-test-"))
    stage = None
    try:
        stage = Stage(lan, folder, options)
        yield stage
    except BaseException:
        for member in stage.members if stage else []:
            if member.log.exists():
                print(f"--- {member.log.name}\n{member.tail(15)}")
        raise
    finally:
        if stage:
            stage.close()
        lan.close_all()
        if options.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder)


def run(options, kinds, each, seed, judge):
    """One run on a stage of its own; what is wrong at its end."""
    with staged(options) as stage:
        absent = {kind.name: kind.absent(stage) for kind in kinds if kind.absent(stage)}
        driver = Driver(stage, seed, [kind for kind in kinds if kind.name not in absent], each, options.at_once)
        begin(stage)
        driver.run()
        end(stage)
        judge(driver, absent)
        wrong = settle(stage) if options.custody == "register" else []
        drain(stage, stage.workers(1), stage.workers(2))
        print_ends(stage)
        time.sleep(1)  # what is shown is published a moment after it is committed
        books = account.Books.of(stage.master)
        account.print_books(stage.programs, books)
        drain(stage, [stage.master])
        account.check_store(stage.master, books)
        return wrong + account.all_differences(stage.programs, books)


def judge(driver, absent):
    driver.print_tally(absent)
    happened = sum(count for count, _ in driver.tally.values())
    pending = sum(pending for _, pending in driver.tally.values())
    check(pending >= 0.8 * happened, f"only {pending} of {happened} faults with data unacknowledged")


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", help="20 faults of each kind, and longer ones")
    parser.add_argument("--each", type=int, help="faults of each kind")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("MR_TEST_SEED", "11")))
    parser.add_argument("--custody", default="register", choices=["register", "none"])
    parser.add_argument("--at-once", type=int, default=3, help="faults at a time")
    parser.add_argument("--kinds", help="only those whose name holds this")
    parser.add_argument("--keep", action="store_true", help="keep the logs")
    parser.add_argument("--alone", action="store_true", help="without the run that has to fail")
    return parser.parse_args()


def test():
    options = parse()
    each = options.each or (20 if options.full else 3)
    kinds = [kind for kind in faults.KINDS if not options.kinds or options.kinds in kind.name]
    print(f"seed {options.seed}, {each} faults of each kind, --custody {options.custody}", flush=True)
    wrong = run(options, kinds, each, options.seed, judge)
    check(not wrong, "the accounts differ:\n" + "\n".join(wrong))
    if options.alone:
        return
    options.custody, options.full = "none", False
    print("--- without the register: this must go wrong", flush=True)
    wrong = run(options, [faults.Deaf], 4, options.seed, lambda driver, absent: driver.print_tally(absent))
    twice = [line for line in wrong if "were made" in line]
    print("\n".join(twice[:5]))
    check(twice, "without the register nothing went wrong: this test finds nothing")


if __name__ == "__main__":
    try:
        system.main(test)
    except Absent as absent_here:
        print(f"skipped: {absent_here}")
        sys.exit(system.SKIP)
