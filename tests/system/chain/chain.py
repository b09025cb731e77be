# SPDX-License-Identifier: Apache-2.0
"""The program of the chain's tests (tests/system/master_kill/counter.c), and what a store says of it."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

PHASES = 3
SANITIZED = bool(os.environ.get("MR_SANITIZE"))
BATCHES = 300_000 if SANITIZED else 1_500_000  # per phase and thread; 28 events each
NAMES = {"main", "phase", "work", "batch", "odd_batch", "branch", "leaf"}
# What runs below the outer frames main and work. A sanitizer puts a start function of its own before ours.
TREES = {"phase", "batch", "work"} if SANITIZED else {"phase", "batch"}


def report(store):
    run = subprocess.run([system.MILLRACE, "report", store, "--json", "--functions", "1000", "--entries", "1000"],
                         capture_output=True, text=True, check=False)
    check(run.returncode == 0, f"millrace report: {run.stderr}")
    return json.loads(run.stdout)


def functions(store):
    return {row["name"]: row for row in report(store)["functions"]}


def calls(store):
    """function -> calls, those without an exit included."""
    return {name: row["ok"] + row["failed"] + row["incomplete"] for name, row in functions(store).items()}


def check_entries(store):
    """Call trees that are whole, and shapes, start where call trees do start; others are incomplete."""
    for entry in report(store)["entries"]:
        coverage = entry["coverage"]
        whole = coverage["whole"] + coverage["folded"] + coverage["paths"]
        print(f"entry {entry['name']}: {whole} whole, {coverage['incomplete']} incomplete, {entry['shapes']} shapes")
        check(entry["name"] in TREES or whole + entry["shapes"] == 0, f"a false entry point: {entry}")


class Program:
    """Runs in phases of two threads each, and waits for go_on() between them."""

    def __init__(self, chain, endpoint, batches=BATCHES, build=system.BUILD):
        chain.count += 1
        folder = chain.folder / f"program-{chain.count}"
        folder.mkdir()
        binary = system.compile_program(folder / "counter", [system.SOURCE / "tests/system/master_kill/counter.c"], build=build)
        environment = chain.environment(MILLRACE_ENDPOINT=endpoint, MILLRACE_POLICY="block",
                                        MILLRACE_BLOCK_TIMEOUT="60s", MILLRACE_EXIT_TIMEOUT="60s")
        self.process = subprocess.Popen([binary, str(PHASES), str(batches)], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def wait_mark(self, number):
        line = self.process.stdout.readline()
        check(line == f"mark {number}\n", f"the program said {line!r}, not mark {number}")

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def own_counts(self):
        rows = [line.split() for line in self.process.stdout.read().splitlines()]
        check(self.process.wait(120) == 0, f"the program ended with {self.process.returncode}")
        return {name: int(count) for name, count in rows}

    def end(self):
        self.process.kill()
        self.process.wait()


def calls_of(store, function):
    return calls(store).get(function, 0)


def wait_calls(store, function, count):
    """Until there are so many calls of the function in the store."""
    return system.wait_until(lambda: calls_of(store, function) >= count, 60, f"{count} calls of {function}")


def wait_growth(store, function, count):
    """Until there are so many more. Of a program that goes on meanwhile: one that stops before this looks makes no more."""
    return wait_calls(store, function, calls_of(store, function) + count)
