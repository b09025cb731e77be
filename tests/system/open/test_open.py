# SPDX-License-Identifier: Apache-2.0
"""A request that hangs is seen while it hangs: /api/v1/open tells per entry point how many traces are open, for how long, and
the stack of the oldest, through two levels of workers, and so does a report of the store; once the program is gone, so are they."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

STACKS = {"handle_order": ["handle_order", "call_backend", "wait_for_reply"],
          "handle_search": ["handle_search", "call_backend", "wait_for_reply"]}
OPEN = {"handle_order": 2, "handle_search": 1}


def rows_of(master):
    """{entry point: its row}, once all of them are there."""
    rows = {row["site"]["name"]: row for row in master.get("/api/v1/open")["open"]}
    return rows if {name: row["open"] for name, row in rows.items()} == OPEN else None


def check_row(name, row):
    check([site["name"] for site in row["stack"]] == STACKS[name], f"{name}: stack {row['stack']}")
    check(row["stack_elided"] == 0, f"{name}: a part of its stack is missing")
    check(sum(row["by_age"].values()) == row["open"], f"{name}: ages {row['by_age']}")
    check(0 < row["in_call_for_ns"] <= row["oldest_for_ns"], f"{name}: {row}")


def report(master, *options):
    return subprocess.run([system.MILLRACE, "report", *options, master.store], capture_output=True, text=True, check=True).stdout


def reported(master):
    """A report tells the same. It reads the store while the master writes it: what is open is there again with the next delta."""
    rows = {row["name"]: row for row in json.loads(report(master, "--json"))["open_traces"]}
    if {name: row["open"] for name, row in rows.items()} != OPEN:
        return False
    for name, row in rows.items():
        check(row["stack"] == STACKS[name] and 0 < row["in_call_for_ns"] <= row["oldest_for_ns"], f"{row}")
    return "wait_for_reply: handle_order > call_backend > wait_for_reply" in report(master)


def test():
    with system.System() as chain:
        program = chain.folder / "program"
        system.compile_program(program, [system.SOURCE / "tests/system/open/program.c"])
        master = chain.master()
        upper = chain.worker(master.endpoint, "--level", "2")
        # By name: a sanitizer's runtime stands between a thread's beginning and its start function.
        worker = chain.worker(upper.endpoint, "--outer", "main,serve")
        hung = subprocess.Popen([program], env=chain.environment(MILLRACE_ENDPOINT=worker.endpoint))
        try:
            rows = system.wait_until(lambda: rows_of(master), 20, "open traces")
            for name, row in rows.items():
                check_row(name, row)
            first = rows["handle_order"]["oldest_for_ns"]
            system.wait_until(lambda: (rows_of(master) or rows)["handle_order"]["oldest_for_ns"] > first, 20, "they grow older")
            system.wait_until(lambda: reported(master), 20, "a report of it")
            entries = {row["name"]: row["open"] for row in master.get("/api/v1/entries")["entries"]}
            check(entries == OPEN, f"/api/v1/entries has open {entries}")
        finally:
            hung.kill()
            hung.wait()
        chain.stop(worker)  # it knows of no open trace any more
        system.wait_until(lambda: master.get("/api/v1/open")["total"] == 0, 30, "nothing is open")


if __name__ == "__main__":
    system.main(test)
