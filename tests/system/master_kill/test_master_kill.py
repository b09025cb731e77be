# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the master, again and again, while a real program runs through a worker.

1. The program pauses after its first phase, everything of it is in the store. The worker is stopped (SIGSTOP) so that it
   cannot send anything again; the master is killed and started on the same store and port: the first phase's calls are
   all there, nothing that was acknowledged is missing.
2. While the program runs on, the master is killed in mid-run and started again, several times.
3. At the end the calls of every function equal the program's own arithmetic, none is lost, and the ledger balances.
"""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

PHASES = 3
BATCHES = 60_000 if os.environ.get("MR_SANITIZE") else 600_000  # per phase and thread; 28 events each
KILLS = 3  # in mid-run
GROWTH = 1_000_000 // (10 if os.environ.get("MR_SANITIZE") else 1)  # calls of leaf between two kills


def report(store):
    run = subprocess.run([system.MILLRACE, "report", store, "--json", "--functions", "1000"], capture_output=True,
                         text=True, check=False)
    check(run.returncode == 0, f"millrace report: {run.stderr}")
    return json.loads(run.stdout)


def calls(store):
    """function -> calls that returned, of what is in the store."""
    return {row["name"]: row["ok"] + row["failed"] for row in report(store)["functions"]}


def expected(phases):
    """After so many phases, while main is still open."""
    batch = phases * 2 * BATCHES
    odd = batch // 2
    return {"phase": phases, "work": 2 * phases, "batch": batch, "odd_batch": odd, "branch": batch + odd,
            "leaf": 7 * (batch + odd) + odd}


class Program:
    def __init__(self, chain, endpoint):
        binary = system.compile_program(chain.folder / "counter",
                                        [system.SOURCE / "tests/system/master_kill/counter.c"])
        environment = chain.environment(MILLRACE_ENDPOINT=endpoint, MILLRACE_POLICY="block",
                                        MILLRACE_BLOCK_TIMEOUT="60s", MILLRACE_EXIT_TIMEOUT="60s")
        self.process = subprocess.Popen([binary, str(PHASES), str(BATCHES)], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def wait_mark(self, number):
        line = self.process.stdout.readline()
        check(line == f"mark {number}\n", f"the program said {line!r}, not mark {number}")

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def own_counts(self):
        rows = [line.split() for line in self.process.stdout.read().splitlines()]
        check(self.process.wait(120) == 0, f"the program ended with {self.process.returncode}")
        return {name: int(count) for name, count in rows}


def restart(chain, master):
    """Kills the master and starts it again on the same store and ports."""
    master.process.kill()
    master.process.wait()
    return chain.master(store=master.store, listen=master.ready["listen"], http=master.ready["http"])


def kill_while_quiet(chain, master, worker):
    system.wait_until(lambda: expected(1).items() <= calls(master.store).items(), 120, "phase 1 in the store")
    os.kill(worker.pid, signal.SIGSTOP)
    try:
        master = restart(chain, master)
        found = calls(master.store)
        missing = {name: (count, found.get(name)) for name, count in expected(1).items() if found.get(name) != count}
        check(not missing, f"after kill -9 of the master, (expected, found): {missing}")
        print(f"killed while quiet: {sum(expected(1).values())} calls of phase 1, all still there")
    finally:
        os.kill(worker.pid, signal.SIGCONT)
    return master


def kill_in_mid_run(chain, master):
    for _ in range(KILLS):
        before = calls(master.store)["leaf"]
        end = expected(2)["leaf"]  # there the program waits for the next line
        system.wait_until(lambda: calls(master.store)["leaf"] >= min(before + GROWTH, end), 120, "more calls")
        seen = calls(master.store)
        master = restart(chain, master)
        now = calls(master.store)
        check(all(now.get(name, 0) >= count for name, count in seen.items()),
              f"less after the restart than before: {seen} then {now}")
        print(f"killed in mid-run: {seen['leaf']} calls of leaf in the store, {now['leaf']} after the restart, "
              f"{end} at the end of the phase")
    return master


def test():
    with system.System() as chain:
        master = chain.master()
        worker = chain.worker(master.endpoint, "--drain-timeout", "60s")
        program = Program(chain, worker.endpoint)
        try:
            program.wait_mark(1)
            master = kill_while_quiet(chain, master, worker)
            program.go_on()
            master = kill_in_mid_run(chain, master)
            for phase in range(2, PHASES + 1):
                program.wait_mark(phase)
                program.go_on()
            own = program.own_counts()
        finally:
            program.process.kill()
            program.process.wait()
        chain.stop(worker)
        chain.stop(master)
        found, ledger = calls(master.store), report(master.store)["ledger"]
        print(f"the program's own counts {own}\nthe master's            {found}\nledger {ledger}")
        check(own == found, "the master's counts are not the program's")
        check(ledger["balanced"] and ledger["lost"] == 0 and ledger["held"] == 0, "the ledger does not balance")
        check(ledger["last"] == 2 * sum(own.values()), f"{ledger['last']} events, not two per call")


if __name__ == "__main__":
    system.main(test)
