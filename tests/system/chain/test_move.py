# SPDX-License-Identifier: Apache-2.0
"""SIGTERM of a worker in mid-run: it sends its senders to the other one, and nothing is lost.

The worker ends well within its drain time-out; every event that the program made is reduced, at one worker or the other; calls
that were open at the move are incomplete at the old worker. The source did not die.
"""
import os
import shutil
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import chain as lib  # pylint: disable=wrong-import-position
from chain import check, system  # pylint: disable=wrong-import-position
import balancer  # pylint: disable=wrong-import-position

DRAIN_S = 50  # --drain-timeout: whoever waits it out is seen


def stop_in_mid_run(chain, worker):
    start = time.monotonic()
    chain.stop(worker)
    seconds = time.monotonic() - start
    print(f"SIGTERM: it ended after {seconds:.2f} s")
    check(seconds < DRAIN_S / 2, f"the worker waited {seconds} s for senders that it had sent away")


def check_all(store, own):
    functions, report = lib.functions(store), lib.report(store)
    ledger, found = report["ledger"], lib.calls(store)
    incomplete = {name: row["incomplete"] for name, row in functions.items() if row["incomplete"]}
    print(f"the program's own counts {own}\nthe master's            {found}\nincomplete {incomplete}\nledger {ledger}")
    check(set(functions) <= lib.NAMES, f"functions that the program does not have: {set(functions) - lib.NAMES}")
    check(found == own, "calls are missing, or too many")
    check(ledger["last"] == 2 * sum(own.values()), f"{ledger['last']} events, not two per call")
    check(ledger["balanced"] and ledger["lost"] == 0 and ledger["held"] == 0, "the ledger does not balance")
    lib.check_entries(store)


def check_sources(master):
    """What readers see is published a moment after it is committed and acknowledged."""

    def states():
        return [source["state"] for source in master.get("/api/v1/ledger")["sources"]]

    system.wait_until(lambda: states() == ["finished"], 10, "the source shown as finished")


def run(chain, master, workers, endpoint):
    """`workers` are two; each is stopped in its turn, the first after it the second, and starts again before the next."""
    first, second = workers
    program = lib.Program(chain, endpoint)
    try:
        lib.wait_calls(master.store, "leaf", lib.BATCHES)
        stop_in_mid_run(chain, first)
        program.wait_mark(1)
        third = chain.worker(master.endpoint, "--drain-timeout", f"{DRAIN_S}s", listen=first.ready["listen"])
        before = lib.calls_of(master.store, "leaf")
        program.go_on()
        lib.wait_calls(master.store, "leaf", before + lib.BATCHES)
        stop_in_mid_run(chain, second)
        for phase in range(2, lib.PHASES + 1):
            program.wait_mark(phase)
            program.go_on()
        own = program.own_counts()
    finally:
        program.end()
    chain.stop(third)
    check_sources(master)
    chain.stop(master)
    check_all(master.store, own)


def run_alone(chain, master):
    """One worker, and no other to go to: the probe keeps what it has until there is one again."""
    worker = chain.worker(master.endpoint, "--drain-timeout", f"{DRAIN_S}s")
    program = lib.Program(chain, worker.endpoint)
    try:
        lib.wait_calls(master.store, "leaf", lib.BATCHES)
        stop_in_mid_run(chain, worker)
        time.sleep(1)
        worker = chain.worker(master.endpoint, listen=worker.ready["listen"])
        for phase in range(1, lib.PHASES + 1):
            program.wait_mark(phase)
            program.go_on()
        own = program.own_counts()
    finally:
        program.end()
    chain.stop(worker)
    check_sources(master)
    chain.stop(master)
    check_all(master.store, own)


def test():
    print("--- alone")
    with system.System() as chain:
        run_alone(chain, chain.master())
    for is_balanced in [False, True]:
        if is_balanced and not shutil.which("haproxy"):
            print("no HAProxy here: the second part is skipped")
            break
        print("--- behind HAProxy" if is_balanced else "--- two addresses")
        with system.System() as chain:
            master = chain.master()
            workers = [chain.worker(master.endpoint, "--drain-timeout", f"{DRAIN_S}s") for _ in range(2)]
            endpoint = ",".join(worker.endpoint for worker in workers)
            if is_balanced:
                endpoint = balancer.start(chain, workers)
            run(chain, master, workers, endpoint)


if __name__ == "__main__":
    system.main(test)
