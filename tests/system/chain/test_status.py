# SPDX-License-Identifier: Apache-2.0
"""A call that has said that it failed is still open when its worker is killed; started again on its spool, the worker knows it."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import chain as lib  # pylint: disable=wrong-import-position
from chain import check, system  # pylint: disable=wrong-import-position

STEPS = 100


def test():
    with system.System() as chain:
        binary = system.compile_program(chain.folder / "status", [system.SOURCE / "tests/system/chain/status.c"])
        options = ("--spool", str(chain.folder / "spool"), "--source-grace", "60s")
        master = chain.master()
        worker = chain.worker(master.endpoint, *options)
        environment = chain.environment(MILLRACE_ENDPOINT=worker.endpoint, MILLRACE_POLICY="block",
                                        MILLRACE_BLOCK_TIMEOUT="60s", MILLRACE_EXIT_TIMEOUT="60s")
        with subprocess.Popen([binary], env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
            check(program.stdout.readline() == "failing\n", "the program does not fail")
            # Of the same thread, behind its word that it failed: that has gone up, and nobody keeps it for another time.
            for _ in range(2):
                lib.wait_growth(master.store, "step", STEPS)
            worker.process.kill()
            worker.process.wait()
            worker = chain.worker(master.endpoint, *options, listen=worker.ready["listen"])
            lib.wait_growth(master.store, "step", STEPS)
            program.stdin.close()
            check(program.wait(120) == 0, f"the program ended with {program.returncode}")
        chain.stop(worker)
        chain.stop(master)
        rows, ledger = lib.functions(master.store), lib.report(master.store)["ledger"]
        print(f"{rows}\nledger {ledger}")
        for name, failed in (("handle", 1), ("recover", 0), ("step", 0), ("main", 0)):
            check(rows[name]["failed"] == failed, f"{rows[name]['failed']} calls of {name} failed, not {failed}")
        check(ledger["balanced"] and ledger["lost"] == 0, "something is lost")


if __name__ == "__main__":
    system.main(test)
