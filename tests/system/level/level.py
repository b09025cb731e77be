# SPDX-License-Identifier: Apache-2.0
"""What the tests of a level share: Debian's HAProxy with the example's configuration, asked by its own socket; workers with agents; programs."""
import csv
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

STEADY = system.SOURCE / "tests/system/level/steady.c"
EXAMPLE = system.SOURCE / "docs/examples/chain/haproxy.cfg"
WAIT_S = 120  # for what takes seconds on a machine that has nothing else to do


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def need(program):
    if not shutil.which(program):
        print(f"no {program} here: skipped")
        sys.exit(system.SKIP)


def replace_once(text, pattern, by):
    text, count = re.subn(pattern, lambda match: by, text, flags=re.M)
    check(count == 1, f"{EXAMPLE}: {pattern!r} stands there {count} times")
    return text


class Balancer:
    """HAProxy, set up as docs/examples/chain/haproxy.cfg but for addresses. `servers`: name -> (endpoint, agent's port)."""

    def __init__(self, chain, servers, balance="leastconn", options=""):
        need("haproxy")
        self.port = free_port()
        self.endpoint = f"tcp://127.0.0.1:{self.port}"
        self.path = chain.folder / f"haproxy-{self.port}.sock"
        config = EXAMPLE.read_text()
        config = replace_once(config, r"/run/haproxy/admin\.sock", str(self.path))
        config = replace_once(config, r"^    bind :7400$", f"    bind 127.0.0.1:{self.port}")
        config = replace_once(config, r"^    balance leastconn .*$", f"    balance {balance}")
        config = replace_once(config, r" agent-port 7411$", f" {options}")
        lines = "".join(f"    server {name} {listen} agent-port {port}\n" for name, (listen, port) in servers.items())
        config = re.sub(r"(?:^    server .*\n)+", lines, config, flags=re.M)
        file = chain.folder / f"haproxy-{self.port}.cfg"
        file.write_text(config)
        with open(chain.folder / f"haproxy-{self.port}.log", "wb") as log:
            self.process = subprocess.Popen(["haproxy", "-db", "-f", str(file)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            preexec_fn=system.die_with_parent)
        system.wait_until(self.is_there, 30, "HAProxy listens")

    def is_there(self):
        check(self.process.poll() is None, "HAProxy ended at its start")
        return self.path.exists() and self.rows()

    def ask(self, command):
        with socket.socket(socket.AF_UNIX) as asked:
            asked.settimeout(30)
            asked.connect(str(self.path))
            asked.sendall(command.encode() + b"\n")
            answer = b""
            while part := asked.recv(65536):
                answer += part
        return answer.decode()

    def rows(self):
        """Server's name -> row of `show stat`."""
        try:
            text = self.ask("show stat").removeprefix("# ")
        except OSError:
            return {}
        return {row["svname"]: row for row in csv.DictReader(io.StringIO(text)) if row["svname"] not in ("FRONTEND", "BACKEND")}

    def weight(self, name):
        return int(self.rows()[name]["weight"])

    def sessions(self, name):
        return int(self.rows()[name]["stot"])

    def state(self, name):
        return self.rows()[name]["status"]

    def end(self):
        self.process.kill()
        self.process.wait()


def port_of(address):
    return int(address.rsplit(":", 1)[1])


def worker(chain, master, *options, **more):
    """With an agent and metrics."""
    return chain.worker(master, "--agent", "tcp://127.0.0.1:0", "--metrics", "127.0.0.1:0", "--lanes", "1", *options, **more)


def as_servers(workers):
    return {f"w{i}": (at.ready["listen"], port_of(at.ready["agent"])) for i, at in enumerate(workers)}


def agent_line(at):
    host, port = at.ready["agent"].rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=30) as asked:
        answer = b""
        while part := asked.recv(4096):
            answer += part
    return answer.decode()


def metrics(at):
    """Of a worker: name -> value, of those without labels; and the state's word."""
    text = at.get_text("/metrics")
    found = {name: float(value) for name, value in re.findall(r"^(millrace_\w+) (\S+)$", text, flags=re.M)}
    found["state"] = re.findall(r'^millrace_state\{state="(\w+)"\} 1$', text, flags=re.M)[0]
    return found


def senders(at):
    return int(metrics(at)["millrace_senders"])


class Programs:
    """Copies of a program that run until they are ended: its input is closed then."""

    def __init__(self, chain, source=system.SOURCE / "tests/system/worker/busy.c"):
        self.chain = chain
        self.binary = system.compile_program(chain.folder / source.stem, [source])
        self.running = []

    def start(self, endpoint, count=1, **variables):
        variables = {"MILLRACE_POLICY": "block", "MILLRACE_BLOCK_TIMEOUT": "60s", "MILLRACE_EXIT_TIMEOUT": "60s", **variables}
        for _ in range(count):
            self.running.append(subprocess.Popen([self.binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                                 env=self.chain.environment(MILLRACE_ENDPOINT=endpoint, **variables)))

    def end(self):
        """What each printed."""
        printed = []
        for program in self.running:
            program.stdin.close()
        for program in self.running:
            printed.append(program.stdout.read())
            check(program.wait(system.STOP_S * 2) == 0, f"a program ended with {program.returncode}")
        self.running = []
        return printed

    def kill(self):
        for program in self.running:
            program.kill()
            program.wait()


def report(store):
    run = subprocess.run([system.MILLRACE, "report", store, "--json", "--functions", "100"], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def check_counts(master, printed):
    """The calls that copies of steady.c counted are in the master's store, each once. All have ended, the master too."""
    own = {}
    for text in printed:
        for name, count in (line.split() for line in text.splitlines()):
            own[name] = own.get(name, 0) + int(count)
    told = report(master.store)
    found = {row["name"]: row["ok"] + row["failed"] + row["incomplete"] for row in told["functions"]}
    print(f"the programs' own counts {own}, the master's {found}")
    check(own and all(found[name] == count for name, count in own.items()), "calls are missing, or too many")
    check(told["ledger"]["balanced"] and told["ledger"]["lost"] == 0, f"the ledger: {told['ledger']}")
