# SPDX-License-Identifier: Apache-2.0
"""Workers of both levels are killed and started again on their spools while a relay in front of each level cuts connections, makes senders
deaf and sends them to the other worker: sources end, move and come back while their frames are in doubt. Nothing is lost, nothing twice.
"""
import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import chain as lib  # pylint: disable=wrong-import-position
import cutter  # pylint: disable=wrong-import-position
import test_spool as spool  # pylint: disable=wrong-import-position
from chain import check, system  # pylint: disable=wrong-import-position

BATCHES = lib.BATCHES // 10
KILL_S = (0.5, 4)
GRACE = "1s"  # sources are given up, too, and come back
KILL_FOR_S = 60  # then it may come to rest, within
REST_S = 120


def victims(chain, forward, level, seed):
    return [spool.Victim(chain, forward, level, chain.folder / f"{level}-{i}", seed + i, KILL_S, GRACE) for i in range(2)]


def relay(workers, seed, cut_after):
    return cutter.Cutter([cutter.address_of(victim.worker) for victim in workers], seed, cut_after=cut_after)


def test():
    with system.System() as chain:
        master = chain.master()
        upper = victims(chain, master.endpoint, 2, spool.SEED)
        between = relay(upper, spool.SEED, 1 << 14)
        lower = victims(chain, between.endpoint, 1, spool.SEED + 2)
        front = relay(lower, spool.SEED + 1, 4 << 20)
        programs = [lib.Program(chain, front.endpoint, BATCHES) for _ in range(2)]
        own = {}
        driver = threading.Thread(target=spool.drive, args=(programs, own), daemon=True)
        driver.start()
        try:
            limit = time.monotonic() + KILL_FOR_S
            while driver.is_alive() and time.monotonic() < limit:
                for victim in upper + lower:
                    victim.kill_when_due()
                time.sleep(0.01)
            front.is_calm = between.is_calm = True
            driver.join(REST_S)
            check(not driver.is_alive(), "the programs do not end")
        finally:
            for program in programs:
                program.end()
        for victim in lower + upper:
            chain.stop(victim.worker)
        chain.stop(master)
        kills = [victim.kills for victim in upper + lower]
        found, ledger = lib.calls(master.store), lib.report(master.store)["ledger"]
        print(f"killed {kills} times, cut {front.cuts} and {between.cuts} times, {front.cuts_in_doubt} and {between.cuts_in_doubt} of them in doubt\n"
              f"the programs' own counts {own}\nthe master's             {found}\nledger {ledger}")
        check(found == own, "calls are missing, or counted twice")
        check(ledger["balanced"] and ledger["lost"] == 0 and ledger["held"] == 0, "the ledger does not balance")
        check(min(kills) >= 2 and front.cuts_in_doubt + between.cuts_in_doubt >= 10, "too little happened")


if __name__ == "__main__":
    system.main(test)
