# SPDX-License-Identifier: Apache-2.0
"""Requests hang; their worker is killed and started again on its spool. Their threads say nothing any more, and yet they are told as
open at once, with the stacks that they were in and since when; as the program is killed, its calls end incomplete, once."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

OPEN = {"handle_order": 2, "handle_search": 1}


def rows_of(master):
    """{entry point: its row}, once all of them are there."""
    rows = {row["site"]["name"]: row for row in master.get("/api/v1/open")["open"]}
    return rows if {name: row["open"] for name, row in rows.items()} == OPEN else None


def told_by_the_new_worker(master, before):
    """The deltas of the one that was killed do not hold for longer than 5 s."""
    rows = rows_of(master)
    return rows if rows and rows["handle_order"]["oldest_for_ns"] > before["handle_order"]["oldest_for_ns"] + 6_000_000_000 else None


def stacks(rows):
    return {name: [site["name"] for site in row["stack"]] for name, row in rows.items()}


def test():
    with system.System() as chain:
        program = chain.folder / "program"
        system.compile_program(program, [system.SOURCE / "tests/system/open/program.c"])
        master = chain.master()
        # By name: a sanitizer's runtime stands between a thread's beginning and its start function.
        options = ("--outer", "main,serve", "--spool", str(chain.folder / "spool"))
        worker = chain.worker(master.endpoint, *options)
        hung = subprocess.Popen([program], env=chain.environment(MILLRACE_ENDPOINT=worker.endpoint))
        try:
            before = system.wait_until(lambda: rows_of(master), 20, "open traces")
            worker.process.kill()
            worker.process.wait()
            worker = chain.worker(master.endpoint, *options, listen=worker.ready["listen"])
            after = system.wait_until(lambda: told_by_the_new_worker(master, before), 20, "open traces, of the new worker")
            print(f"{stacks(after)}, {after}")
            check(stacks(after) == stacks(before), f"they were in {stacks(before)}, and are in {stacks(after)}")
        finally:
            hung.kill()
            hung.wait()
        chain.stop(worker)
        system.wait_until(lambda: master.get("/api/v1/open")["total"] == 0, 30, "nothing is open")
        entries = {row["name"]: (row["ok"], row["incomplete"]) for row in master.get("/api/v1/entries")["entries"]}
        check(entries == {"handle_order": (1000, 2), "handle_search": (1000, 1)}, f"entry points {entries}")
        check(master.get("/api/v1/ledger")["ledger"]["balanced"], "the ledger balances")


if __name__ == "__main__":
    system.main(test)
