# SPDX-License-Identifier: Apache-2.0
"""Connections break all the time, between living processes, with frames on their way: nothing is lost, nothing is counted twice.

Programs send to two workers of level 1, these to two of level 2, these to the master; between all of them stands a relay that cuts
connections, makes their senders deaf before, and sends each anew to any of the receivers. Then the same with workers that do not
ask the register (--custody none): that must go wrong, or this test tests nothing.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import chain as lib  # pylint: disable=wrong-import-position
import cutter  # pylint: disable=wrong-import-position
from chain import check, system  # pylint: disable=wrong-import-position

PROGRAMS = 2
BATCHES = lib.BATCHES // 8
SEED = int(os.environ.get("MR_TEST_SEED", "7"))


def run(custody, judge):
    """Gives judge() the programs' own counts, added up, the master's, and its ledger, while the servers' logs are there to be shown."""
    with system.System() as chain:
        master = chain.master()
        options = ("--custody", custody, "--source-grace", "60s")
        upper = [chain.worker(master.endpoint, *options, level=2) for _ in range(2)]
        between = cutter.Cutter([cutter.address_of(worker) for worker in upper], SEED, cut_after=1 << 13)
        lower = [chain.worker(between.endpoint, *options) for _ in range(2)]
        front = cutter.Cutter([cutter.address_of(worker) for worker in lower], SEED + 1, cut_after=4 << 20)
        programs = [lib.Program(chain, front.endpoint, BATCHES) for _ in range(PROGRAMS)]
        own = {}
        try:
            for phase in range(1, lib.PHASES + 1):
                for program in programs:
                    program.wait_mark(phase)
                    program.go_on()
            front.is_calm = True  # or the end of a program might not find room within its time-out
            for program in programs:
                for name, count in program.own_counts().items():
                    own[name] = own.get(name, 0) + count
        finally:
            for program in programs:
                program.end()
        between.is_calm = True
        for worker in lower + upper:
            chain.stop(worker)
        chain.stop(master)
        for name, relay in (("level 1", front), ("level 2", between)):
            print(f"--custody {custody}: {relay.cuts} connections to {name} cut, {relay.cuts_in_doubt} of them with frames in doubt")
        judge(own, lib.calls(master.store), lib.report(master.store)["ledger"], (front, between))


def judge_with(own, found, ledger, relays):
    print(f"the programs' own counts {own}\nthe master's             {found}\nledger {ledger}")
    for relay, enough in zip(relays, (20, 8)):
        check(relay.cuts >= enough, f"only {relay.cuts} cuts")
        check(relay.cuts_in_doubt >= 0.5 * relay.cuts, f"only {relay.cuts_in_doubt} of {relay.cuts} cuts in doubt")
    check(found == own, "calls are missing, or counted twice")
    check(ledger["last"] == 2 * sum(own.values()), f"{ledger['last']} events, not two per call")
    check(ledger["balanced"] and ledger["lost"] == 0 and ledger["held"] == 0, "the ledger does not balance")


def judge_without(own, found, _ledger, _relays):
    print(f"without the register: own {own}\n                     found {found}")
    check(found != own, "without the register nothing went wrong: this test finds nothing")


def test():
    run("register", judge_with)
    run("none", judge_without)


if __name__ == "__main__":
    system.main(test)
