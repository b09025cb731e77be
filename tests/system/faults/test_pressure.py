# SPDX-License-Identifier: Apache-2.0
"""A master that does not move: workers below it merge longer and do not grow, the program does not notice, and nothing is lost.

Two levels, each with the smallest outbox and a delta a millisecond, so that outboxes fill within seconds. The master is stopped (SIGSTOP)
until the worker above has taken it for dead twice, with frames that the master was about to commit. From the first time on, workers may
not grow, and the program goes on. Then the master goes on, and all that was merged arrives, once.
"""
import mmap
import os
import re
import signal
import struct
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import account  # pylint: disable=wrong-import-position
from cast import FUNCTIONS, Told, WORDS, check, system  # pylint: disable=wrong-import-position

SMALL = ("--outbox", "1M", "--max-frame", "512K", "--delta-interval", "1ms", "--metrics", "127.0.0.1:0", "--drain-timeout", "60s")
SLACK_KIB = 8 << 10  # windows of 1 s: at most 64 are open, some 0.3 MiB each here
BATCHES = 20
TOO_LONG = "nothing was heard of the receiver for too long"


class Program:
    def __init__(self, chain, endpoint):
        binary = system.compile_program(chain.folder / "counting", [system.SOURCE / "tests/system/faults/counting.c"], "-DLIFE=1")
        file = chain.folder / "told"
        file.write_bytes(bytes(8 * WORDS))
        with open(file, "r+b") as opened:
            self.map = mmap.mmap(opened.fileno(), 8 * WORDS)
        environment = chain.environment(MILLRACE_ENDPOINT=endpoint, MILLRACE_POLICY="block", MILLRACE_BLOCK_TIMEOUT="60s",
                                        MILLRACE_EXIT_TIMEOUT="60s")
        self.process = subprocess.Popen([binary, str(file), str(BATCHES)], env=environment, stdin=subprocess.DEVNULL)

    def told(self):
        return Told(self.map[:])

    def wait_phases(self, count):
        """Until it has begun so many more."""
        before = self.told().calls["phase"]
        system.wait_until(lambda: self.told().calls["phase"] >= before + count, 120, f"{count} phases of the program")

    def finish(self):
        self.map[:8] = struct.pack("<Q", 1)
        check(self.process.wait(120) == 0, f"the program ended with {self.process.returncode}")
        return self.told().calls


def metric(worker, name):
    with urllib.request.urlopen(worker.url + "/metrics", timeout=system.QUERY_S) as answer:
        return int(re.search(rf"^millrace_{name} (\d+)", answer.read().decode(), re.MULTILINE).group(1))


def look(workers, when):
    rows = [(worker.rss_kib(), metric(worker, "forward_held")) for worker in workers]
    print(f"{when}: " + "; ".join(f"level {i + 1}: {rss} KiB, {held} frames held" for i, (rss, held) in enumerate(rows)))
    return rows


def wait_given_up(worker, count, program):
    """Until the worker has taken the master for dead so often."""
    system.wait_until(lambda: len(re.findall(f"lost: .*{TOO_LONG}|{TOO_LONG}; trying", worker.log.read_text())) >= count, 120,
                      f"{worker.name} gives its connection up")
    program.wait_phases(2)


def run(chain):
    master = chain.master()
    upper = chain.worker(master.endpoint, *SMALL, level=2)
    lower = chain.worker(upper.endpoint, *SMALL)
    program = Program(chain, lower.endpoint)
    try:
        program.wait_phases(3)
        look([lower, upper], "before")
        os.kill(master.pid, signal.SIGSTOP)
        try:
            wait_given_up(upper, 1, program)
            first = look([lower, upper], "the master was given up once")
            wait_given_up(upper, 3, program)
            second = look([lower, upper], "again")
        finally:
            os.kill(master.pid, signal.SIGCONT)
        program.wait_phases(2)
        own = program.finish()
    finally:
        program.process.kill()
        program.process.wait()
    for server in (lower, upper):
        chain.stop(server)
    chain.stop(master)
    return own, master.store, first, second


def test():
    with system.System() as chain:
        own, store, first, second = run(chain)
        report = account.report(system.MILLRACE, store)
        found, ledger = account.found_calls(report["functions"])[1], report["ledger"]
        print(f"the program's own counts {own}\nthe master's            {found}\nledger {ledger}")
        check(first[1][1] > 0, "nothing was held while the master did not move")
        for level, (before, after) in enumerate(zip(first, second), 1):
            check(after[0] <= before[0] + SLACK_KIB, f"level {level} grew from {before[0]} to {after[0]} KiB")
        check(all(found[name] == own[name] for name in FUNCTIONS), "calls are missing, or counted twice")
        check(ledger["balanced"] and ledger["lost"] == 0 and ledger["held"] == 0, "the ledger does not balance")


if __name__ == "__main__":
    system.main(test)
