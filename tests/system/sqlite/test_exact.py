# SPDX-License-Identifier: Apache-2.0
"""Calls per function of a real program, from its probe through two levels of workers to the master's store, equal what
two witnesses count in the same deterministic run, exactly and for every function:

- gcov: speedtest1 built with --coverage at -O0. gcov counts the entries of each function, so no inlining, cloning or
  merging of functions can hide one. The instrumented program is built at -O2, as it would be: gcc puts the hooks into
  every function before it optimises, and a call of a hook is a side effect that no pass may drop, so an inlined
  function still enters and exits. Both thus count what the source says, whatever the optimiser does.
- count_hooks.c: the very object files of the instrumented program, linked with 40 lines that count hook calls.

The program is deterministic with --memdb (no file names, no times decide anything; its random numbers are its own).
"""
import collections
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

SIZE = "5"  # of speedtest1: about 39 million events
ARGUMENTS = ["--memdb", "--size", SIZE]
OUT = system.BUILD / "sqlite"


def build():
    environment = dict(os.environ, PKG_CONFIG_PATH=str(system.BUILD / "lib" / "pkgconfig"))
    run = subprocess.run([system.SOURCE / "scripts" / "sqlite-build.sh", "--out", OUT, "instrumented", "count", "gcov"],
                         env=environment, capture_output=True, text=True, check=False)
    if run.returncode == 3:
        print(f"skipped: {run.stderr.strip()}")
        sys.exit(system.SKIP)
    check(run.returncode == 0, f"sqlite-build.sh: {run.stderr[-2000:]}")


def gcov_counts(test):
    """(file, function) -> calls, of the functions that were called at all."""
    objects = OUT / "objects" / "gcov"
    prefix = test.folder / "gcov"
    prefix.mkdir()
    # The counts go to a folder of this run's own, so nothing is added up over runs.
    run = test.run([OUT / "speedtest1.gcov", *ARGUMENTS], GCOV_PREFIX=prefix, GCOV_PREFIX_STRIP=99)
    check(run.returncode == 0, f"speedtest1.gcov: {run.stderr}")
    for notes in objects.glob("*.gcno"):
        (prefix / notes.name).symlink_to(notes)
    report = subprocess.run(["gcov", "--json-format", "--stdout", *sorted(prefix.glob("*.gcda"))], cwd=prefix,
                            capture_output=True, text=True, check=True)
    counts = collections.Counter()
    for line in report.stdout.splitlines():
        for file in json.loads(line)["files"]:
            for function in file["functions"]:
                counts[os.path.basename(file["file"]), function["name"]] += function["execution_count"]
    return +counts


def hook_counts(test):
    """The same by count_hooks.c; checks that every call returned."""
    program, log = OUT / "speedtest1.count", test.folder / "counts"
    run = test.run([program, *ARGUMENTS], COUNT_HOOKS=log)
    check(run.returncode == 0, f"speedtest1.count: {run.stderr}")
    rows = [line.split() for line in log.read_text().splitlines()]
    exits = sum(int(count) for count, address in rows if address == "exits")
    rows = [row for row in rows if row[1] != "exits"]
    check(exits == sum(int(count) for count, _ in rows), "count_hooks.c: not every call returned")
    found = subprocess.run(["addr2line", "-f", "-e", program, *(address for _, address in rows)], capture_output=True,
                           text=True, check=True).stdout.splitlines()
    counts = collections.Counter()
    for index, (count, _) in enumerate(rows):
        name, place = found[2 * index], found[2 * index + 1]
        counts[os.path.basename(place.split(":")[0]), name] += int(count)
    return counts


def millrace_counts(report):
    counts = collections.Counter()
    for function in report["functions"]:
        counts[os.path.basename(function["file"]), function["name"]] += function["calls"]
    return counts


def compare(name, expected, other, found):
    wrong = [(key, expected[key], found[key]) for key in sorted(expected | found) if expected[key] != found[key]]
    for (file, function), want, have in wrong[:20]:
        print(f"    {file} {function}: {name} {want}, {other} {have}")
    check(not wrong, f"{name} and {other} differ in {len(wrong)} functions")
    print(f"{name} = {other}: {len(expected)} functions, {sum(expected.values())} calls, all equal")


def trace(test):
    """Runs the instrumented program through the chain; what level 1 and the master's store say about it."""
    master = test.master()
    level2 = test.worker(master.endpoint, level=2)
    stats = test.folder / "level1.json"
    level1 = test.worker(level2.endpoint, "--stats-file", str(stats))
    run = test.run([OUT / "speedtest1.instrumented", *ARGUMENTS], endpoint=level1.endpoint)
    check(run.returncode == 0, f"speedtest1.instrumented ended with {run.returncode}: {run.stderr}")
    check("TOTAL" in run.stdout, f"speedtest1's own output is not all there: {run.stdout[-300:]}")
    for server in (level1, level2, master):
        test.stop(server)
    report = subprocess.run([system.MILLRACE, "report", master.store, "--json", "--functions", "100000"],
                            capture_output=True, text=True, check=False)
    check(report.returncode == 0, f"millrace report: {report.stderr}")
    return json.loads(stats.read_text()), json.loads(report.stdout)


def check_ledger(level1, report, calls):
    ledger = report["ledger"]
    print(f"ledger: last {ledger['last']}, reduced {ledger['reduced']}, held {ledger['held']}, lost {ledger['lost']}; "
          f"level 1 reduced {level1['counters']['reduced']}; the witnesses' calls x 2 = {2 * calls}")
    check(ledger["lost"] == 0, f"events were lost: {ledger['lost_by_reason']}")
    check(ledger["balanced"] and ledger["held"] == 0, "the ledger does not balance")
    check(ledger["last"] == ledger["reduced"] == 2 * calls, "the master's events are not the program's")
    check(level1["counters"]["reduced"] == ledger["reduced"], "level 1 and the master differ")


def test():
    build()
    with system.System() as chain:
        gcov = gcov_counts(chain)
        hooks = hook_counts(chain)
        compare("gcov", gcov, "count_hooks.c", hooks)
        level1, report = trace(chain)
        check(report["function_total"] == len(report["functions"]), "the report left functions out")
        incomplete = sum(function["incomplete"] for function in report["functions"])
        check(incomplete == 0, f"{incomplete} calls are incomplete")
        compare("gcov", gcov, "millrace", millrace_counts(report))
        check_ledger(level1, report, sum(gcov.values()))


if __name__ == "__main__":
    system.main(test)
