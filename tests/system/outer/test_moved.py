# SPDX-License-Identifier: Apache-2.0
"""The streams of the server of test_outer.py go to another worker, which is killed and goes on from its spool, all within the time in which a loop
is learned: the call tree of each process, which is open all the while, is incomplete, and no other begins."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_killed as killed  # pylint: disable=wrong-import-position
import test_outer as lib  # pylint: disable=wrong-import-position
from test_outer import check, system  # pylint: disable=wrong-import-position

SECONDS = 5  # of 10


def serve(chain, master, program):
    """The worker that has all at last."""
    spool = str(chain.folder / "spool")
    first, second = chain.worker(master.endpoint), chain.worker(master.endpoint, "--spool", spool)
    environment = chain.environment(MILLRACE_ENDPOINT=f"{first.endpoint},{second.endpoint}", MILLRACE_POLICY="block", MILLRACE_BLOCK_TIMEOUT="60s")
    with subprocess.Popen([program, str(SECONDS), str(lib.REQUESTS)], env=environment, preexec_fn=system.die_with_parent) as server:
        system.wait_until(lambda: killed.handled(master) > 0, 60, "requests")
        chain.stop(first)
        second = killed.kill(chain, master, second, spool)
    check(server.returncode == 0, f"the server ended with {server.returncode}")
    return second


def test():
    with system.System() as chain:
        program = chain.folder / "server"
        system.compile_program(program, [pathlib.Path(__file__).parent / "server.c"], "-O1")
        master = chain.master(store=chain.folder / "store")
        worker = serve(chain, master, program)
        chain.stop(worker)
        chain.stop(master)
        told = lib.report(master.store)
        check(told["ledger"]["balanced"] and told["ledger"]["lost"] == 0, f"{told['ledger']}")
        calls = {row["name"]: row["calls"] for row in told["functions"]}
        check(calls["handle"] == calls["parse"] == calls["answer"], f"calls {calls}")
        for entry in told["entries"]:
            coverage = entry["coverage"]
            check(entry["shapes"] == coverage["whole"] + coverage["folded"] + coverage["paths"] == 0, f"it was open at the move, and at the kill: {entry}")


if __name__ == "__main__":
    system.main(test)
