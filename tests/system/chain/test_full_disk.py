# SPDX-License-Identifier: Apache-2.0
"""A spool on a disk of its own, a small tmpfs, that others fill up while programs run, over and over: back pressure reaches a program by its
policy, block or drop; what is dropped is counted with its reason; nothing else is lost, nothing comes twice, the ledger balances; and
all goes on when there is room again, also where the worker was killed while there was none.

Without root nothing can be mounted: skipped.
"""
import mmap
import os
import re
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "faults"))
import account  # pylint: disable=wrong-import-position
from cast import FUNCTIONS, Told, WORDS, check, system  # pylint: disable=wrong-import-position

DISK_KIB = 96 << 10  # two lanes need a third of it
BATCHES = {"block": 100, "drop": 400}  # of a thread, a millisecond: a ring fills in less than a second
WAIT_S = 120
ROUNDS = 3
SAID = "it is full, or its disk is"


class Disk:
    """A tmpfs, and a file in it that is none of ours."""

    def __init__(self, chain):
        self.folder = chain.folder / "disk"
        self.folder.mkdir()
        self.other = self.folder / "other"
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_KIB}k", "millrace-test", self.folder], capture_output=True, text=True,
                              check=False)
        if made.returncode != 0:
            print(f"no tmpfs can be mounted here, which takes root: {made.stderr.strip()}: skipped")
            self.folder.rmdir()
            sys.exit(system.SKIP)

    def free(self):
        about = os.statvfs(self.folder)
        return about.f_bavail * about.f_frsize

    def fill(self):
        with open(self.other, "ab", buffering=0) as file:
            try:
                while file.write(bytes(1 << 16)):
                    pass
            except OSError:
                pass  # that is it

    def end(self):
        subprocess.run(["umount", "-l", self.folder], check=True)


class Program:
    """tests/system/faults/counting.c; what it counts can be read while it runs, or stands still."""

    LIVES = 0

    def __init__(self, chain, endpoint, policy):
        Program.LIVES += 1
        self.number, self.policy = Program.LIVES, policy
        binary = system.compile_program(chain.folder / f"counting{self.number}", [system.SOURCE / "tests/system/faults/counting.c"],
                                        f"-DLIFE={self.number}")
        file = chain.folder / f"told{self.number}"
        file.write_bytes(bytes(8 * WORDS))
        with open(file, "r+b") as opened:
            self.map = mmap.mmap(opened.fileno(), 8 * WORDS)
        environment = chain.environment(MILLRACE_ENDPOINT=endpoint, MILLRACE_POLICY=policy, MILLRACE_BLOCK_TIMEOUT="60s",
                                        MILLRACE_EXIT_TIMEOUT="60s", MILLRACE_RING_SIZE="64K")
        self.process = subprocess.Popen([binary, str(file), str(BATCHES[policy])], env=environment, stdin=subprocess.DEVNULL)

    def told(self):
        return Told(self.map[:])

    def leaves(self):
        return self.told().calls["leaf"]

    def wait_going_on(self):
        before = self.leaves()
        system.wait_until(lambda: self.leaves() > before + 100_000, WAIT_S, f"the program with {self.policy} goes on")

    def stands_still(self):
        before = self.leaves()
        time.sleep(1)
        return self.leaves() == before

    def finish(self):
        self.map[:8] = struct.pack("<Q", 1)
        check(self.process.wait(WAIT_S) == 0, f"the program ended with {self.process.returncode}")
        return self.told()


def start_worker(chain, master, disk, listen="127.0.0.1:0"):
    return chain.worker(master.endpoint, "--spool", str(disk.folder / "spool"), "--source-grace", "120s", "--metrics", "127.0.0.1:0",
                        "--drain-timeout", "60s", listen=listen)


def start_on_full(chain, master, disk, listen):
    """It says so: when it takes frames, or by not starting; None then. What is in the spool stays there."""
    try:
        worker = start_worker(chain, master, disk, listen)
    except system.Failure as refusal:
        check("disk is full" in str(refusal), str(refusal))
        print("a worker does not start on the full disk, and says why")
        return None
    system.wait_until(lambda: SAID in worker.log.read_text(), WAIT_S, "the worker that was started on a full disk says so")
    return worker


def stalls(worker):
    return float(re.search(r'^millrace_connections\{event="stalls"\} (\S+)$', worker.get_text("/metrics"), re.M).group(1))


def fill_up(disk, worker, programs):
    """Until back pressure has reached every program. What is given back meanwhile, others take."""
    lost = programs["drop"].told().lost

    def has_reached():
        disk.fill()
        return programs["block"].stands_still() and programs["drop"].told().lost > lost
    system.wait_until(has_reached, WAIT_S, "back pressure at both programs")
    check(SAID in worker.log.read_text(), "the worker does not say why")
    before = programs["drop"].leaves()
    system.wait_until(lambda: programs["drop"].leaves() > before, WAIT_S, "the program with drop is not held up")
    print(f"full: {disk.free()} bytes free, {stalls(worker):.0f} stalls so far; the one program stands still, the other has lost "
          f"{programs['drop'].told().lost} events so far")


def run(chain, disk):
    master = chain.master()
    worker = start_worker(chain, master, disk)
    programs = {policy: Program(chain, worker.endpoint, policy) for policy in BATCHES}
    try:
        for number in range(ROUNDS):
            for program in programs.values():
                program.wait_going_on()
            fill_up(disk, worker, programs)
            if number == ROUNDS - 1:
                worker.process.kill()
                worker.process.wait()
                listen = worker.ready["listen"]
                worker = start_on_full(chain, master, disk, listen)
            disk.other.unlink()
            worker = worker or start_worker(chain, master, disk, listen)
        for program in programs.values():
            program.wait_going_on()
        told = {policy: program.finish() for policy, program in programs.items()}
    finally:
        for program in programs.values():
            program.process.kill()
            program.process.wait()
    chain.stop(worker)
    chain.stop(master)
    return master, programs, told


def compare(master, programs, told):
    report = account.report(system.MILLRACE, master.store)
    found, ledger = account.found_calls(report["functions"]), report["ledger"]
    print(f"ledger {ledger}")
    block, drop = (found[programs[policy].number] for policy in ("block", "drop"))
    print(f"block: own {told['block'].calls}\n     found {block}\ndrop:  own {told['drop'].calls}\n     found {drop}")
    check(all(block[name] == told["block"].calls[name] for name in FUNCTIONS), "calls are missing, or counted twice")
    check(all(drop[name] <= told["drop"].calls[name] for name in FUNCTIONS), "calls are counted twice")
    check(ledger["balanced"] and ledger["held"] == 0, "the ledger does not balance")
    events = sum(2 * sum(one.calls.values()) for one in told.values())
    check(ledger["last"] == events == ledger["reduced"] + ledger["lost"], f"{events} events were made: {ledger}")
    check(ledger["lost"] > 0 and told["block"].lost == 0, "events of the wrong program were lost, or none")


def test():
    with system.System() as chain:
        disk = Disk(chain)
        try:
            compare(*run(chain, disk))
        finally:
            for server in chain.servers:
                server.process.kill()
                server.process.wait()
            disk.end()


if __name__ == "__main__":
    system.main(test)
