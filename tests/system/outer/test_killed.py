# SPDX-License-Identifier: Apache-2.0
"""The server of test_outer.py, whose worker is killed while it learns the loops, and once more, and goes on from its spool: they are learned as
early as without, and the same functions are outer frames and entry points."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_outer as lib  # pylint: disable=wrong-import-position
from test_outer import check, system  # pylint: disable=wrong-import-position

KILLS = 2
HANDLED = 100  # requests between kills: some 2 s of each process


def handled(master):
    rows = master.get("/api/v1/paths?form=list")["paths"]
    return sum(row["calls"] for row in rows if row["site"]["name"] == "handle")


def kill(chain, master, worker, spool):
    before = handled(master)
    system.wait_until(lambda: handled(master) >= before + lib.PROCESSES * HANDLED, 60, "requests")
    worker.process.kill()
    worker.process.wait()
    return chain.worker(master.endpoint, "--spool", spool, listen=worker.ready["listen"])


def test():
    with system.System() as chain:
        program, spool = chain.folder / "server", str(chain.folder / "spool")
        system.compile_program(program, [pathlib.Path(__file__).parent / "server.c"], "-O1")
        master = chain.master(store=chain.folder / "store")
        worker = chain.worker(master.endpoint, "--spool", spool)
        environment = chain.environment(MILLRACE_ENDPOINT=worker.endpoint, MILLRACE_POLICY="block", MILLRACE_BLOCK_TIMEOUT="60s")
        with subprocess.Popen([program, str(lib.SECONDS), str(lib.REQUESTS)], env=environment, preexec_fn=system.die_with_parent) as server:
            for _ in range(KILLS):
                worker = kill(chain, master, worker, spool)
        check(server.returncode == 0, f"the server ended with {server.returncode}")
        chain.stop(worker)
        chain.stop(master)
        told = lib.report(master.store)
        check(told["ledger"]["balanced"] and told["ledger"]["lost"] == 0, f"{told['ledger']}")
        lib.check_traces(told, lib.check_calls(told))


if __name__ == "__main__":
    system.main(test)
