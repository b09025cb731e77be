# SPDX-License-Identifier: Apache-2.0
"""`millrace scale` over real processes: a day's curve of programs in less than a minute, behind Debian's HAProxy; workers come, drain
and go by it, and the master has every call that the programs counted, once. A level is added below a hot master. What is wrong
with commands, addresses and options is told in a line.

    SCALE_INSTANCES=160 SCALE_DAY_S=200 SCALE_CALLS_S=1500000 for the longer day: docs/why/2026-11-20-scale.md has a run of it.

What all programs do together at noon is the same however many they are: a rate that two processors can take, with all else.
"""
import math
import os
import random
import re
import shlex
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "level"))
import level  # pylint: disable=wrong-import-position
from level import check, system  # pylint: disable=wrong-import-position

INSTANCES = int(os.environ.get("SCALE_INSTANCES", "20"))
DAY_S = float(os.environ.get("SCALE_DAY_S", "20"))
NOON_CALLS_S = int(os.environ.get("SCALE_CALLS_S", "2000000"))  # of all programs
TURN_MS = max(50, INSTANCES * 5 // 4)  # waking up costs more than a few calls do
CALLS = 101  # of one work() of steady.c
CAP = 4


def pace(programs):
    """Of each of so many, that they make NOON_CALLS_S calls a second together."""
    return {"STEADY_TURN_MS": TURN_MS, "STEADY_PER_TURN": max(1, round(NOON_CALLS_S / programs / CALLS * TURN_MS / 1000))}


def is_free(port):
    """Nobody listens there; connections that have ended there may still be remembered for a minute."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            return True
        except OSError:
            return False


TAKEN = set()


def free_block(count):
    """A port such that it and the `count` ports behind it are free and of no other block, below those that the kernel gives away."""
    while True:
        base = random.randrange(15000, 32000)
        block = range(base, base + count + 1)
        if TAKEN.isdisjoint(block) and all(is_free(port) for port in block):
            TAKEN.update(block)
            return base


class Workers:
    """What the commands of a user would start: workers 1 to CAP at known ports, their pids in files."""

    def __init__(self, chain, forward, number_level=1):
        self.chain = chain
        self.listen, self.agent, self.http = (free_block(CAP) for _ in range(3))
        agents = ",".join(f"tcp://127.0.0.1:{self.agent + n}" for n in range(1, CAP + 1))
        self.folder = chain.folder / f"level-{number_level}"
        self.folder.mkdir()
        self.pid_file = f"{self.folder}/{{n}}.pid"
        command = [system.MILLRACE, "worker", "--level", str(number_level), "--forward", forward, "--lanes", "1", "--peers", agents]
        places = (f"--listen tcp://127.0.0.1:{{n+{self.listen}}} --agent tcp://127.0.0.1:{{n+{self.agent}}} "
                  f"--metrics 127.0.0.1:{{n+{self.http}}} --spool {self.folder}/{{n}}.spool")
        self.start = f"{shlex.join(command)} {places} </dev/null >>{chain.folder}/level-{number_level}-{{n}}.log 2>&1 & echo $! >{self.pid_file}"
        self.drain = f"kill -USR1 $(cat {self.pid_file})"
        self.stop = f"kill $(cat {self.pid_file})"
        self.metrics = f"127.0.0.1:{{n+{self.http}}}"

    def servers(self):
        return {f"w{n}": (f"127.0.0.1:{self.listen + n}", self.agent + n) for n in range(1, CAP + 1)}

    def options(self):
        return ["--metrics", self.metrics, "--start", self.start, "--drain", self.drain, "--stop", self.stop]

    def running(self):
        """Numbers of those that listen."""
        return [n for n in range(1, CAP + 1) if not is_free(self.listen + n)]

    def pids(self):
        return [int(file.read_text()) for file in self.folder.glob("*.pid")]

    def kill(self):
        """Those that still run under the pid that they were started with."""
        for pid in self.pids():
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    is_ours = f"127.0.0.1:{self.agent + 1}".encode() in file.read()
                if is_ours:
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # it has ended


class Scale:
    def __init__(self, chain, *options):
        self.log = chain.folder / "scale.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([system.MILLRACE, "scale", *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=chain.environment(), preexec_fn=system.die_with_parent)

    def text(self):
        return self.log.read_text()

    def end(self, status=0):
        self.process.terminate()
        self.process.wait(system.STOP_S)
        check(self.process.returncode == status, f"scale ended with {self.process.returncode}: {self.text()[-2000:]}")


def live_a_day(chain, endpoint, workers):
    """INSTANCES programs at noon, none at midnight; what they printed, and how many workers there were at most."""
    programs, ended = level.Programs(chain, level.STEADY), level.Programs.__new__(level.Programs)
    ended.running, most, start = [], 0, time.monotonic()
    try:
        while (now := (time.monotonic() - start) / DAY_S) < 1:
            wanted = round(INSTANCES * (1 - math.cos(2 * math.pi * now)) / 2)
            if len(programs.running) < wanted:
                programs.start(endpoint, **pace(INSTANCES))
            elif len(programs.running) > wanted:
                ended.running.append(programs.running.pop(0))
                ended.running[-1].stdin.close()
            most = max(most, len(workers.running()))
            time.sleep(DAY_S / INSTANCES / 8)
        return programs.end() + ended.end(), most
    finally:
        programs.kill()
        ended.kill()


def a_day(chain):
    master = chain.master()
    workers = Workers(chain, master.endpoint)
    balancer = level.Balancer(chain, workers.servers())
    scale = None
    try:
        scale = Scale(chain, *workers.options(), "--max", str(CAP), "--high", "2", "--low", "1", "--interval", "500ms", "--cool-down", "2s",
                      "--start-timeout", "60s", "--drain-timeout", "60s")
        system.wait_until(lambda: workers.running() == [1], level.WAIT_S, "--min workers")
        printed, most = live_a_day(chain, balancer.endpoint, workers)
        print(f"{len(printed)} programs in a day of {DAY_S:.0f} s, {pace(INSTANCES)}; up to {most} workers")
        check(len(printed) == INSTANCES, f"{len(printed)} programs were there at noon")
        check(2 <= most <= CAP, f"{most} workers at most")
        system.wait_until(lambda: len(workers.running()) == 1, level.WAIT_S, "one worker at the end of the day")
        scale.end()
        for verb in ("start", "drain", "stop"):
            check(re.search(rf" {verb} [1-{CAP}] \(", scale.text()), f"no {verb} in the log: {scale.text()}")
        for n in workers.running():
            os.kill(int((workers.folder / f"{n}.pid").read_text()), signal.SIGTERM)
        system.wait_until(lambda: not workers.running(), level.WAIT_S, "the last worker has ended")
        system.wait_until(lambda: all(map(has_ended, workers.pids())), level.WAIT_S, "workers end")
    finally:
        print(scale.text() if scale else "")
        balancer.end()
        workers.kill()
    chain.stop(master)
    level.check_counts(master, printed)


def has_ended(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def next_level(chain, master, second):
    """HAProxy as docs/examples/chain/haproxy-next-level.cfg: the master, until there is a level 2."""
    level.need("haproxy")
    config = (system.SOURCE / "docs/examples/chain/haproxy-next-level.cfg").read_text()
    port = level.free_port()
    config = config.replace("/run/haproxy/admin.sock", str(chain.folder / "next.sock")).replace("bind :7420", f"bind 127.0.0.1:{port}")
    for n in (1, 2):
        config = config.replace(f"10.0.2.{n}:7410 agent-check agent-inter 1s agent-port 7411",
                                f"127.0.0.1:{second.listen + n} agent-check agent-inter 1s agent-port {second.agent + n}")
    config = config.replace("10.0.0.1:7420", master.ready["listen"])
    check(":74" not in config.replace(str(port), ""), f"an address of the example is left: {config}")
    file = chain.folder / "next.cfg"
    file.write_text(config)
    with open(chain.folder / "next.log", "wb") as log:
        process = subprocess.Popen(["haproxy", "-db", "-f", str(file)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   preexec_fn=system.die_with_parent)
    system.wait_until(lambda: not is_free(port), 30, "HAProxy listens")
    return process, f"tcp://127.0.0.1:{port}"


def ask(master, times=200):
    """So often that it shows in the master's use, whatever else it does; true."""
    for _ in range(times):
        master.get_text("/api/v1/functions")
    return True


def a_hot_master(chain):
    """A master of which 1 % is in use is hot here; somebody asks it all the time."""
    master = chain.master()
    second = Workers(chain, master.endpoint, 2)
    balancer, forward = next_level(chain, master, second)
    first = Workers(chain, forward)
    programs, scale = level.Programs(chain, level.STEADY), None
    try:
        scale = Scale(chain, *first.options(), "--min", "2", "--max", "2", "--high", "1", "--low", "0", "--interval", "500ms", "--master",
                      master.ready["http"], "--add-level", second.start.replace("{n}", "1").replace("{n+", "$((1+").replace("}", "))"),
                      "--max-levels", "2", "--cool-down", "1s")
        system.wait_until(lambda: first.running() == [1, 2], level.WAIT_S, "two workers")
        programs.start(",".join(f"tcp://127.0.0.1:{first.listen + n}" for n in (1, 2)), 4, **pace(2 * 4))
        system.wait_until(lambda: ask(master) and second.running() == [1], level.WAIT_S, "a level 2")
        url = f"http://127.0.0.1:{second.http + 1}"
        at = system.Server("level-2", None, None, {"listen": "", "http": url.removeprefix("http://")})
        system.wait_until(lambda: level.senders(at) == 2, level.WAIT_S, "level 1 sends to level 2")
        time.sleep(2)
        printed = programs.end()
        scale.end()
        check(len(re.findall(r" add level 2 \(", scale.text())) == 1, f"one level is added, once: {scale.text()}")
        for workers in (first, second):
            for pid in workers.pids():
                os.kill(pid, signal.SIGTERM)
            system.wait_until(lambda workers=workers: all(map(has_ended, workers.pids())), level.WAIT_S, "workers end")
    finally:
        print(scale.text() if scale else "")
        programs.kill()
        balancer.kill()
        balancer.wait()
        first.kill()
        second.kill()
    chain.stop(master)
    level.check_counts(master, printed)


def say(chain, status, *options):
    """What a run of a few looks says."""
    run = subprocess.run([system.MILLRACE, "scale", *options], capture_output=True, text=True, timeout=120, check=False, env=chain.environment())
    check(run.returncode == status, f"{options}: {run.returncode}, {run.stderr}")
    return run.stderr


def what_is_wrong(chain):
    marker = chain.folder / "started"
    port = free_block(8)
    basic = ["--metrics", f"127.0.0.1:{{n+{port}}}", "--start", f"echo {{n}} >>{marker}", "--drain", "true {n}", "--stop", "true {n}"]
    quick = ["--interval", "100ms", "--start-timeout", "300ms"]
    check("would start 1" in say(chain, 0, *basic, "--dry-run", "--rounds", "1") and not marker.exists(), "--dry-run starts something")
    text = say(chain, 0, *basic, *quick, "--rounds", "8", "--max", "2")
    check("was started and does not answer" in text and f"127.0.0.1:{port + 1}: connect" in text, text)
    check(set(marker.read_text().split()) <= {"1", "2"}, "numbers beyond --max")
    text = say(chain, 1, *basic[:2], "--start", "echo no such unit {n} >&2; exit 5", *basic[4:], *quick, "--rounds", "1", "--max", "1")
    check("ended with 5: no such unit 1" in text, text)
    text = say(chain, 1, *basic[:2], "--start", "sleep 100 # {n}", *basic[4:], *quick, "--rounds", "1", "--max", "1", "--command-timeout", "200ms")
    check("did not end within --command-timeout" in text, text)
    for options, part in (([], "--metrics is needed"), (basic[:2], "--start is needed"), (["--metrics", "a:1", *basic[2:]], "has no {n}"),
                          ([*basic[:2], "--start", "run {x}", *basic[4:]], "'{x}'"), ([*basic, "--min", "9"], "--max"),
                          ([*basic, "--low", "80"], "--high"), ([*basic, "--add-level", "true"], "--master"),
                          (["--metrics", "host{n}", *basic[2:]], "--metrics: endpoint 'host1': it has no port"),
                          (["--metrics", "host:{n+65530}", *basic[2:]], "--metrics: endpoint 'host:65536'"),
                          (["--metrics", "host:{n-1}", *basic[2:]], "--metrics: 'host:0': nobody"),
                          (["--metrics", "host:{n},host:1", *basic[2:]], "more than one"),
                          (["--metrics", "h" * 300 + ":{n}", *basic[2:]], "--metrics: too long"),
                          ([*basic, "--master", "nobody"], "--master: endpoint 'nobody': it has no port")):
        text = say(chain, 2, *options)
        check(part in text and text.count("\n") == 1, f"{options}: {text}")


def test():
    for case in (what_is_wrong, a_day, a_hot_master):
        print("---", case.__name__)
        with system.System() as chain:
            case(chain)


if __name__ == "__main__":
    system.main(test)
