# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the program: what its probe had sent counts, its open calls end incomplete, its source shows as died."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import chain as lib  # pylint: disable=wrong-import-position
from chain import check, system  # pylint: disable=wrong-import-position


def states(master):
    return [source["state"] for source in master.get("/api/v1/ledger")["sources"]]


def test():
    with system.System() as chain:
        master = chain.master()
        worker = chain.worker(master.endpoint, "--source-grace", "500ms")
        program = lib.Program(chain, worker.endpoint)
        try:
            program.wait_mark(1)
            system.wait_until(lambda: lib.calls(master.store).get("phase"), 60, "phase 1 in the store")
            check(states(master) == ["live"], f"the source is {states(master)}, not live")
        finally:
            program.end()
        system.wait_until(lambda: states(master) == ["died"], 30, "the source shows as died")
        check(master.get("/api/v1/ledger")["stages"]["sources_died"] == 1, "a source that died is told")
        chain.stop(worker)
        chain.stop(master)
        report, rows = lib.report(master.store), lib.functions(master.store)
        ledger = report["ledger"]
        print({name: row["calls"] for name, row in rows.items()}, ledger)
        check(ledger["balanced"] and ledger["held"] == 0 and ledger["lost"] == 0, "the ledger does not balance")
        check(ledger["sources_died"] == 1, "that it died is told")
        check(rows["work"]["ok"] == 2 and rows["batch"]["ok"] == 2 * lib.BATCHES, "calls are missing")
        check(rows["main"]["ok"] == 0 and rows["main"]["incomplete"] == 1, "main did not return")


if __name__ == "__main__":
    system.main(test)
