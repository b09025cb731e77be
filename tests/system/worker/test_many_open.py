# SPDX-License-Identifier: Apache-2.0
"""10,000 threads that hang, each in a request of its own: all of them are seen while they hang, with the stack of the oldest; and
when they go on, none is left. Prints how long it took and what memory the worker needed."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

THREADS = 500 if os.environ.get("MR_SANITIZE") else 10_000
STACKS = (["handle", "wait_for_gate"], ["handle", "wait_for_reply", "wait_for_gate"])


def all_open(master):
    rows = master.get("/api/v1/open")["open"]
    return rows if [(row["site"]["name"], row["open"]) for row in rows] == [("handle", THREADS)] else None


def balanced(master):
    ledger = master.get("/api/v1/ledger")["ledger"]
    return ledger if ledger["balanced"] else None


def test():
    with system.System() as chain:
        program = system.compile_program(chain.folder / "program", [system.SOURCE / "tests/system/worker/many_open.c"])
        master = chain.master()
        worker = chain.worker(master.endpoint, "--root", "handle", "--outer", "main,serve", "--lanes", "1")
        environment = chain.environment(MILLRACE_ENDPOINT=worker.endpoint, MILLRACE_RING_SIZE=4096, MILLRACE_MEMORY="1GiB")
        hung = subprocess.Popen([program, str(THREADS)], env=environment, text=True, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            if hung.stdout.readline() != "waiting\n":
                print(f"skipped: no {THREADS} threads here: {hung.stderr.read()}")
                sys.exit(system.SKIP)
            began = time.monotonic()
            rows = system.wait_until(lambda: all_open(master), 60, f"{THREADS} open traces")
            print(f"{THREADS} open traces seen {time.monotonic() - began:.2f} s after all of them waited, worker: {worker.rss_kib()} KiB")
            check([site["name"] for site in rows[0]["stack"]] in STACKS, f"stack of the oldest: {rows[0]['stack']}")
            check(sum(rows[0]["by_age"].values()) == THREADS, f"ages {rows[0]['by_age']}")
            entries = {row["name"]: row for row in master.get("/api/v1/entries")["entries"]}
            check(entries["handle"]["open"] == THREADS and entries["handle"]["count"] == 0, f"entry point {entries['handle']}")
        finally:
            hung.stdin.close()
            hung.wait(120)
        check(hung.returncode == 0, f"the program ended with {hung.returncode}")
        system.wait_until(lambda: master.get("/api/v1/open")["total"] == 0, 60, "nothing is open")
        system.wait_until(lambda: master.get("/api/v1/entries")["traces"] == THREADS, 60, "all traces have ended")
        # The program's last events and its own account come after its last trace.
        ledger = system.wait_until(lambda: balanced(master), 60, "all that was sent is in the model")
        check(ledger["lost"] == 0, f"ledger {ledger}")


if __name__ == "__main__":
    system.main(test)
