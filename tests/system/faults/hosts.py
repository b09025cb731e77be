# SPDX-License-Identifier: Apache-2.0
"""Hosts that are network namespaces, joined by a bridge in one more.

    lan = Lan()                     # Absent, and why, where it cannot be made
    host = lan.host("w0")           # 10.77.0.n and fd77::n, a veth to the bridge, a mount namespace of its own
    host.start([program], ...)      # a Popen inside
    host.link(False)                # pulls the cable

A namespace has no name in the system and belongs to a sleeping process that dies with this one; with it go its links, tables and mounts.
Nothing outside is touched, and whatever ends this process, even by SIGKILL, leaves nothing behind.
"""
import ctypes
import os
import re
import signal
import shutil
import socket
import subprocess

CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
NETWORK, NETWORK_6 = "10.77.0.", "fd77::"
LIBC = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """A command failed; the text says which, and what it said."""


class Absent(Refused):
    """This machine has no namespaces to be had; the text says what it lacks."""


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run(command, what):
    """Runs it to its end; Refused with its own words where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused(f"{what}: {' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


class Namespace:
    """A network and a mount namespace."""

    def __init__(self, name):
        self.name = name
        self.holder = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c", "echo; exec sleep infinity"],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       preexec_fn=die_with_parent, start_new_session=True)
        if not self.holder.stdout.readline():
            raise Absent("namespaces: " + self.holder.stderr.read().decode().strip())
        self.inside = ["nsenter", "-t", str(self.holder.pid), "--net", "--mount"]

    def run(self, *command, what="in a namespace"):
        return run([*self.inside, *command], what)

    def can(self, *command):
        try:
            self.run(*command)
        except Refused:
            return False
        return True

    def start(self, command, **options):
        return subprocess.Popen([*self.inside, *command], stdin=subprocess.DEVNULL, preexec_fn=die_with_parent, **options)

    def socket(self):
        """A TCP socket of this namespace; the caller's thread returns to its own."""
        with open("/proc/thread-self/ns/net", "rb") as own, open(f"/proc/{self.holder.pid}/ns/net", "rb") as there:
            if LIBC.setns(there.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            try:
                return socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            finally:
                LIBC.setns(own.fileno(), CLONE_NEWNET)

    def close(self):
        self.holder.kill()
        self.holder.wait()


class Host(Namespace):
    def __init__(self, lan, name, number):
        super().__init__(name)
        self.lan, self.port, self.address = lan, f"p{number}", NETWORK + str(number)
        lan.run("ip", "link", "add", self.port, "type", "veth", "peer", "name", "eth0", "netns", str(self.holder.pid),
                what="a veth")
        lan.run("ip", "link", "set", self.port, "master", "lan", "up")
        self.run("ip", "link", "set", "lo", "up")
        self.run("ip", "address", "add", self.address + "/24", "dev", "eth0")
        self.address_6 = NETWORK_6 + str(number)
        self.has_6 = self.can("ip", "address", "add", self.address_6 + "/64", "dev", "eth0", "nodad")
        self.run("ip", "link", "set", "eth0", "up")

    def link(self, is_up):
        """The cable: what is on its way is lost, connections stand."""
        self.lan.run("ip", "link", "set", self.port, "up" if is_up else "down")

    def drop(self, direction, share):
        """Drops this share of the packets, `in` or `out`; 0: none any more."""
        table = "ip faults_" + direction
        if share == 0:
            self.run("nft", f"delete table {table}")
            return
        which = "" if share == 1 else f"numgen random mod 1000 < {int(share * 1000)}"
        self.run("nft", f"add table {table}; add chain {table} c {{ type filter hook {direction}put priority 0; }}; "
                 f"add rule {table} c ip daddr != 127.0.0.1 {which} drop")

    def names(self, file, lines):
        """Its own /etc/hosts, which is `file`."""
        file.write_text("\n".join(lines) + "\n")
        self.run("mount", "--bind", str(file), "/etc/hosts")

    def swallow(self, family):
        """No answer to what comes over TCP by `ip` or `ip6`, from others."""
        self.run("nft", f"add table {family} swallow; add chain {family} swallow c {{ type filter hook input priority 0; }}; "
                 f"add rule {family} swallow c iifname eth0 meta l4proto tcp drop")

    def delay(self, milliseconds):
        """Delays what leaves; 0: no more. netem where the kernel has it, else a queue that empties slowly."""
        if milliseconds == 0:
            self.run("tc", "qdisc", "del", "dev", "eth0", "root")
        elif self.lan.has_netem:
            self.run("tc", "qdisc", "add", "dev", "eth0", "root", "netem", "delay", f"{milliseconds}ms",
                     f"{milliseconds // 4}ms")
        else:
            self.run("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "2mbit", "burst", "3000", "latency",
                     f"{4 * milliseconds}ms")


class Lan(Namespace):
    """The bridge, and the hosts on it."""

    def __init__(self):
        for tool in ("unshare", "nsenter", "ip"):
            if not shutil.which(tool):
                raise Absent(f"no {tool} here")
        if os.geteuid() != 0:
            raise Absent("namespaces need root")
        super().__init__("lan")
        self.hosts = {}
        try:
            self.run("ip", "link", "add", "lan", "type", "bridge", what="a bridge")
            self.run("ip", "link", "set", "lan", "up")
        except Refused as why:
            self.close()
            raise Absent(str(why)) from why
        self.has_nft = bool(shutil.which("nft")) and self.can("nft", "add table ip probe; delete table ip probe")
        self.has_tc = self.can("tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "1gbit", "burst", "30000", "latency",
                               "1ms")
        self.has_netem = self.can("tc", "qdisc", "replace", "dev", "lo", "root", "netem", "delay", "1ms")

    def host(self, name):
        if not re.fullmatch(r"[a-z0-9-]+", name):
            raise ValueError(name)
        self.hosts[name] = Host(self, name, len(self.hosts) + 1)
        return self.hosts[name]

    def close_all(self):
        for host in self.hosts.values():
            host.close()
        self.close()
