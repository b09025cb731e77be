# SPDX-License-Identifier: Apache-2.0
"""The programs of a plan: started, connected to each other by TCP, waited for, and their logs read."""
import contextlib
import socket
import subprocess

import replay
import system

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


class Programs:
    """Of one plan; `name` is in front of their applications' names."""

    def __init__(self, chain, binary, plan, name, endpoints, clocks=("tsc",), **variables):
        self.folder = chain.folder / name
        self.folder.mkdir()
        self.name, self.plan = name, plan
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
                                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=system.die_with_parent))
        for end in (end for row in ends for end in row if end):
            end.close()

    def app(self, number):
        return f"{self.name}p{number}"

    def are_running(self):
        return any(program.poll() is None for program in self.running)

    def wait(self):
        """None has lost an event."""
        for program in self.running:
            with contextlib.closing(program.stdin), contextlib.closing(program.stdout):
                try:
                    status = program.wait(SECONDS)
                except subprocess.TimeoutExpired as late:
                    raise system.Failure(f"a program of plan {self.name} does not end") from late
                said = program.stdout.read()
            system.check(status == 0 and said == "lost 0\n", f"a program of plan {self.name} ended with {status}: {said}")

    def kill(self):
        for program in self.running:
            program.kill()
            program.wait()

    def streams(self):
        """One a thread."""
        return [replay.replay(path, self.app(number), (self.name, number))
                for number in range(self.plan.programs) for path in sorted(self.folder.glob(f"log.{number}.*"))]
