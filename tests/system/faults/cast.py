# SPDX-License-Identifier: Apache-2.0
"""Who takes part: master, workers, balancer and programs, each on a host of its own, and kept alive as systemd would.

    member.tend(now)                # starts it when it is due; Failure where it crashed
    member.unacknowledged()         # frames or events that it made and nobody has acknowledged
"""
import http.client
import os
import struct
import sys
import mmap
import signal
import re

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import MILLRACE, Failure, check  # pylint: disable=wrong-import-position

FUNCTIONS = ["run", "phase", "work", "batch", "odd_batch", "branch", "leaf"]
SLOTS, BINS = 3, 512
WORDS = 4 + SLOTS * len(FUNCTIONS) + BINS
CRASHES = {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGFPE, -signal.SIGILL, 128 + signal.SIGABRT}
QUERY_S = 1
AGAIN_S = 0.2  # after an end that nobody asked for
HAS_SPOOL = "--spool" in system.subprocess.run([MILLRACE, "worker", "--help"], capture_output=True, text=True,
                                               check=False).stdout


class Member:
    """A process that is wanted alive, on a host."""

    def __init__(self, stage, host, kind):
        self.stage, self.host, self.kind, self.name = stage, host, kind, host.name
        self.log = stage.folder / f"{self.name}.log"
        self.process, self.due, self.ends = None, 0.0, []  # due None: not wanted
        self.fault = None  # what is being done to it now
        self.clock = None
        if stage.clock_shim:
            self.clock = stage.folder / f"{self.name}.clock"
            self.set_clock(0)

    def set_clock(self, seconds):
        with open(self.clock, "r+b" if self.clock.exists() else "wb") as file:
            file.write(struct.pack("<q", int(seconds * 1e9)))

    def environment(self):
        more = {"LD_PRELOAD": str(self.stage.clock_shim), "CLOCK_STEP_FILE": str(self.clock)} if self.clock else {}
        return self.stage.environment(**more)

    def command(self):
        raise NotImplementedError

    def start(self):
        with open(self.log, "ab") as log:
            self.process = self.host.start(self.command(), env=self.environment(), stdout=log, stderr=log,
                                           cwd=self.stage.folder)

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self, now, pause):
        """SIGKILL; it starts again after the pause."""
        self.process.kill()
        self.process.wait()
        self.process, self.due = None, now + pause

    def tend(self, now):
        if self.process is not None and self.process.poll() is not None:
            status = self.process.returncode
            check(status not in CRASHES, f"{self.name} crashed, status {status}: {self.tail()}")
            self.ends.append((status, self.tail(1)))
            self.process = None
            self.due = None if self.due is None else max(self.due, now + AGAIN_S if status else now)
        if self.process is None and self.due is not None and now >= self.due:
            self.start()

    def tail(self, lines=12):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def get(self, port, path):
        """The answer's bytes, asked from the host itself; None: there is none now."""
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=QUERY_S)
            connection.sock = self.host.socket()
            connection.sock.settimeout(QUERY_S)
            connection.sock.connect(("127.0.0.1", port))
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.read() if answer.status == 200 else None
        except (OSError, http.client.HTTPException):
            return None

    def metric(self, name):
        text = self.get(7481, "/metrics")
        found = text and re.search(rf"^millrace_{name} (\d+)", text.decode(), re.MULTILINE)
        return int(found.group(1)) if found else 0

    def rss_kib(self):
        try:
            with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
                return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))
        except (OSError, AttributeError):
            return 0


class Master(Member):
    """On a small disk of its own."""

    DISK = "256m"

    def __init__(self, stage, host):
        super().__init__(stage, host, "master")
        self.disk = stage.folder / "disk"
        self.disk.mkdir()
        host.run("mount", "-t", "tmpfs", "-o", f"size={self.DISK}", "none", str(self.disk))
        self.store = self.disk / "store"
        self.endpoint = f"tcp://{host.address}:7420"

    def command(self):
        return [MILLRACE, "master", "--listen", self.endpoint, "--insecure", "--http", "127.0.0.1:7480", "--store", str(self.store)]

    def unacknowledged(self):
        return sum(worker.unacknowledged() for worker in self.stage.workers(2))


class Worker(Member):
    def __init__(self, stage, host, level, forward, options):
        super().__init__(stage, host, f"worker{level}")
        self.level, self.forward, self.options = level, forward, options
        self.endpoint = f"tcp://{host.address}:7410"
        if HAS_SPOOL:
            self.options = [*options, "--spool", str(stage.folder / f"{self.name}.spool")]

    def command(self):
        return [MILLRACE, "worker", "--listen", self.endpoint, "--insecure", "--level", str(self.level), "--forward",
                self.forward, "--metrics", "127.0.0.1:7481", *self.options]

    def unacknowledged(self):
        """Above it, or below: what its senders have sent and it has not acknowledged, and what it has not brought up."""
        below = self.stage.programs if self.level == 1 else []
        return self.metric("forward_held") + sum(program.unacknowledged() for program in below)


class Balancer(Member):
    """HAProxy before the workers of level 1, as docs/OPERATIONS.md has it."""

    def __init__(self, stage, host):
        super().__init__(stage, host, "balancer")
        self.clock = None
        self.endpoint = f"tcp://{host.address}:7400"
        self.config = stage.folder / "haproxy.cfg"

    def write(self, workers):
        servers = "".join(f"    server {w.name} {w.endpoint[6:]} check inter 200ms fall 2 rise 1 "
                          "on-marked-down shutdown-sessions\n" for w in workers)
        self.config.write_text(f"""global
    maxconn 1000
defaults
    mode tcp
    timeout connect 500ms
    timeout check 500ms
    timeout client 30s
    timeout server 30s
    retries 3
    option redispatch
listen workers
    bind {self.endpoint[6:]}
    balance leastconn
{servers}""")

    def command(self):
        return ["haproxy", "-db", "-f", str(self.config)]

    def unacknowledged(self):
        return sum(program.unacknowledged() for program in self.stage.programs)


class Told:
    """What a program told in its file; a copy."""

    def __init__(self, data):
        words = struct.unpack(f"<{WORDS}Q", data[:8 * WORDS])
        _, self.written, self.acked, self.lost = words[:4]
        rows = [words[4 + i * len(FUNCTIONS):][:len(FUNCTIONS)] for i in range(SLOTS)]
        self.calls = dict(zip(FUNCTIONS, map(sum, zip(*rows))))
        self.latency = words[-BINS:]


class Life:
    """One run of a program, from its start to its end or kill."""

    def __init__(self, number, policy, told):
        self.number, self.policy, self.map = number, policy, told
        self.is_killed = False
        self.app = f"life{number}"

    def told(self):
        return Told(self.map[:])


class Program(Member):
    LIVES = 0

    def __init__(self, stage, host, endpoint, policy):
        super().__init__(stage, host, "program")
        self.endpoint, self.policy, self.lives, self.binary = endpoint, policy, [], None
        self.prepare()

    def prepare(self):
        """Compiles the next life, so that its start takes no time."""
        Program.LIVES += 1
        self.number = Program.LIVES
        self.binary = system.compile_program(self.stage.folder / f"life{self.number}",
                                             [system.SOURCE / "tests/system/faults/counting.c"], f"-DLIFE={self.number}")

    def command(self):
        batches = self.stage.load * (4 if self.policy == "drop" else 1)
        return [str(self.binary), str(self.stage.folder / f"life{self.number}.told"), str(batches)]

    def environment(self):
        more = {"MILLRACE_ENDPOINT": self.endpoint, "MILLRACE_POLICY": self.policy, "MILLRACE_BLOCK_TIMEOUT": "60s",
                "MILLRACE_EXIT_TIMEOUT": "180s", "MILLRACE_APP": f"life{self.number}"}
        if self.policy == "drop":
            more["MILLRACE_RING_SIZE"] = "8KiB"
        return {**super().environment(), **more}

    def start(self):
        if self.number is None:
            self.prepare()
        path = self.stage.folder / f"life{self.number}.told"
        path.write_bytes(bytes(8 * WORDS))
        with open(path, "r+b") as file:
            self.lives.append(Life(self.number, self.policy, mmap.mmap(file.fileno(), 8 * WORDS)))
        super().start()
        self.number = None

    def life(self):
        return self.lives[-1] if self.lives else None

    def kill(self, now, pause):
        self.life().is_killed = True
        super().kill(now, pause)

    def unacknowledged(self):
        """Events that are made, in rings or sent, and in nobody's custody."""
        told = self.life().told()
        return max(0, told.written - told.acked)

    def stop(self):
        """It ends by itself, and is not started again."""
        self.due = None
        if self.lives:
            self.life().map[:8] = struct.pack("<Q", 1)
            check(self.process is not None, f"{self.name} is not alive at the end")


__all__ = ["Balancer", "FUNCTIONS", "Failure", "HAS_SPOOL", "Master", "Program", "Worker", "check", "system"]
