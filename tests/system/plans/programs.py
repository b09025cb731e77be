# SPDX-License-Identifier: Apache-2.0
"""The programs of a plan: started, connected to each other by TCP, waited for, and their logs read."""
import contextlib
import ctypes
import os
import signal
import socket
import subprocess

import replay
import system

CLONE_NEWUTS = 0x04000000
SECONDS = 120  # until a plan has ended; it takes one or a few


def connected():
    """Both ends of a TCP connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        one = socket.create_connection(listener.getsockname())
        other, _ = listener.accept()
    for end in (one, other):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return one, other


def connect_all(count):
    """[a][b]: the end that program a has of its connection to b."""
    ends = [[None] * count for _ in range(count)]
    for a in range(count):
        for b in range(a):
            ends[a][b], ends[b][a] = connected()
    return ends


def on_host(host):
    """In a new process: it has this host's name."""
    system.die_with_parent()
    if host:
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUTS) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        socket.sethostname(host)


def can_have_hosts():
    return os.geteuid() == 0 and subprocess.run(["unshare", "--uts", "true"], capture_output=True, check=False).returncode == 0


class Programs:
    """Of one plan; `app` is in front of their applications' names. hosts: of each program, None: of none of its own."""

    def __init__(self, chain, binary, plan, name, endpoints, app=None, hosts=(None,), clocks=("tsc",), **variables):
        self.folder = chain.folder / name
        self.folder.mkdir()
        self.name, self.plan, self.app_name, self.hosts = name, plan, app or name, hosts
        self.running = []
        ends = connect_all(plan.programs)
        for number in range(plan.programs):
            file = self.folder / f"plan.{number}"
            file.write_text(plan.text(number))
            sockets = [str(end.fileno()) if end else "-" for end in ends[number]]
            environment = chain.environment(MILLRACE_ENDPOINT=endpoints[number % len(endpoints)], MILLRACE_APP=self.app(number),
                                            MILLRACE_POLICY="block", MILLRACE_BLOCK_TIMEOUT="60s", MILLRACE_EXIT_TIMEOUT="60s",
                                            MILLRACE_CLOCK=clocks[number % len(clocks)], **variables)
            self.running.append(subprocess.Popen([binary, file, self.folder / f"log.{number}", ",".join(sockets)],
                                                 env=environment, pass_fds=[end.fileno() for end in ends[number] if end], text=True,
                                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=lambda host=self.host(number): on_host(host)))
        for end in (end for row in ends for end in row if end):
            end.close()

    def app(self, number):
        return f"{self.app_name}p{number}"

    def host(self, number):
        return self.hosts[number % len(self.hosts)]

    def are_running(self):
        return any(program.poll() is None for program in self.running)

    def wait(self, numbers=None):
        """All, or these; none has lost an event."""
        for program in self.running if numbers is None else [self.running[number] for number in numbers]:
            with contextlib.closing(program.stdin), contextlib.closing(program.stdout):
                try:
                    status = program.wait(SECONDS)
                except subprocess.TimeoutExpired as late:
                    raise system.Failure(f"a program of plan {self.name} does not end") from late
                said = program.stdout.read()
            system.check(status == 0 and said == "lost 0\n", f"a program of plan {self.name} ended with {status}: {said}")

    def die(self):
        """All at once, in the middle, as if killed, but that their logs are whole. How many had not ended."""
        for program in self.running:
            program.stdin.close()
        died = 0
        for program in self.running:
            program.wait(SECONDS)
            program.stdout.close()
            system.check(program.returncode in (0, -signal.SIGKILL), f"a program of plan {self.name} ended with {program.returncode}")
            died += program.returncode != 0
        return died

    def streams(self, numbers=None, tells_hosts=False, **options):
        """One a thread; options: of replay.Stream."""
        return [stream for number in (range(self.plan.programs) if numbers is None else numbers)
                for stream in self.streams_of(number, tells_hosts, options)]

    def streams_of(self, number, tells_hosts, options):
        label = f"{self.app(number)}@{self.host(number)}" if tells_hosts else self.app(number)
        return [replay.replay(path, label, (self.name, number), **options) for path in sorted(self.folder.glob(f"log.{number}.*"))]
