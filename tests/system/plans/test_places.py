# SPDX-License-Identifier: Apache-2.0
"""Random plans where it matters which host a program is on, or when and how many parts come:

    hosts   the same programs on two hosts at once, which are one in one chain, and told apart in another (--group-by signature,host)
    late    the worker of one program stands still until the others' traces have been waited for: its parts come too late
    limit   more parts wait than the master may have (--max-parts)
    killed  the programs kill themselves in the middle, after all that they recorded has been sent"""
import collections
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import chains  # pylint: disable=wrong-import-position
import plan  # pylint: disable=wrong-import-position
import programs  # pylint: disable=wrong-import-position
import said  # pylint: disable=wrong-import-position
import system  # pylint: disable=wrong-import-position
import test_plans  # pylint: disable=wrong-import-position

JOIN_TIMEOUT_S = 6
LATE_JOIN_TIMEOUT_S = 3
LATE = 2  # the program whose worker stands still
MAX_PARTS = 500
HOSTS = ("alpha", "beta")
HABITS = {"several", "unattached", "dropped", "never", "inside", "headless", "two-roots"}


def wait_for_joins(master, what):
    system.wait_until(lambda: master.get("/api/v1/traces")["parts_waiting"] == 0, 60, f"{what}: no part waits")


class Hosts:
    """Each plan runs twice; of the second run the programs are on the other host, but for the last, so that traces cross hosts."""

    def __init__(self, chain, binary, seed, tells_hosts):
        self.chain, self.tells_hosts = chain, tells_hosts
        self.name = "by-host" if tells_hosts else "hosts-as-one"
        self.master = chain.master("--join-timeout", f"{JOIN_TIMEOUT_S}s", store=chain.folder / f"store-{self.name}")
        options = ["--group-by", "signature,host"] if tells_hosts else []
        self.workers = [chains.worker(chain, self.master.endpoint, *options) for _ in HOSTS]
        endpoints = [worker.endpoint for worker in self.workers]
        self.programs = []
        for number in range(2):
            for first, second in (HOSTS, reversed(HOSTS)):
                each = plan.Plan(f"{seed} {number}", habits=HABITS)
                self.programs.append(programs.Programs(chain, binary, each, f"{self.name}-{number}-{first}", endpoints, app=f"{number}-",
                                                       hosts=(first, second, HOSTS[0])))

    def differences(self):
        for each in self.programs:
            each.wait()
        for worker in self.workers:
            self.chain.stop(worker)
        wait_for_joins(self.master, self.name)
        streams = [stream for each in self.programs for stream in each.streams(tells_hosts=self.tells_hosts)]
        yield from said.differences(self.master, streams)

    def counts(self):
        """Of all joined shapes, entry points and functions, without hosts."""
        counts = collections.Counter()
        for text, row in said.Said(self.master).rows.items():
            for host in HOSTS:
                text = text.replace("@" + host, "")
            counts[text] += row["traces"]
        for row in self.master.get(f"/api/v1/entries?limit={said.ROWS_MAX}")["entries"]:
            counts[f"{row['app']} {row['name']}"] += row["count"]
        return counts


class Late:
    def __init__(self, chain, binary, seed):
        self.chain = chain
        self.master = chain.master("--join-timeout", f"{LATE_JOIN_TIMEOUT_S}s", store=chain.folder / "store-late")
        self.workers = [chains.worker(chain, self.master.endpoint) for _ in range(3)]
        self.workers[LATE].process.send_signal(signal.SIGSTOP)
        self.programs = programs.Programs(chain, binary, plan.Plan(seed, habits=HABITS), "late", [worker.endpoint for worker in self.workers])

    def differences(self):
        in_time = [number for number in range(3) if number != LATE]
        self.programs.wait(in_time)
        for number in in_time:
            self.chain.stop(self.workers[number])
        wait_for_joins(self.master, "late, before")
        self.workers[LATE].process.send_signal(signal.SIGCONT)
        self.programs.wait([LATE])
        self.chain.stop(self.workers[LATE])
        wait_for_joins(self.master, "late")
        streams, late = self.programs.streams(in_time), self.programs.streams([LATE])
        print(f"late: {sum(len(stream.parts) for stream in late)} of {sum(len(stream.parts) for stream in (*streams, *late))} parts")
        yield from said.differences(self.master, streams, *late)


class Limit:
    """Which traces are cut short depends on which parts come first, so sums are compared."""

    def __init__(self, chain, binary, seed):
        self.chain = chain
        self.master = chain.master("--join-timeout", f"{JOIN_TIMEOUT_S}s", "--max-parts", str(MAX_PARTS), store=chain.folder / "store-limit")
        self.worker = chains.worker(chain, self.master.endpoint, "--max-parts", "16")
        self.programs = programs.Programs(chain, binary, plan.Plan(seed, requests=10, habits={"crowd", "dropped"}), "limit",
                                          [self.worker.endpoint])

    def differences(self):
        self.programs.wait()
        self.chain.stop(self.worker)
        if self.master.get("/api/v1/traces")["parts_waiting"] > MAX_PARTS:
            yield "more parts wait than may"
        wait_for_joins(self.master, "limit")
        streams = self.programs.streams()
        parts = self.master.get("/api/v1/ledger")["parts"]
        reasons = parts["incomplete_by_reason"]
        is_told = parts["came"] == parts["joined"] + parts["incomplete"] and sum(reasons.values()) == parts["incomplete"]
        # The worker joins by itself what is small.
        if not parts["balanced"] or not is_told or not reasons.get("parts") or parts["came"] < plan.CROWD ** 2:
            yield f"parts {parts}"
        yield from said.call_count_differences(self.master, streams)
        yield from said.entry_differences(self.master, streams)


class Killed:
    def __init__(self, chain, binary, seed):
        self.chain, self.random = chain, random.Random(seed)
        self.master = chain.master("--join-timeout", f"{JOIN_TIMEOUT_S}s", store=chain.folder / "store-killed")
        self.workers = [chains.worker(chain, self.master.endpoint, "--source-grace", "1s", "--lanes", "2") for _ in range(2)]
        endpoints = [worker.endpoint for worker in self.workers]
        self.programs = []
        for number in range(3):
            each = plan.Plan(f"{seed} {number}", requests=60, habits=HABITS | {"steal", "slow", "ask", "empty"})
            each.pause_us = 10_000
            self.programs.append(programs.Programs(chain, binary, each, f"killed-{number}-", endpoints))

    def differences(self):
        died = 0
        for each in self.programs:
            time.sleep(self.random.uniform(0.05, 0.3))  # moments of no request's choosing
            died += each.die()
        system.wait_until(lambda: self.died() == died, 60, f"killed: {died} programs are known to have died")
        for worker in self.workers:
            self.chain.stop(worker)
        wait_for_joins(self.master, "killed")
        streams = [stream for each in self.programs for stream in each.streams()]
        print(f"killed: {died} programs, traces {said.Said(self.master).sums()}")
        yield from said.differences(self.master, streams)

    def died(self):
        return self.master.get("/api/v1/ledger")["stages"]["sources_died"]


def run_all(chain, seed):
    binary = system.compile_program(chain.folder / "program", test_plans.SOURCES)
    hosts = [Hosts(chain, binary, seed, tells_hosts) for tells_hosts in (False, True)] if programs.can_have_hosts() else []
    if not hosts:
        print("no host can be had with a name of its own: hosts are left out")
    runs = [*hosts, *(kind(chain, binary, seed) for kind in (Late, Limit, Killed))]
    differences = [f"{type(run).__name__}: {line}" for run in reversed(runs) for line in run.differences()]
    if hosts:
        as_one, by_host = (run.counts() for run in hosts)
        print(f"hosts: {sum(as_one.values())} traces and calls of entry points")
        differences += said.counter_differences("summed over hosts,", by_host, as_one)
    return differences


def test():
    test_plans.run_rounds("plans_places", run_all)


if __name__ == "__main__":
    system.main(test)
