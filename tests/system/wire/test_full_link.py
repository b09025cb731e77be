# SPDX-License-Identifier: Apache-2.0
"""A link that is full makes MILLRACE_ENCODING=auto write less, and nothing is lost of what is sent.

One link is a proxy on this host that passes on a few MB/s: words first, because the receiver seems to be here. The other, where
network namespaces can be made, is a pair of virtual devices with tc's token bucket: compact first, because it is a network. And
receivers that accept and never read, or stop reading: all is counted, and the end of the program waits no longer than it may.
"""
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import wire as lib  # pylint: disable=wrong-import-position
from wire import check, system  # pylint: disable=wrong-import-position

PROXY_BYTES_PER_S = 8_000_000
BUFFER = 1 << 18
NAMESPACE = f"mr-wire-{os.getpid()}"
DEVICES = f"mrw{os.getpid() % 100000}a", f"mrw{os.getpid() % 100000}b"
OURS, THEIRS = "198.51.100.1", "198.51.100.2"  # of documentation, RFC 5737


class Proxy:
    """Passes on what comes, up to a rate; answers go back as they are."""

    def __init__(self, endpoint):
        self.target = endpoint.removeprefix("tcp://").rsplit(":", 1)
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen()
        self.endpoint = f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                far = socket.create_connection((self.target[0], int(self.target[1])))
                for pair in ((near, far, PROXY_BYTES_PER_S), (far, near, None)):
                    threading.Thread(target=self.pass_on, args=pair, daemon=True).start()

    @staticmethod
    def pass_on(source, target, rate):
        passed, start = 0, time.monotonic()
        with contextlib.suppress(OSError):
            while data := source.recv(BUFFER // 4):
                target.sendall(data)
                passed += len(data)
                if rate:
                    time.sleep(max(0, passed / rate - (time.monotonic() - start)))
            target.shutdown(socket.SHUT_WR)


def run_program(setup, command, endpoint):
    # Its threads wait as long as it takes: what is sent then is the link's doing alone.
    return lib.link_of(setup.run(command, endpoint=endpoint, MILLRACE_EXIT_TIMEOUT="60s"))


def finish(setup, master, worker):
    setup.stop(worker)
    setup.stop(master)
    lib.check_ledger(lib.report(master.store)["ledger"])
    print(*[line for line in worker.log.read_text().splitlines() if " sends " in line], sep="\n")


def full_proxy():
    with system.System() as setup:
        master = setup.master()
        worker = setup.worker(master.endpoint)
        proxy = Proxy(worker.endpoint)
        link = run_program(setup, [lib.build(setup), "until", "compact", "compact+zstd"], proxy.endpoint)
        print("a full proxy:", link)
        check(link["changes"] >= 1 and link["reason"] == "the link was full", f"{link}")
        finish(setup, master, worker)


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


@contextlib.contextmanager
def network(rate):
    """A network namespace that is joined with ours by two devices, the far one sending at `rate`; or why not."""
    inside = ["ip", "-n", NAMESPACE]
    steps = [["ip", "netns", "add", NAMESPACE],
             ["ip", "link", "add", DEVICES[0], "type", "veth", "peer", "name", DEVICES[1], "netns", NAMESPACE],
             ["ip", "addr", "add", f"{OURS}/24", "dev", DEVICES[0]], ["ip", "link", "set", DEVICES[0], "up"],
             [*inside, "addr", "add", f"{THEIRS}/24", "dev", DEVICES[1]], [*inside, "link", "set", DEVICES[1], "up"],
             [*inside, "link", "set", "lo", "up"],
             ["tc", "-n", NAMESPACE, "qdisc", "add", "dev", DEVICES[1], "root", "tbf", "rate", rate, "burst", "128kb",
              "latency", "50ms"]]
    failure = ""
    if not shutil.which("ip") or not shutil.which("tc"):
        failure = "ip or tc is not there"
    try:
        for step in steps if not failure else []:
            done = run(*step)
            if done.returncode != 0:
                failure = f"{' '.join(step)}: {done.stderr.strip()}"
                break
        yield failure
    finally:
        if shutil.which("ip"):
            run("ip", "netns", "del", NAMESPACE)
            run("ip", "link", "del", DEVICES[0])


def full_network():
    with network("80mbit") as failure, system.System() as setup:
        if failure:
            print("a full network: skipped:", failure)
            return
        master = setup.master()
        worker = setup.worker(master.endpoint, "--insecure", listen=f"{OURS}:0")
        inside = ["ip", "netns", "exec", NAMESPACE]
        link = run_program(setup, [*inside, lib.build(setup), "count", "100"], worker.endpoint)
        check(link["encoding"] == "compact" and link["reason"] == "the receiver is on another host", f"{link}")
        link = run_program(setup, [*inside, lib.build(setup), "until", "compact+zstd"], worker.endpoint)
        print("a full network:", link)
        check(link["changes"] == 1 and link["reason"] == "the link was full", f"{link}")
        finish(setup, master, worker)


def far_master():
    """A worker beside the program: words to it, and what it forwards to another host is compressed."""
    with network("1gbit") as failure, system.System() as setup:
        if failure:
            print("a far master: skipped:", failure)
            return
        inside, stats = ["ip", "netns", "exec", NAMESPACE], setup.folder / "stats.json"
        master = setup.master("--insecure", listen=f"{OURS}:0")
        worker = setup.worker(master.endpoint, "--insecure", "--stats-file", str(stats), listen=f"{THEIRS}:0", prefix=inside)
        link = run_program(setup, [*inside, lib.build(setup), "count", "2000"], worker.endpoint)
        check(link["encoding"] == "words" and link["reason"] == "the receiver is on this host", f"{link}")
        finish(setup, master, worker)
        counters = json.loads(stats.read_text())["counters"]
        print("a far master:", {name: value for name, value in counters.items() if name.startswith("forward_")})
        check(counters["forward_packed"] > 0 and counters["forward_bytes_saved"] > 0, f"{counters}")
        check("on another host: compressed" in worker.log.read_text(), "the worker does not say that it compresses")
        functions = {row["name"]: row["ok"] for row in lib.report(master.store)["functions"]}
        check(functions["serve"] == 3 * 2000, f"{functions}")


def test():
    full_proxy()
    far_master()
    full_network()


if __name__ == "__main__":
    system.main(test)
