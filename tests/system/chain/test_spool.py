# SPDX-License-Identifier: Apache-2.0
"""kill -9 of workers of both levels, over and over, under load; each is started again on its spool: nothing is lost, nothing twice.

What the programs counted themselves is what the master has, and its ledger balances. With --spool none the same must show a loss,
or this test tests nothing.
"""
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import chain as lib  # pylint: disable=wrong-import-position
from chain import check, system  # pylint: disable=wrong-import-position

PROGRAMS = 2
BATCHES = lib.BATCHES // 2
SEED = int(os.environ.get("MR_TEST_SEED", "11"))
GRACE = "60s"  # of a sender that is away


class Victim:
    """A worker that is killed at random moments and started again at once, at the same port."""

    def __init__(self, chain, forward, level, spool, seed, kill_s=(0.02, 1.5), grace=GRACE):
        self.kill_s = kill_s
        self.chain, self.forward, self.level, self.kills = chain, forward, level, 0
        self.options = ("--source-grace", grace, "--spool", str(spool))
        self.random = random.Random(seed)
        self.next_kill = 0
        self.worker = chain.worker(forward, *self.options, level=level)

    def kill_when_due(self):
        if time.monotonic() < self.next_kill:
            return
        self.worker.process.kill()
        self.worker.process.wait()
        self.kills += 1
        self.worker = self.chain.worker(self.forward, *self.options, level=self.level, listen=self.worker.ready["listen"])
        self.next_kill = time.monotonic() + self.random.uniform(*self.kill_s)


def drive(programs, own):
    """Leads the programs through their phases, and adds up what they counted."""
    for phase in range(1, lib.PHASES + 1):
        for program in programs:
            program.wait_mark(phase)
            program.go_on()
    for program in programs:
        for name, count in program.own_counts().items():
            own[name] = own.get(name, 0) + count


def run(has_spool):
    """The programs' own counts, added up, the master's, its ledger, and how often workers were killed."""
    with system.System() as chain:
        def spool(name):
            return chain.folder / name if has_spool else "none"

        master = chain.master()
        upper = Victim(chain, master.endpoint, 2, spool("upper"), SEED)
        lower = [Victim(chain, upper.worker.endpoint, 1, spool(f"lower{i}"), SEED + 1 + i) for i in range(2)]
        victims = [upper, *lower]
        programs = [lib.Program(chain, victim.worker.endpoint, BATCHES) for victim in lower[:PROGRAMS]]
        own = {}
        driver = threading.Thread(target=drive, args=(programs, own), daemon=True)
        driver.start()
        try:
            end = None
            while end is None or time.monotonic() < end:  # what is left on the way at the end is killed, too
                for victim in victims:
                    victim.kill_when_due()
                time.sleep(0.01)
                if end is None and not driver.is_alive():
                    end = time.monotonic() + 1
        finally:
            for program in programs:
                program.end()
        for victim in lower:
            chain.stop(victim.worker)
        chain.stop(upper.worker)
        chain.stop(master)
        return own, lib.calls(master.store), lib.report(master.store)["ledger"], [victim.kills for victim in victims]


def test():
    own, found, ledger, kills = run(has_spool=True)
    print(f"killed {kills} times\nthe programs' own counts {own}\nthe master's             {found}\nledger {ledger}")
    check(found == own, "calls are missing, or counted twice")
    check(ledger["last"] == 2 * sum(own.values()), f"{ledger['last']} events, not two per call")
    check(ledger["balanced"] and ledger["lost"] == 0 and ledger["held"] == 0, "the ledger does not balance")
    check(min(kills) >= 3, f"workers were killed {kills} times only")
    own, found, _, kills = run(has_spool=False)
    print(f"without spools, killed {kills} times: own {own}\n                     found {found}")
    check(found != own, "without spools nothing was lost: this test finds nothing")


if __name__ == "__main__":
    system.main(test)
