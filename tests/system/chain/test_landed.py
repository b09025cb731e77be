# SPDX-License-Identifier: Apache-2.0
"""A worker is killed while an exception is on its way out of a function that calls itself, in a destructor of each of its frames, and goes on from
its spool: each frame is left once, and what runs later is called by who called it; nothing of it is an entry point."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import chain as lib  # pylint: disable=wrong-import-position
import test_switched as switched  # pylint: disable=wrong-import-position
from chain import check, system  # pylint: disable=wrong-import-position

LEVELS = 4


def paths(master):
    """Path, by the names of its calls -> how many of it."""
    rows = {row["id"]: row for row in master.get("/api/v1/paths?form=list")["paths"]}
    found = {}
    for row in rows.values():
        names, at = [], row
        while at:
            names.append(at["site"]["name"].split("(")[0].split("::")[-1])
            at = rows.get(at["parent"])
        found["/".join(reversed(names))] = row["calls"]
    return found


def expected():
    """By what the program does."""
    found = {"main": 1, "step": 2}
    for level in range(1, LEVELS + 1):
        dive = "/".join(["dive"] * level)
        found.update({dive: 1, f"{dive}/~Guard": 1, f"{dive}/~Guard/step": 1})
    return found


def run(program, chain, master, worker, spool):
    for steps in range(1, LEVELS + 1):
        program.stdin.write("\n")
        program.stdin.flush()
        system.wait_until(lambda wanted=steps: lib.calls(master.store).get("step", 0) >= wanted, 60, f"{steps} steps")
        worker = switched.kill(chain, master, worker, spool)
    program.stdin.close()
    check(program.wait(60) == 0, f"the program ended with {program.returncode}")
    return worker


def test():
    with system.System() as chain:
        binary = system.compile_program(chain.folder / "landed", [system.SOURCE / "tests/system/chain/landed.cc"], "-O0", compiler="g++")
        spool = str(chain.folder / "spool")
        master = chain.master()
        worker = chain.worker(master.endpoint, "--spool", spool)
        program = switched.start(chain, binary, worker)
        try:
            worker = run(program, chain, master, worker, spool)
        finally:
            program.kill()
            program.wait()
        chain.stop(worker)
        found, ledger = paths(master), master.get("/api/v1/ledger")["ledger"]
        print(found, ledger)
        check(found == expected(), f"not {expected()}")
        check(ledger["balanced"] and ledger["lost"] == 0 and ledger["held"] == 0, "the ledger does not balance")


if __name__ == "__main__":
    system.main(test)
