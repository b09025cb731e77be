# SPDX-License-Identifier: Apache-2.0
"""The kinds of faults: each begins at a member, lasts, and ends; a table at the end of the file names them."""
import signal
import time

from cast import HAS_SPOOL, system
from hosts import Refused


class Fault:
    """One fault, from begin() to end(); `seconds` is how long it lasts."""

    name, targets = "", ()
    shortest, longest, longest_full = 0.3, 1.5, 3.0

    def __init__(self, stage, member, random):
        self.stage, self.member, self.random = stage, member, random
        self.seconds = random.uniform(self.shortest, self.longest_full if stage.is_full else self.longest)

    @classmethod
    def absent(cls, stage):  # pylint: disable=unused-argument
        """Why it cannot be done here; None: it can."""
        return None

    @classmethod
    def candidates(cls, stage):
        """Members it can befall, that live and are left alone by others."""
        return [m for m in stage.members if m.kind in cls.targets and m.fault is None and m.is_alive()]

    def begin(self, now):
        raise NotImplementedError

    def end(self, now):
        """After it the member lives, or will by its tend()."""

    def is_over(self):
        """Whether what was begun has come to its end, after `seconds`."""
        return True


class Kill(Fault):
    def begin(self, now):
        self.member.kill(now, self.seconds)


class KillProgram(Kill):
    name, targets = "kill -9 program", ("program",)


class KillWorker1(Kill):
    name, targets = "kill -9 worker, level 1", ("worker1",)

    @classmethod
    def absent(cls, stage):
        return None if HAS_SPOOL else "workers have no spool: what a killed one held is lost, and in no ledger"


class KillWorker2(KillWorker1):
    name, targets = "kill -9 worker, level 2", ("worker2",)


class KillMaster(Kill):
    name, targets = "kill -9 master", ("master",)


class Stop(Fault):
    """Not long enough to be noticed, or longer than its neighbours wait."""

    name, targets = "SIGSTOP", ("program", "worker1", "worker2", "master", "balancer")
    longest, longest_full = 7.0, 30.0

    def begin(self, now):
        self.pid = self.member.process.pid
        self.member.process.send_signal(signal.SIGSTOP)

    def end(self, now):
        if self.member.is_alive() and self.member.process.pid == self.pid:
            self.member.process.send_signal(signal.SIGCONT)


class LinkCut(Fault):
    name, targets = "link cut", ("program", "worker1", "worker2", "master", "balancer")
    longest, longest_full = 4.0, 12.0

    def begin(self, now):
        self.member.host.link(False)

    def end(self, now):
        self.member.host.link(True)


class Deaf(Fault):
    """What it says is lost, its acknowledgements with it; what is said to it arrives."""

    name, targets = "one way cut", ("worker1", "worker2", "master")
    shortest, longest, longest_full = 1.0, 4.0, 12.0

    @classmethod
    def absent(cls, stage):
        return None if stage.lan.has_nft else "no nft here, or no nf_tables in the kernel"

    def begin(self, now):
        self.member.host.drop("out", 1)

    def end(self, now):
        self.member.host.drop("out", 0)


class Loss(Deaf):
    name, targets = "loss", ("program", "worker1", "worker2", "master", "balancer")

    def begin(self, now):
        self.member.host.drop("in", self.random.uniform(0.02, 0.4))

    def end(self, now):
        self.member.host.drop("in", 0)


class Delay(Fault):
    name, targets = "delay", ("program", "worker1", "worker2", "master", "balancer")
    longest, longest_full = 3.0, 6.0

    @classmethod
    def absent(cls, stage):
        return None if stage.lan.has_tc else "no tc here, or no queues in the kernel"

    def begin(self, now):
        self.member.host.delay(self.random.randrange(20, 300))

    def end(self, now):
        self.member.host.delay(0)


class DiskFull(Fault):
    name, targets = "disk full", ("master",)

    def begin(self, now):
        self.filler = self.member.disk / "filler"
        try:
            self.member.host.run("dd", "if=/dev/zero", f"of={self.filler}", "bs=1M")
        except Refused as full:
            system.check("No space left" in str(full), str(full))

    def end(self, now):
        self.member.host.run("rm", "-f", str(self.filler))


class ClockStep(Fault):
    """Forward or back, by up to an hour, and back again."""

    name, targets = "clock step", ("program", "worker1", "worker2", "master")

    @classmethod
    def absent(cls, stage):
        return None if stage.clock_shim else "sanitizers do not let a library stand before them"

    def begin(self, now):
        self.member.set_clock(self.random.choice([-1, 1]) * 10 ** self.random.uniform(-1, 3.5))

    def end(self, now):
        self.member.set_clock(0)


class Restart(Fault):
    """SIGTERM; it ends by itself, and starts again."""

    name, targets = "restart of the master", ("master",)
    PATIENCE_S = 240

    def begin(self, now):
        self.until = now + self.PATIENCE_S
        self.old = self.member.process
        self.member.due = now + self.seconds
        self.old.terminate()

    def is_over(self):
        gone = self.old.poll() is not None
        system.check(gone or time.monotonic() < self.until,
                     f"{self.member.name} does not end within {self.PATIENCE_S} s of SIGTERM: {self.member.tail()}")
        return gone


class Rolling(Restart):
    name, targets = "rolling restart of workers", ("worker1", "worker2")


KINDS = [KillProgram, KillWorker1, KillWorker2, KillMaster, Stop, LinkCut, Deaf, Loss, Delay, DiskFull, ClockStep, Restart, Rolling]
