# SPDX-License-Identifier: Apache-2.0
"""What both tests of the flight recorder share: a subject in a folder of its own, and what is read of it."""
import os
import pathlib
import signal
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))
from system import BIN, MILLRACE, check, wait_until  # noqa: E402

READ_S = 120


class Subject:
    """A running subject whose recorder lies in `folder`."""

    def __init__(self, system, *arguments, name="subject", ready=True, **variables):
        self.folder = system.folder / name
        self.folder.mkdir(exist_ok=True)
        self.counts_file = self.folder / "counts"
        variables.setdefault("MILLRACE_POLICY", "overwrite")
        variables.setdefault("MILLRACE_RECORDER_DIR", self.folder)
        mode, *rest = map(str, arguments)
        self.process = subprocess.Popen([BIN / "recorder_subject", mode, self.counts_file, *rest], text=True,
                                        env=system.environment(**variables), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        system.servers.append(self)  # ended with the others
        self.said = []
        if ready:
            self.wait_ready()

    @property
    def pid(self):
        return self.process.pid

    def wait_ready(self):
        for line in self.process.stdout:
            if line == "ready\n":
                return
            self.said.append(line.split())
        check(False, f"the subject ended: {self.process.stderr.read()}")

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.wait(READ_S)

    def files(self):
        return sorted(self.folder.glob("millrace-*"))

    def counts(self, thread=0):
        """Calls begun and done, as the subject counted them."""
        with open(self.counts_file, "rb") as file:
            file.seek(16 * thread)
            return struct.unpack("QQ", file.read(16))


def fields(line):
    return {key: int(value) if value.lstrip("-").isdigit() else value
            for key, value in (item.split("=") for item in line.split()[1:])}


def read(path, times=1):
    """What the reader finds in a recorder's file: streams, and the sums. Every event was checked."""
    run = subprocess.run([BIN / "recorder_reader", path, str(times)], capture_output=True, text=True, timeout=READ_S,
                         check=False)
    check(run.returncode == 0, f"reader: {run.returncode}\n{run.stdout[-3000:]}{run.stderr[-2000:]}")
    lines = run.stdout.splitlines()
    return [fields(line) for line in lines if line.startswith("stream ")], fields(lines[-1])


def millrace(system, *arguments, status=0, **variables):
    run = subprocess.run([MILLRACE, *map(str, arguments)], capture_output=True, text=True, timeout=READ_S, check=False,
                         env=system.environment(**variables), cwd=system.folder)
    check(run.returncode == status, f"{arguments}: status {run.returncode}, not {status}\n{run.stdout}{run.stderr}")
    return run


def is_root():
    return os.geteuid() == 0


__all__ = ["Subject", "check", "fields", "is_root", "millrace", "read", "wait_until"]
