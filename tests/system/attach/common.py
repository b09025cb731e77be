# SPDX-License-Identifier: Apache-2.0
"""Programs of server.c, started so that `millrace attach` can reach them, and the command itself."""
import json
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check, wait_until  # pylint: disable=wrong-import-position

SOURCE = pathlib.Path(__file__).with_name("server.c")
# A function that is inlined has no place of its own.
KEEP_CALLS = ["-fno-inline", "-fno-ipa-cp", "-fno-ipa-icf", "-fno-ipa-sra", "-fno-partial-inlining",
              "-fno-optimize-sibling-calls"]
SO_ACCEPTCON = 0x10000  # linux/net.h
WAIT_S = 60
USAGE = 2
# ThreadSanitizer keeps a shadow of all memory that is written, and has none of code.
HAS_SITES = os.uname().machine == "x86_64" and os.environ.get("MR_SANITIZE") != "thread"


def compile_hooks(output):
    return system.compile_program(output, [SOURCE])


def compile_patchable(output):
    environment = dict(os.environ, PKG_CONFIG_PATH=str(system.BUILD / "lib" / "pkgconfig"))
    words = []
    for argument in ("--variable=gcc_specs", "--libs"):
        run = subprocess.run(["pkg-config", argument, "millrace-patchable"], env=environment, capture_output=True,
                             text=True, check=True)
        words.append(shlex.split(run.stdout))
    command = ["gcc", "-O2", *KEEP_CALLS, *words[0], str(SOURCE), "-o", str(output), *words[1], "-pthread",
               *system.sanitizer_flags()]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    check(run.returncode == 0, f"{shlex.join(command)}\n{run.stderr}")
    return output


def environment_of(variables):
    kept = {key: value for key, value in os.environ.items()
            if not key.startswith(("MILLRACE_", "OTEL_", "XDG_RUNTIME_DIR"))}
    # A child that is killed, or that forks while it is traced, leaks by design.
    kept["ASAN_OPTIONS"] = kept.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    kept["TSAN_OPTIONS"] = kept.get("TSAN_OPTIONS", "") + ":die_after_fork=0"
    kept.update({key: str(value) for key, value in variables.items()})
    return kept


class Program:
    """A running server; its output is read line by line. `prefix`: a command before it, such as unshare."""

    def __init__(self, path, *arguments, prefix=(), wait=True, **variables):
        variables = {"MILLRACE_CONTROL": "1", **variables}
        self.process = subprocess.Popen([*prefix, str(path), *arguments], env=environment_of(variables),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, preexec_fn=system.die_with_parent)
        self.first = self.process.stdout.readline().strip() if wait else None

    @property
    def pid(self):
        return self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.kill()
        _, errors = self.process.communicate(timeout=WAIT_S)  # a child that lives would keep the pipe
        if kind is not None:
            print(f"--- standard error of the program, which ended with {self.process.returncode}\n{errors}")

    def end(self, status=0):
        """SIGTERM; its stderr."""
        self.process.terminate()
        _, errors = self.process.communicate(timeout=WAIT_S)
        check(self.process.returncode == status, f"the program ended with {self.process.returncode}: {errors}")
        return errors


def attach(pid, *options, status=0, prefix=()):
    """`millrace attach PID OPTION...`; stdout, or what --json says; with a status, the one line of stderr."""
    command = [*prefix, system.MILLRACE, "attach", str(pid), *options]
    run = subprocess.run(command, env=environment_of({}), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         timeout=WAIT_S, check=False)
    check(run.returncode == status, f"{shlex.join(command)} ended with {run.returncode}: {run.stdout}{run.stderr}")
    if status:
        check(run.stderr.count("\n") == 1, f"not one line: {run.stderr}")
        return run.stderr.strip()
    check(run.stderr == "", f"{shlex.join(command)}: {run.stderr}")
    return json.loads(run.stdout) if "--json" in options else run.stdout


def status_of(pid, **more):
    return attach(pid, "--json", **more)


def wait_for_events(pid, more=1000):
    """Until the program has written that many events more than now."""
    start = status_of(pid).get("events-written", 0)
    wait_until(lambda: status_of(pid).get("events-written", 0) >= start + more, WAIT_S, "events")


def own_sockets(pid):
    """Names of the unix sockets that a process of our namespaces listens on for us."""
    inodes = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except FileNotFoundError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    names = []
    with open(f"/proc/{pid}/net/unix", encoding="utf-8") as file:
        next(file)  # the heads of the columns
        for line in file:
            fields = line.split()
            listens = len(fields) == 8 and int(fields[3], 16) & SO_ACCEPTCON  # what was accepted has the same name
            if listens and fields[6] in inodes and "millrace-" in fields[7]:
                names.append(fields[7])
    return names


def connect(pid):
    """A raw connection to the control socket of a process of our namespaces."""
    names = wait_until(lambda: own_sockets(pid), WAIT_S, "a control socket")
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(names[0])  # waits where many do
    connection.settimeout(WAIT_S)
    return connection


def say(connection, data):
    """Sends, and returns all that comes until the end."""
    connection.sendall(data)
    answer = b""
    while True:
        try:
            more = connection.recv(65536)
        except ConnectionResetError:
            return answer
        if not more:
            return answer
        answer += more


def run_tests(namespace, compiles=True):
    """All functions test_*; or those named on the command line."""
    names = sys.argv[1:] or [name for name in namespace if name.startswith("test_")]
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with system.System() as chain:
        if compiles:
            compile_hooks(chain.folder / "hooks")
        if compiles and HAS_SITES:
            compile_patchable(chain.folder / "patchable")
        for name in names:
            try:
                word = namespace[name](chain)
            except system.Failure as failure:
                print(f"{name}: FAILED\n{failure}")
                sys.exit(1)
            print(f"{name}: {word or 'ok'}", flush=True)
