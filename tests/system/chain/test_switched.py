# SPDX-License-Identifier: Apache-2.0
"""Recording is switched off and on again inside a function that goes on, and the worker is killed before what follows could be sure, and goes
on from its spool: what that function calls is no entry point, before the kill and behind it. Nothing is lost."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import chain as lib  # pylint: disable=wrong-import-position
from chain import check, system  # pylint: disable=wrong-import-position

STEPS = 5  # a line; all together less than the 64 call trees after which a base may be sure


def start(chain, binary, worker):
    environment = chain.environment(MILLRACE_ENDPOINT=worker.endpoint, MILLRACE_POLICY="block", MILLRACE_BLOCK_TIMEOUT="60s", MILLRACE_CONTROL="1")
    return subprocess.Popen([binary], env=environment, text=True, stdin=subprocess.PIPE, preexec_fn=system.die_with_parent)


def go_on(program, master, lines):
    """One more line, so many in all, and until the master has what it makes."""
    program.stdin.write("\n")
    program.stdin.flush()
    system.wait_until(lambda: lib.calls(master.store).get("step", 0) == lines * STEPS, 60, f"the steps of {lines} lines")


def switch(chain, program, what):
    run = chain.run([system.MILLRACE, "attach", str(program.pid), what])
    check(run.returncode == 0, f"attach {what}: {run.stderr}")


def kill(chain, master, worker, spool):
    worker.process.kill()
    worker.process.wait()
    return chain.worker(master.endpoint, "--spool", spool, listen=worker.ready["listen"])


def run(program, chain, master, worker, spool):
    go_on(program, master, 1)
    switch(chain, program, "--off")
    switch(chain, program, "--on")
    go_on(program, master, 2)
    for lines in (3, 4):
        worker = kill(chain, master, worker, spool)
        go_on(program, master, lines)
    program.stdin.close()
    check(program.wait(60) == 0, f"the program ended with {program.returncode}")
    return worker


def test():
    with system.System() as chain:
        binary = system.compile_program(chain.folder / "switched", [system.SOURCE / "tests/system/chain/switched.c"], "-fno-inline")
        spool = str(chain.folder / "spool")
        master = chain.master()
        worker = chain.worker(master.endpoint, "--spool", spool)
        program = start(chain, binary, worker)
        try:
            worker = run(program, chain, master, worker, spool)
        finally:
            program.kill()
            program.wait()
        chain.stop(worker)
        chain.stop(master)
        told = lib.report(master.store)
        entries = {entry["name"]: entry for entry in told["entries"]}
        print({name: (entry["coverage"], entry["shapes"]) for name, entry in entries.items()}, told["ledger"])
        check(told["ledger"]["balanced"] and told["ledger"]["lost"] == 0, "the ledger does not balance")
        check(lib.calls(master.store)["leaf"] == 4 * STEPS, "calls are missing, or too many")
        step = entries["step"]
        check(step["coverage"]["incomplete"] == 3 * STEPS and step["shapes"] == 0, f"a false entry point: {step}")


if __name__ == "__main__":
    system.main(test)
