# SPDX-License-Identifier: Apache-2.0
"""Programs that are over before their probe is connected, as forked children are, tell how many events they made, as all others do: what
reached the master can be held against it."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

PROGRAMS = 10
CHILDREN = 10  # of each
CALLS = 2  # of each process: main and work; of a child work alone
SOURCES = PROGRAMS * (1 + CHILDREN)
EVENTS = 2 * PROGRAMS * (CALLS + CHILDREN * (CALLS - 1))


def ledger(master):
    told = master.get("/api/v1/ledger?limit=1")
    return told["ledger"], told["stages"]


def test():
    with system.System() as chain:
        program = system.compile_program(chain.folder / "short", [system.SOURCE / "tests/system/chain/short.c"])
        master = chain.master()
        worker = chain.worker(master.endpoint)
        for _ in range(PROGRAMS):
            run = chain.run([program, str(CHILDREN)], endpoint=worker.endpoint)
            check(run.returncode == 0, f"status {run.returncode}: {run.stderr}")
        chain.stop(worker)
        system.wait_until(lambda: ledger(master)[0]["reduced"] == EVENTS, 60, f"{EVENTS} events")
        total, stages = ledger(master)
        print(f"{total}\n{stages}")
        check(stages["sources"] == SOURCES == stages["sources_told"], f"{stages['sources_told']} of {SOURCES} told how many events they made")
        check(total["sent"] == EVENTS and total["balanced"], "what they told is not what came")
        check(" sends " not in worker.log.read_text(), "the log tells of links of which there is nothing to say")
        chain.stop(master)


if __name__ == "__main__":
    system.main(test)
