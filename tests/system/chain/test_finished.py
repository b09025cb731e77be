# SPDX-License-Identifier: Apache-2.0
"""kill -9 of a worker whose program goes on at another one. Started again on its spool, the worker takes the program for dead, as it does
not come back there; it has finished all the same when it has said so to the other one."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import chain as lib  # pylint: disable=wrong-import-position
from chain import check, system  # pylint: disable=wrong-import-position

BATCHES = lib.BATCHES // 8


def states(master):
    return [source["state"] for source in master.get("/api/v1/ledger")["sources"]]


def run(chain, master):
    """The program's own counts, and the workers that it had."""
    options = ("--spool", str(chain.folder / "spool"), "--source-grace", "500ms")
    first, second = chain.worker(master.endpoint, *options), chain.worker(master.endpoint)
    program = lib.Program(chain, f"{first.endpoint},{second.endpoint}", BATCHES)
    try:
        program.wait_mark(1)
        system.wait_until(lambda: lib.calls(master.store).get("phase"), 60, "phase 1 in the store")
        first.process.kill()
        first.process.wait()
        program.go_on()
        program.wait_mark(2)
        first = chain.worker(master.endpoint, *options, listen=first.ready["listen"])
        system.wait_until(lambda: states(master) == ["died"], 60, "the source shown as died")
        program.go_on()
        program.wait_mark(3)
        program.go_on()
        return program.own_counts(), (first, second)
    finally:
        program.end()


def test():
    with system.System() as chain:
        master = chain.master()
        own, workers = run(chain, master)
        for worker in workers:
            chain.stop(worker)
        system.wait_until(lambda: states(master) == ["finished"], 30, "the source shown as finished")
        chain.stop(master)
        ledger, found = lib.report(master.store)["ledger"], lib.calls(master.store)
        print(f"own {own}\nfound {found}\nledger {ledger}")
        check(found == own and ledger["balanced"] and ledger["lost"] == 0, "something is lost, or there twice")


if __name__ == "__main__":
    system.main(test)
