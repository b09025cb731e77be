# SPDX-License-Identifier: Apache-2.0
"""Starts real millrace processes on loopback, in a temporary folder, and ends them again: only those, by their pid.

    with System() as system:
        master = system.master()
        worker = system.worker(forward=master.endpoint)
        system.run(["./program"], endpoint=worker.endpoint)
        system.stop(worker)                 # drains: all it has is acknowledged above
        ledger = master.get("/api/v1/ledger")

The environment comes from CTest: MR_BIN, MR_LIB, MR_BUILD, MR_SOURCE. Everything that waits has a time-out.
"""
import ctypes
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

BIN = pathlib.Path(os.environ["MR_BIN"])
BUILD = pathlib.Path(os.environ["MR_BUILD"])
SOURCE = pathlib.Path(os.environ["MR_SOURCE"])
MILLRACE = str(BIN / "millrace")

READY_S = 30  # for a server to listen, also under a sanitizer on a busy machine
STOP_S = 60  # for one to drain and end
QUERY_S = 30
PR_SET_PDEATHSIG = 1
SKIP = 77  # exit status: CTest's SKIP_RETURN_CODE


def die_with_parent():
    """In a new server: killed when the test is, even by SIGKILL."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Failure(Exception):
    """What the test wanted does not hold; the text says what and where."""


def check(condition, text):
    if not condition:
        raise Failure(text)


def wait_until(condition, seconds, what):
    """The first true value of condition(); Failure after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < end, f"{what}: not within {seconds} s")
        time.sleep(0.02)


class Server:
    """A running millrace server and what its ready file says."""

    def __init__(self, name, process, log, ready):
        self.name = name
        self.process = process
        self.log = log
        self.ready = ready
        self.endpoint = "tcp://" + ready["listen"]
        self.url = "http://" + ready["http"] if "http" in ready else None
        self.store = None

    @property
    def pid(self):
        return self.process.pid

    def get_text(self, path):
        with urllib.request.urlopen(self.url + path, timeout=QUERY_S) as answer:
            return answer.read().decode()

    def get(self, path):
        return json.loads(self.get_text(path))

    def status(self, path):
        """The answer's HTTP status."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=QUERY_S) as answer:
                return answer.status
        except urllib.error.HTTPError as refusal:
            return refusal.code

    def rss_kib(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1])
        raise Failure(f"{self.name} has no VmRSS")


def bench_environment(**more):
    """For benchmarks: no MILLRACE_ variable of the caller's, and every loop is kept, whatever the hypervisor takes from it. No test
    asserts a time, and on a machine that it shares with others all would be discarded."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MILLRACE_")}
    return kept | {"MILLRACE_STEAL_MAX": "100"} | more


class System:
    def __init__(self):
        self.folder = None
        self.servers = []
        self.count = 0

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-test-"))
        return self

    def __exit__(self, kind, value, trace):
        for server in reversed(self.servers):
            if server.process.poll() is None:
                server.process.kill()
                server.process.wait()
        if kind is not None:
            self.print_logs()
        shutil.rmtree(self.folder)

    def print_logs(self):
        for log in sorted(self.folder.glob("*.log")):
            text = log.read_text(errors="replace").splitlines()
            print(f"--- {log.name}, last lines of {len(text)}")
            print("\n".join(text[-20:]))

    def environment(self, **more):
        """Without any MILLRACE_ variable that the caller of the test happens to have. Workers have a spool only where a test gives them
        one, in its own folder: what one that is killed leaves in /dev/shm is RAM, and would be read by a later test at the same port."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MILLRACE_")}
        kept["MILLRACE_SPOOL"] = "none"
        kept.update({key: str(value) for key, value in more.items()})
        if "MILLRACE_ENDPOINT" in kept:  # a traced program, which may fork: leaks are not looked for, as that may hang in a child
            kept["ASAN_OPTIONS"] = kept.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        return kept

    def start(self, name, command, seconds=READY_S, prefix=(), binary=MILLRACE):
        """Starts `PREFIX... BINARY COMMAND... --ready-file F` and waits for F. What stands in front becomes millrace by exec."""
        self.count += 1
        ready = self.folder / f"{self.count}-{name}.ready"
        log = self.folder / f"{self.count}-{name}.log"
        with open(log, "wb") as output:
            process = subprocess.Popen([*prefix, str(binary), *command, "--ready-file", str(ready)], env=self.environment(),
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self.folder,
                                       preexec_fn=die_with_parent)
        server = Server(name, process, log, {"listen": ""})
        self.servers.append(server)
        wait_until(lambda: ready.exists() or process.poll() is not None, seconds, f"{name}: ready file")
        check(process.poll() is None, f"{name} ended with {process.returncode} at its start: {log.read_text()}")
        server.__init__(name, process, log, json.loads(ready.read_text()))
        return server

    def master(self, *options, store=None, listen="127.0.0.1:0", http="127.0.0.1:0", binary=MILLRACE):
        store = store or self.folder / "store"
        server = self.start("master", ["master", "--listen", "tcp://" + listen, "--http", http,
                                     "--store", str(store), *options], binary=binary)
        server.store = store
        return server

    def worker(self, forward, *options, level=1, listen="127.0.0.1:0", prefix=(), binary=MILLRACE):
        return self.start(f"worker-{level}", ["worker", "--listen", "tcp://" + listen, "--forward", forward,
                                              "--level", str(level), *options], prefix=prefix, binary=binary)

    def stop(self, server, status=0):
        """SIGTERM; a worker drains. Its exit status is checked."""
        server.process.terminate()
        try:
            server.process.wait(STOP_S)
        except subprocess.TimeoutExpired as late:
            raise Failure(f"{server.name} does not end within {STOP_S} s of SIGTERM") from late
        check(server.process.returncode == status,
              f"{server.name} ended with {server.process.returncode}, not {status}: {server.log.read_text()[-2000:]}")

    def run(self, command, endpoint=None, seconds=300, cwd=None, **variables):
        """Runs a program to its end, traced if there is an endpoint; its CompletedProcess (status not checked)."""
        if endpoint:
            variables.setdefault("MILLRACE_ENDPOINT", endpoint)
            variables.setdefault("MILLRACE_POLICY", "block")
            variables.setdefault("MILLRACE_BLOCK_TIMEOUT", "60s")
        return subprocess.run(command, env=self.environment(**variables), stdin=subprocess.DEVNULL, cwd=cwd,
                              capture_output=True, text=True, timeout=seconds, check=False)


def pkg_config(*arguments, build=BUILD):
    """What `pkg-config ARGUMENTS millrace` says about the build that is tested."""
    environment = dict(os.environ, PKG_CONFIG_PATH=str(build / "lib" / "pkgconfig"))
    run = subprocess.run(["pkg-config", *arguments, "millrace"], env=environment, capture_output=True, text=True,
                         check=True)
    return shlex.split(run.stdout)


def sanitizer_flags():
    """A program that loads the probe of a sanitizer's build must be of that sanitizer, too."""
    sanitize = os.environ.get("MR_SANITIZE")
    return [f"-fsanitize={sanitize}"] if sanitize else []


def make_flags():
    """For an example's Makefile."""
    return ["LDFLAGS=" + shlex.join(sanitizer_flags())]


def compile_program(output, sources, *flags, compiler="gcc", build=BUILD):
    """Compiles as a user of millrace does; `flags` follow the sources."""
    command = [compiler, "-O2", "-g", *pkg_config("--cflags", build=build), *map(str, sources), "-o", str(output),
               *pkg_config("--libs", build=build), "-pthread", *sanitizer_flags(), *flags]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    check(run.returncode == 0, f"{shlex.join(command)}\n{run.stderr}")
    return output


def main(test):
    """Runs test(); prints why it failed, and ends with the right status."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background command inherits that it is ignored
    try:
        test()
    except (Failure, ValueError) as failure:
        print(f"FAILED: {failure}")
        sys.exit(1)
    print("passed")
