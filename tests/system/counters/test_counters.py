# SPDX-License-Identifier: Apache-2.0
"""Counters on spans, from the kernel through two levels of workers to the master, its API and the report. What a span is
said to have counted lies between two readings that the program makes of the same events itself, just inside and just
outside of it: exact where the kernel is, whatever else the machine does."""
import json
import os
import pathlib
import resource
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

SUBJECT = pathlib.Path(os.environ["MR_BIN"]) / "counters_subject"
FUNCTIONS = pathlib.Path(os.environ["MR_BIN"]) / "counters_functions"
KNOWN = "page-faults,context-switches,task-clock"
SANITIZED = bool(os.environ.get("MR_SANITIZE"))


def report(store, *options):
    done = subprocess.run([system.MILLRACE, "report", str(store), *options], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"report: {done.stderr}")
    return done.stdout


def told(store):
    return json.loads(report(store, "--json", "--functions", "1000"))


def counts(document, function, counter):
    row = next((row for row in document["functions"] if row["name"] == function), None)
    check(row, f"no function {function}: {[row['name'] for row in document['functions']]}")
    return row.get("counters", {}).get(counter, {"calls": 0, "backward": 0})


def absences(document, counter):
    row = next((row for row in document["counters"] if row["name"] == counter), None)
    check(row, f"no counter {counter}: {document['counters']}")
    return [absent["reason"] for absent in row["absent"]]


class Run:
    """A program behind one worker and a master, both ended; what the store holds then."""

    def __init__(self, *command, levels=1, preexec=None, **variables):
        self.api = {}
        with system.System() as chain:
            master = chain.master()
            workers = [chain.worker(master.endpoint, level=levels)]
            for level in range(levels - 1, 0, -1):
                workers.append(chain.worker(workers[-1].endpoint, level=level))
            environment = chain.environment(MILLRACE_ENDPOINT=workers[-1].endpoint, MILLRACE_POLICY="block",
                                            MILLRACE_BLOCK_TIMEOUT="60s", MILLRACE_EXIT_TIMEOUT="60s")
            environment.update({key: str(value) for key, value in variables.items()})
            self.done = subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True,
                                       timeout=120, check=False, preexec_fn=preexec)
            for worker in reversed(workers):
                chain.stop(worker)
            for path in ("functions", "paths?form=list", "ledger"):
                self.api[path] = master.get("/api/v1/" + path)
            chain.stop(master)
            self.document = told(master.store)
            self.text = report(master.store)
        check(self.done.returncode == 0, f"{command}: {self.done}")
        ledger = self.document["ledger"]
        check(ledger["balanced"] and ledger["held"] == 0, f"{command}: the ledger {ledger}")

    def counts(self, function, counter="page-faults"):
        return counts(self.document, function, counter)

    def calls(self, function):
        return next(row["calls"] for row in self.document["functions"] if row["name"] == function)

    def check_all_counted(self, function, calls):
        found = self.counts(function)
        check(self.calls(function) == calls, f"{function}: {self.calls(function)} calls, not {calls}")
        check(found["calls"] + found["backward"] == calls, f"{function}: {found} of {calls} calls")


def can_count():
    """Whether this kernel lets us count at all: some containers' do not."""
    done = subprocess.run([str(SUBJECT), "known"], capture_output=True, text=True, check=False)
    return done.returncode != 77


def known_numbers():
    """Also: what the machine refuses is absent with the kernel's reason, never 0."""
    run = Run(SUBJECT, "known", levels=2, MILLRACE_COUNTERS=KNOWN + ",instructions")
    seen = {}
    for line in run.done.stdout.splitlines():
        span, counter, inner, outer = line.split()
        found = run.counts(span, counter)
        check(found["calls"] == 1 and found["backward"] == 0, f"{line}: {found}")
        check(int(inner) <= found["total"] <= int(outer), f"{line}: counted {found}")
        check(found["self"] <= found["total"] and found["self_min"] == found["self_max"] == found["self"], f"{found}")
        seen[span, counter] = found
    check(len(seen) == 15, f"{run.done.stdout}")
    check(seen["touches", "page-faults"]["total"] >= 500, f"{seen}")
    check(seen["sleeps", "context-switches"]["total"] >= 20, f"{seen}")
    nested = run.counts("nested")
    check(nested["calls"] == 2 and nested["total"] >= 42 and nested["total_max"] >= 30, f"{nested}")
    check(seen["nests", "page-faults"]["total"] - seen["nests", "page-faults"]["self"] == nested["total"],
          f"self and total: {seen['nests', 'page-faults']} {nested}")
    check_hardware(run)
    check_api(run)


def check_hardware(run):
    reasons = absences(run.document, "instructions")
    found = run.counts("works", "instructions")
    print("instructions:", reasons or found)
    if reasons:
        check(found["calls"] == 0 and "self" not in found, f"absent is not 0: {found}")
        check(f"Counter   instructions absent in counters_subject: {reasons[0]}" in run.text, run.text)
        check(" absent " in run.text.splitlines()[2], f"the column: {run.text.splitlines()[:4]}")
    else:  # a machine with hardware counters
        check(found["self"] >= 3000000, f"{found}")


def check_api(run):
    functions, paths = run.api["functions"], run.api["paths?form=list"]
    names = {row["name"]: row for row in functions["counters"]}
    check(set(names) == {*KNOWN.split(","), "instructions"} and names["task-clock"]["unit"] == "ns", f"{names}")
    check(names == {row["name"]: row for row in paths["counters"]}, f"{paths['counters']}")
    touches = next(row for row in functions["functions"] if row["name"] == "touches")
    check(touches["counters"]["page-faults"] == run.counts("touches"), f"{touches}")
    nested = next(row for row in paths["paths"] if row["site"]["name"] == "nested")
    check(nested["counters"]["page-faults"]["total"] == run.counts("nested")["total"], f"{nested}")


def names_that_are_none():
    run = Run(SUBJECT, "many", 3, MILLRACE_COUNTERS="page-fault,page-faults")
    check(run.done.stderr.count("\n") == 1 and "is page-faults meant?" in run.done.stderr, f"{run.done.stderr}")
    check("no counter is called that" in absences(run.document, "page-fault")[0], f"{run.document['counters']}")
    run.check_all_counted("span", 3)
    run = Run(SUBJECT, "many", 3, MILLRACE_COUNTERS="rubbish")
    check(run.calls("span") == 3 and run.counts("span")["calls"] == 0, "without a counter, the rest is as ever")


def streams_without_counters():
    run = Run(SUBJECT, "many", 10)
    check("counters" not in run.document and "counters" not in run.api["functions"], "counters that nobody asked for")


def limit_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))


def more_threads_than_descriptors():
    """A quarter of the limit: 256 descriptors, 64 threads. What ends makes room."""
    live = 100
    run = Run(SUBJECT, "threads", live, preexec=limit_descriptors, MILLRACE_COUNTERS="page-faults",
              MILLRACE_RING_SIZE="8KiB")
    found = run.counts("thread")
    check(found["calls"] == 64 + 100, f"{found} of {live} threads at a time, then 100")
    check(found["total"] >= 64 * 10 + 100 * 5, f"{found}")
    check(run.calls("thread") == live + 100, f"{run.calls('thread')} calls")
    reasons = absences(run.document, "page-faults")
    check(len(reasons) == 1 and "on some threads: more than 64 threads" in reasons[0], f"{reasons}")
    check("Counter   page-faults partly absent in counters_subject: on some threads" in run.text, run.text)


def limit_more_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))


def a_thousand_threads():
    """A quarter of 4,096 descriptors: 256 threads at a time. Each reason is told, none as 0, and memory has a bound."""
    live, memory_kib = 1000, 32 * 1024
    run = Run(SUBJECT, "taken", live, preexec=limit_more_descriptors, MILLRACE_COUNTERS="page-faults",
              MILLRACE_RING_SIZE="8KiB", MILLRACE_MEMORY=f"{memory_kib}KiB")
    found = run.counts("thread")
    check(run.calls("thread") == live + 100 + 1, f"{run.calls('thread')} calls")
    check(found["calls"] == 256 + 100, f"{found} of {live} threads at a time, then 100, then one without descriptors")
    check(found["total_min"] >= 5 and found["total"] >= 256 * 10 + 100 * 5, f"{found}")
    reasons = absences(run.document, "page-faults")
    check(sorted(reasons) == ["on some threads: Too many open files",
                              "on some threads: more than 256 threads at a time would have more than a quarter of the "
                              "program's file descriptors"], f"{reasons}")
    check(SANITIZED or int(run.done.stdout) < memory_kib + 64 * 1024, f"{run.done.stdout} KiB with 1,000 threads")


def forked_children():
    run = Run(SUBJECT, "forks", 5, MILLRACE_COUNTERS="page-faults,task-clock")
    check(run.done.stdout.split() == ["2"] * 5, f"descriptors of events in children: {run.done.stdout}")
    found = run.counts("child")
    check(found["calls"] == 5 and found["total_min"] >= 50 and found["total_max"] < 250, f"{found}")
    parent = run.counts("parent")
    check(parent["calls"] == 1 and parent["total"] >= 20, f"{parent}")


def signal_handlers():
    """A handler between the reading of a span's counters and its event makes a counter run backwards: counted as that."""
    run = Run(SUBJECT, "signals", 3000, MILLRACE_COUNTERS="task-clock,page-faults")
    check(run.calls("handler") == int(run.done.stdout), f"{run.done.stdout}")
    for function in ("interrupted", "inner", "handler"):
        found = run.counts(function, "task-clock")
        check(found["calls"] + found["backward"] == run.calls(function), f"{function}: {found}")
        check(found["total_max"] < 60e9, f"a huge number: {function}: {found}")
    check(run.document["ledger"]["lost"] == 0, f"{run.document['ledger']}")


def descriptors_that_the_program_closes():
    run = Run(SUBJECT, "closes", MILLRACE_COUNTERS="page-faults")
    check(run.calls("span") == 300 and run.counts("span")["calls"] == 100, f"{run.counts('span')}")
    check(absences(run.document, "page-faults") == ["on some threads: Bad file descriptor"], f"{run.document['counters']}")


def functions():
    run = Run(FUNCTIONS, "known", MILLRACE_COUNTERS=KNOWN, MILLRACE_COUNTERS_ON="all")
    found = run.counts("touch_pages")
    check(found["calls"] == run.calls("touch_pages") and found["self"] >= 500 + 7 + 30 + 12 + 4 + 3, f"{found}")
    check(run.counts("main")["total"] >= found["total"], f"{run.counts('main')}")
    run = Run(FUNCTIONS, "known", MILLRACE_COUNTERS=KNOWN)
    check(run.counts("touch_pages")["calls"] == 0, "functions are not counted unless asked")
    check(run.counts("touches")["total"] >= 500, "but spans are, and what functions below them gained is theirs")


def full_rings():
    for policy, spans in (("block", 30000), ("drop", 30000)):
        run = Run(SUBJECT, "many", spans, MILLRACE_COUNTERS="page-faults,task-clock", MILLRACE_POLICY=policy,
                  MILLRACE_RING_SIZE="4KiB")
        lost = run.document["ledger"]["lost"]
        found = run.counts("span")
        print(f"{policy}: {lost} events lost, {found['calls']} of {spans} calls counted, {found['backward']} backward")
        check(policy == "drop" or lost == 0, f"{run.document['ledger']}")
        check(found["calls"] + found["backward"] <= spans - lost // 2, f"{found}, {lost} lost")
        if lost == 0:
            run.check_all_counted("span", spans)


def combinations():
    with system.System() as chain:
        done = chain.run([str(SUBJECT), "many", "3"], MILLRACE_COUNTERS="page-faults", MILLRACE_POLICY="overwrite",
                         MILLRACE_RECORDER_DIR=chain.folder)
        check(done.returncode == 0 and done.stderr.count("\n") == 1 and "MILLRACE_COUNTERS: the flight recorder"
              in done.stderr, f"{done}")
        master = chain.master()
        done = chain.run([str(SUBJECT), "many", "3"], endpoint=master.endpoint, MILLRACE_COUNTERS="task-clock",
                         MILLRACE_COUNTERS_ON="everything")
        check(done.returncode == 0 and "MILLRACE_COUNTERS_ON" in done.stderr and "spans|all" in done.stderr, f"{done}")
        done = chain.run([str(SUBJECT), "many", "3"], endpoint=master.endpoint, MILLRACE_COUNTERS="x" * 5000)
        check(done.returncode == 0 and "MILLRACE_COUNTERS=xxx" in done.stderr, f"{done}")


def statuses(**variables):
    run = Run(SUBJECT, "statuses", 600, **variables)
    rows = {row["name"]: (row["ok"], row["failed"]) for row in run.document["functions"]}
    check(rows == {"outer": (600, 0), "tried": (500, 100)}, f"ok and failed: {rows}")
    check(run.document["ledger"]["reduced"] == 600 * 4 + 200 + 100, f"{run.document['ledger']}")


def recorded():
    with system.System() as chain:
        done = subprocess.run([system.MILLRACE, "record", "--output", str(chain.folder / "data"), "--counters", "page-faults",
                               str(SUBJECT), "many", "5"], env=chain.environment(), capture_output=True, text=True,
                              timeout=120, check=False)
        check(done.returncode == 0 and "page-faults" in done.stderr, f"{done}")
        check(counts(told(chain.folder / "data"), "span", "page-faults")["calls"] == 5, f"{done.stderr}")


def test():
    statuses()
    combinations()
    streams_without_counters()
    if not can_count():
        print("this kernel lets nobody count here: nothing more to test")
        sys.exit(system.SKIP)
    known_numbers()
    recorded()
    statuses(MILLRACE_COUNTERS="page-faults")
    names_that_are_none()
    more_threads_than_descriptors()
    if not SANITIZED:  # whose runtimes let no forked child start a thread, or leave it their allocator locked (gcc 12)
        forked_children()
    signal_handlers()
    if not SANITIZED:  # whose runtimes need descriptors of their own
        descriptors_that_the_program_closes()
        a_thousand_threads()
    functions()
    full_rings()


if __name__ == "__main__":
    system.main(test)
