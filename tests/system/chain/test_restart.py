# SPDX-License-Identifier: Apache-2.0
"""kill -9 of a worker in mid-run, twice; another one starts on the same port. With one level of workers, and with two.

What the dead worker had acknowledged and not yet sent upward is gone: at most a few delta intervals. All else holds:

1. Every function has its name: the probe repeats its dictionary for a receiver that does not know it.
2. No function has more calls than the program made. What is missing of a stream that goes on is missing in the ledger: last
   tells how many events there were, and reduced + held + lost is less. (Of a stream that ended at the dead worker nobody
   above may have heard.) Nothing counts as lost: the probe dropped nothing.
3. A stream that goes on at the new worker has unknown calls open. That makes no false call trees: those that are whole, and all
   shapes, begin with a function that does run under main or a thread's start; what begins with another is incomplete.
"""
import sys
import os

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import chain as lib  # pylint: disable=wrong-import-position
from chain import check, system  # pylint: disable=wrong-import-position


def kill_and_start(chain, master, worker, level):
    worker.process.kill()
    worker.process.wait()
    return chain.worker(master.endpoint, listen=worker.ready["listen"], level=level)


def check_names(store):
    names = set(lib.functions(store))
    check(names <= lib.NAMES, f"functions that the program does not have: {names - lib.NAMES}")
    check(lib.NAMES - {"main"} <= names, f"functions that are missing: {lib.NAMES - names}")


def check_counts(store, own):
    found, ledger = lib.calls(store), lib.report(store)["ledger"]
    print(f"the program's own counts {own}\nthe master's            {found}\nledger {ledger}")
    more = {name: count for name, count in found.items() if count > own[name]}
    check(not more, f"more calls than the program made: {more}")
    check(ledger["last"] <= 2 * sum(own.values()), f"{ledger['last']} events, more than two per call")
    missing = ledger["last"] - ledger["reduced"] - ledger["held"] - ledger["lost"]
    check(missing >= 0, "more events than the program made")
    check(ledger["lost"] == 0, "the probe kept what nobody acknowledged")
    check(ledger["balanced"] == (missing == 0), "the ledger says it balances, or that it does not, and it is not so")
    check(missing < ledger["last"] / 2, "too much is missing")


def run(levels):
    """Kills the worker that sends to the master: that of level 1, or of level 2."""
    print(f"--- {levels} levels")
    with system.System() as chain:
        master = chain.master()
        worker = chain.worker(master.endpoint, level=levels)
        first = chain.worker(worker.endpoint) if levels == 2 else None
        program = lib.Program(chain, (first or worker).endpoint)
        try:
            lib.wait_calls(master.store, "leaf", lib.BATCHES)
            worker = kill_and_start(chain, master, worker, levels)
            for phase in range(1, lib.PHASES + 1):
                program.wait_mark(phase)
                before = lib.calls_of(master.store, "leaf")
                program.go_on()
                if phase == 1:
                    lib.wait_calls(master.store, "leaf", before + lib.BATCHES)
                    worker = kill_and_start(chain, master, worker, levels)
            own = program.own_counts()
        finally:
            program.end()
        if first:
            chain.stop(first)
        chain.stop(worker)
        chain.stop(master)
        check_names(master.store)
        check_counts(master.store, own)
        lib.check_entries(master.store)


def run_new_store():
    """The master begins anew with an empty store: the worker below tells it all names once more."""
    print("--- new store")
    with system.System() as chain:
        master = chain.master()
        worker = chain.worker(master.endpoint)
        program = lib.Program(chain, worker.endpoint)
        try:
            lib.wait_calls(master.store, "leaf", lib.BATCHES)
            master.process.kill()
            master.process.wait()
            master = chain.master(store=chain.folder / "other", listen=master.ready["listen"], http=master.ready["http"])
            for phase in range(1, lib.PHASES + 1):
                program.wait_mark(phase)
                program.go_on()
            own = program.own_counts()
        finally:
            program.end()
        chain.stop(worker)
        chain.stop(master)
        found = lib.calls(master.store)
        print(f"the program's own counts {own}\nthe new store's          {found}")
        check_names(master.store)
        more = {name: count for name, count in found.items() if count > own[name]}
        check(not more and found["leaf"] < own["leaf"], f"more calls than the program made, or all of them: {more}")
        check(lib.report(master.store)["entries"][0]["app"] == "counter", "the application has no name")


def test():
    run(levels=1)
    run(levels=2)
    run_new_store()


if __name__ == "__main__":
    system.main(test)
