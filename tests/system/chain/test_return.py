# SPDX-License-Identifier: Apache-2.0
"""A probe that left a worker without a word, sent to another one meanwhile, and comes back: nothing is lost, nothing twice.

While the program pauses and all is acknowledged, the first worker is stopped (SIGSTOP), so that the probe takes it for dead and
goes to the second. The first goes on, and still has the source's state, which is old by now. Then the second is stopped for
good (SIGTERM) in mid-run, and sends the probe to the first.
"""
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import chain as lib  # pylint: disable=wrong-import-position
from chain import check, system  # pylint: disable=wrong-import-position


def is_quiet(master, events):
    ledger = lib.report(master.store)["ledger"]
    return ledger["reduced"] + ledger["held"] >= events


def drive_away(program_is_at, other):
    """The probe does not hear from its worker for too long, and goes to the other."""
    os.kill(program_is_at.pid, signal.SIGSTOP)
    try:
        system.wait_until(lambda: "welcomed probe" in other.log.read_text(), 30, "the probe at the second worker")
    finally:
        os.kill(program_is_at.pid, signal.SIGCONT)


def test():
    with system.System() as chain:
        master = chain.master()
        first, second = (chain.worker(master.endpoint, "--source-grace", "60s", "--log-level", "debug") for _ in range(2))
        program = lib.Program(chain, f"{first.endpoint},{second.endpoint}")
        try:
            program.wait_mark(1)
            events = 2 * lib.BATCHES * 28 + 2 * 2 + 2 + 1  # batches, work, phase, and main's enter
            system.wait_until(lambda: is_quiet(master, events), 60, "phase 1 in the store")
            drive_away(first, second)
            before = lib.calls_of(master.store, "leaf")
            program.go_on()
            lib.wait_calls(master.store, "leaf", before + lib.BATCHES)
            chain.stop(second)
            for phase in range(2, lib.PHASES + 1):
                program.wait_mark(phase)
                program.go_on()
            own = program.own_counts()
        finally:
            program.end()
        chain.stop(first)
        chain.stop(master)
        check(first.log.read_text().count("welcomed probe") == 2, "the probe did not come back")
        found, ledger = lib.calls(master.store), lib.report(master.store)["ledger"]
        print(f"the program's own counts {own}\nthe master's            {found}\nledger {ledger}")
        check(found == own, "calls are missing, or too many")
        check(ledger["last"] == 2 * sum(own.values()), f"{ledger['last']} events, not two per call")
        check(ledger["balanced"] and ledger["lost"] == 0 and ledger["held"] == 0, "the ledger does not balance")
        lib.check_entries(master.store)


if __name__ == "__main__":
    system.main(test)
