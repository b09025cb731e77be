# SPDX-License-Identifier: Apache-2.0
"""Lanes even out over the threads of one worker while their senders go on: two busy programs whose lanes share a driver, two quiet ones at
the other. A lane goes over; nothing is lost by it, in memory or with a spool: the master has the calls that the programs counted, and its
ledger balances. A lane that is busy alone, and lanes that are told to stay, stay."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import level  # pylint: disable=wrong-import-position
from level import check, system  # pylint: disable=wrong-import-position

BUSY = {"STEADY_PER_TURN": "2000", "STEADY_TURN_MS": "1"}
QUIET = {"STEADY_PER_TURN": "1", "STEADY_TURN_MS": "200"}
# A driver is hot when it is busy for a hundredth of a second: the machine may be slow, and the programs may get little of it.
OPTIONS = ("--lanes", "4", "--drivers", "2", "--lane-of", "sender", "--metrics", "127.0.0.1:0")
HOT = "1"


def drivers(worker):
    """Lane -> (its driver, its senders)."""
    found = re.findall(r'^millrace_lane_senders\{graph="lane(\d)",driver="(\d)"\} (\d+)$', worker.get_text("/metrics"), flags=re.M)
    return {int(lane): (int(driver), int(senders)) for lane, driver, senders in found}


def busy_shares(worker):
    return [float(share) for share in re.findall(r'^millrace_driver_busy_share\{driver="\d"\} (\S+)$', worker.get_text("/metrics"), flags=re.M)]


def passed(worker):
    return int(level.metrics(worker)["millrace_lanes_passed_total"])


def start_one_by_one(programs, worker, loads):
    """Each in the next lane, as it has come before the next does: even ones at the first driver, odd ones at the other."""
    for count, load in enumerate(loads, 1):
        programs.start(worker.endpoint, **load)
        system.wait_until(lambda wanted=count: level.senders(worker) == wanted, level.WAIT_S, f"{count} senders")
    return drivers(worker)


def ended(chain, master, worker, programs):
    printed = programs.end()
    chain.stop(worker)
    chain.stop(master)
    level.check_counts(master, printed)


def hot_ones_part(chain, *options, listen="127.0.0.1:0", loads=(BUSY, QUIET, BUSY, QUIET)):
    master = chain.master()
    worker = chain.worker(master.endpoint, *OPTIONS, "--driver-hot", HOT, *options, listen=listen)
    programs = level.Programs(chain, level.STEADY)
    try:
        check(passed(worker) == 0, "lanes without senders stay")
        before = start_one_by_one(programs, worker, loads)
        print(f"lanes, their drivers and senders: {before}; busy {busy_shares(worker)}")
        # Where programs start slowly, one may be moved before the last has come, which then goes to the driver that has less.
        check(passed(worker) > 0 or all(senders == 1 for _, senders in before.values()), "each sender has a lane")
        system.wait_until(lambda: parted(worker), level.WAIT_S, "the busy ones are at two drivers")
        print(f"then: {drivers(worker)} after {passed(worker)} moves; busy {busy_shares(worker)}")
        check(passed(worker) >= 1, "moves are counted")
        ended(chain, master, worker, programs)
    finally:
        programs.kill()


def parted(worker):
    lanes = drivers(worker)
    return passed(worker) >= 1 and lanes[0][0] != lanes[2][0]


def in_memory(chain):
    hot_ones_part(chain, "--spool", "none")


def with_a_spool(chain):
    hot_ones_part(chain, "--spool", str(chain.folder / "spool"), listen=f"127.0.0.1:{level.free_port()}")


def by_application(chain):
    """Two busy ones, of which each has a lane of its own because it is another application."""
    loads = [{**load, "MILLRACE_APP": f"app{i // 2}"} for i, load in enumerate((BUSY, QUIET, BUSY, QUIET))]
    hot_ones_part(chain, "--lane-of", "app", "--spool", "none", loads=loads)


def together(chain):
    """Of one application, those at a driver have a lane together."""
    master = chain.master()
    worker = chain.worker(master.endpoint, *OPTIONS, "--driver-hot", HOT, "--lane-of", "app", "--spool", "none")
    programs = level.Programs(chain, level.STEADY)
    try:
        before = start_one_by_one(programs, worker, [QUIET, QUIET, QUIET, QUIET])
        check(sorted(senders for _, senders in before.values()) == [0, 0, 2, 2], f"a lane for each driver: {before}")
        programs.end()
        chain.stop(worker)
        chain.stop(master)
    finally:
        programs.kill()


def each_filter_on_a_thread(chain):
    """Then a driver turns decode alone, and hands on; it is moved in the same way."""
    hot_ones_part(chain, "--spool", "none", "--placement", "threads")


def who_stays(chain):
    """A busy lane that is alone at its driver, as nothing would be gained; and all, where they are told to."""
    for loads, hot in (([BUSY, QUIET], HOT), ([BUSY, QUIET, BUSY, QUIET], "0")):
        master = chain.master(store=chain.folder / f"store-{len(loads)}")
        worker = chain.worker(master.endpoint, *OPTIONS, "--driver-hot", hot, "--spool", "none")
        programs = level.Programs(chain, level.STEADY)
        try:
            before = start_one_by_one(programs, worker, loads)
            seen = [level.metrics(worker)["millrace_forward_acked_total"]]
            while len(seen) < 5:  # so many seconds of work at least, told by what went up
                system.wait_until(lambda: busy_shares(worker)[0] > int(HOT) / 100, level.WAIT_S, "the first driver is hot")
                system.wait_until(lambda: level.metrics(worker)["millrace_forward_acked_total"] > seen[-1] + 10, level.WAIT_S, "work")
                seen.append(level.metrics(worker)["millrace_forward_acked_total"])
            after = drivers(worker)
            if hot == "0":
                check(passed(worker) == 0 and after == before, f"they were told to stay: {after}")
            else:
                check(after[0][0] == before[0][0], f"the busy one is as busy elsewhere: {after}")
            ended(chain, master, worker, programs)
        finally:
            programs.kill()


def test():
    for case in (in_memory, with_a_spool, by_application, together, each_filter_on_a_thread, who_stays):
        print("---", case.__name__)
        with system.System() as chain:
            case(chain)


if __name__ == "__main__":
    system.main(test)
