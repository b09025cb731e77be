# SPDX-License-Identifier: Apache-2.0
"""Names with several addresses that change while all runs, from a real DNS server (dnsmasq), in a network and mount namespace of our own.

Senders go to all of a name's addresses; a worker and a master come back at addresses that nobody knew at the start, and programs and
workers find them; nothing is lost.
"""
import os
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import level  # pylint: disable=wrong-import-position
from level import check, system  # pylint: disable=wrong-import-position

PORT, MASTER_PORT = 7410, 7420
PROGRAMS = 12


class Names:
    """A DNS server that knows the names of a file, asked by all that runs in this namespace."""

    def __init__(self, chain):
        self.hosts = chain.folder / "hosts"
        self.hosts.write_text("")
        resolv = chain.folder / "resolv.conf"
        resolv.write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
        for command in (["ip", "link", "set", "lo", "up"], ["mount", "--bind", str(resolv), "/etc/resolv.conf"]):
            subprocess.run(command, check=True)
        with open(chain.folder / "dnsmasq.log", "wb") as log:
            self.process = subprocess.Popen(
                ["dnsmasq", "--no-daemon", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", f"--addn-hosts={self.hosts}", "--local-ttl=0",
                 "--listen-address=127.0.0.1", "--bind-interfaces", "--user=root", "--pid-file="],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=system.die_with_parent)

    def set(self, **addresses):
        """workers=["127.0.0.1", ...]: of workers.test."""
        self.hosts.write_text("".join(f"{address} {name}.test\n" for name, several in addresses.items() for address in several))
        self.process.send_signal(signal.SIGHUP)
        for name, several in addresses.items():
            system.wait_until(lambda name=name, several=several: self.ask(name) == set(several), 30, f"the server knows {name}")

    def ask(self, name):
        try:
            return {found[4][0] for found in socket.getaddrinfo(name + ".test", 1, socket.AF_INET, socket.SOCK_STREAM)}
        except socket.gaierror:
            return set()


def worker(chain, address, *options):
    return chain.worker(f"tcp://master.test:{MASTER_PORT}", "--metrics", "127.0.0.1:0", "--lanes", "1", *options, listen=f"{address}:{PORT}")


def is_forwarding(at):
    return level.metrics(at)["millrace_forward_open"] == 1


def run(chain, master, names):
    programs = level.Programs(chain, level.STEADY)
    endpoint = f"tcp://workers.test:{PORT}"
    try:
        programs.start(endpoint, PROGRAMS)  # before the name is known
        names.set(master=["127.0.0.9"], workers=["127.0.0.2", "127.0.0.3"])
        workers = [worker(chain, f"127.0.0.{i}") for i in (2, 3)]
        system.wait_until(lambda: sum(map(level.senders, workers)) == PROGRAMS, level.WAIT_S, "all have found a worker")
        print(f"of one name's two addresses: {[level.senders(one) for one in workers]}")
        check(all(map(level.senders, workers)), "all programs are at one of two addresses")
        third = worker(chain, "127.0.0.4")
        names.set(master=["127.0.0.9"], workers=["127.0.0.4"])
        for one in workers:
            chain.stop(one)
        system.wait_until(lambda: level.senders(third) == PROGRAMS, level.WAIT_S, "all have found a worker whose address is new")
        master = move_master(chain, master, names, third)
        printed = programs.end()
    finally:
        programs.kill()
    chain.stop(third)
    chain.stop(master)
    level.check_counts(master, printed)


def move_master(chain, master, names, worker_of_it):
    """The same store, at another address."""
    system.wait_until(lambda: is_forwarding(worker_of_it), level.WAIT_S, "the worker has found the master")
    chain.stop(master)
    system.wait_until(lambda: not is_forwarding(worker_of_it), level.WAIT_S, "the worker has lost the master")
    moved = chain.master(store=master.store, listen=f"127.0.0.10:{MASTER_PORT}")
    names.set(master=["127.0.0.10"], workers=["127.0.0.4"])
    system.wait_until(lambda: is_forwarding(worker_of_it), level.WAIT_S, "the worker has found the master at its new address")
    return moved


def test():
    with system.System() as chain:
        names = Names(chain)
        master = chain.master(listen=f"127.0.0.9:{MASTER_PORT}")
        names.set(master=["127.0.0.9"])
        run(chain, master, names)


if __name__ == "__main__":
    level.need("dnsmasq")
    level.need("ip")
    if sys.argv[1:] != ["inside"]:
        if subprocess.run(["unshare", "--net", "--mount", "true"], check=False, capture_output=True).returncode != 0:
            print("no namespaces for us: skipped")
            sys.exit(system.SKIP)
        os.execvp("unshare", ["unshare", "--net", "--mount", sys.executable, os.path.abspath(__file__), "inside"])
    system.main(test)
