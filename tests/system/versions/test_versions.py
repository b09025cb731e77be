# SPDX-License-Identifier: Apache-2.0
"""Two versions side by side: a chain of the version before this one becomes one of this version, while programs of both run.

    test_versions.py [BUILD]      a build folder of the other version; else the commit in ./previous is built

Two parts. An upgrade in the order of docs/OPERATIONS.md: the master on its store, then level 2, then the workers of level 1 one by one;
a program of the old version and one of the new run through all of it. A roll-back of one worker: level 1 has a worker of each version
and the senders of each go to the other. Each ends with the calls that the programs counted themselves, none missing. The version before
had no custody: where a hop to or from it breaks with frames under way they may be there twice, and the ledger tells how many.
"""
import json
import os
import pathlib
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "chain"))
import chain as lib  # pylint: disable=wrong-import-position
from chain import check, system  # pylint: disable=wrong-import-position

HERE = system.SOURCE / "tests" / "system" / "versions"
BATCHES = lib.BATCHES // 8
LEVEL1 = 2


def previous():
    if len(sys.argv) > 1:
        return pathlib.Path(sys.argv[1])
    run = subprocess.run([HERE / "previous.sh", system.SOURCE / "build" / "previous"], capture_output=True, text=True, check=False)
    if run.returncode == system.SKIP:
        print(f"skipped: {run.stderr.strip()}")
        sys.exit(system.SKIP)
    check(run.returncode == 0, run.stderr)
    return pathlib.Path(run.stdout.splitlines()[-1])


class Chain:
    """A master, a worker of level 2 and two of level 1, each of a version of its own, at addresses that stay."""

    def __init__(self, hosts, old):
        self.hosts, self.binary = hosts, {"old": old / "bin" / "millrace", "new": pathlib.Path(system.MILLRACE)}
        self.master = hosts.master(binary=self.binary["old"])
        self.upper = hosts.worker(self.master.endpoint, level=2, binary=self.binary["old"])
        self.lower = [hosts.worker(self.upper.endpoint, binary=self.binary["old"]) for _ in range(LEVEL1)]

    @property
    def endpoint(self):
        return ",".join(worker.endpoint for worker in self.lower)

    def replace_master(self, version):
        self.hosts.stop(self.master)
        self.master = self.hosts.master(store=self.master.store, listen=self.master.ready["listen"], http=self.master.ready["http"],
                                        binary=self.binary[version])

    def replace_upper(self, version):
        self.hosts.stop(self.upper)
        self.upper = self.hosts.worker(self.master.endpoint, level=2, listen=self.upper.ready["listen"], binary=self.binary[version])

    def replace_lower(self, i, version):
        self.hosts.stop(self.lower[i])
        self.lower[i] = self.hosts.worker(self.upper.endpoint, listen=self.lower[i].ready["listen"], binary=self.binary[version])

    def stop(self):
        for server in [*self.lower, self.upper, self.master]:
            self.hosts.stop(server)


def check_account(store, programs):
    """What all programs counted is what the store has, and the ledger says so. A function of each version's build is one of its own."""
    own, found, report = {}, {}, lib.report(store)
    for name, count in (item for counts in programs for item in counts.items()):
        own[name] = own.get(name, 0) + count
    for row in report["functions"]:
        found[row["name"]] = found.get(row["name"], 0) + row["ok"] + row["failed"] + row["incomplete"]
    ledger = report["ledger"]
    print(f"the programs' own counts {own}\nthe master's             {found}\nledger {ledger}")
    check(all(found.get(name, 0) >= count for name, count in own.items()), "calls are missing")
    check(ledger["lost"] == 0 and ledger["held"] == 0 and ledger["last"] == 2 * sum(own.values()), "the ledger does not balance")
    check(ledger["reduced"] == ledger["last"] + ledger["excess"], "what is there twice is not told to the event")
    check(ledger["excess"] > 0 or found == own, "calls are there twice, and the ledger does not say so")


def phase(programs, number, meanwhile):
    """One phase of each program, and what is done while they run."""
    for program in programs:
        program.go_on()
    for do, argument in meanwhile:
        do(*argument)
    for program in programs:
        program.wait_mark(number)


def run(chain, programs, second, third):
    """The programs' three phases, with what is done in the second and the third, and the account."""
    try:
        for program in programs:
            program.wait_mark(1)
        phase(programs, 2, second)
        phase(programs, 3, third)
        for program in programs:
            program.go_on()
        counts = [program.own_counts() for program in programs]
    finally:
        for program in programs:
            program.end()
    chain.stop()
    check_account(chain.master.store, counts)


def ask(chain):
    """A request for an exemplar, at a new master: workers of the version before are told nothing of it, and go on."""
    entry = system.wait_until(lambda: chain.master.get("/api/v1/entries")["entries"], system.READY_S, "an entry point")[0]["id"]
    request = urllib.request.Request(chain.master.url + "/api/v1/exemplars/wanted", data=json.dumps({"path": entry, "ttl_s": 600}).encode(),
                                     headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=system.QUERY_S) as answer:
        check(answer.status == 201, f"asked for a trace: {answer.status}")


def upgrade(old):
    with system.System() as hosts:
        chain = Chain(hosts, old)
        run(chain, [lib.Program(hosts, chain.endpoint, BATCHES, build) for build in (old, system.BUILD)],
            [(chain.replace_master, ("new",)), (ask, (chain,)), (chain.replace_upper, ("new",)), (chain.replace_lower, (0, "new"))],
            [(chain.replace_lower, (1, "new"))])


def both_ways(old):
    """The master and level 2 are new; at level 1 the programs meet one version and then the other, in both directions."""
    with system.System() as hosts:
        chain = Chain(hosts, old)
        chain.replace_master("new")
        chain.replace_upper("new")
        chain.replace_lower(0, "new")
        run(chain, [lib.Program(hosts, chain.endpoint, BATCHES, build) for build in (old, system.BUILD) for _ in range(2)],
            [(ask, (chain,)), (chain.replace_lower, (0, "old")), (chain.replace_lower, (1, "new"))],
            [(chain.replace_lower, (0, "new")), (chain.replace_lower, (1, "old"))])


def test():
    old = previous()
    for part in (upgrade, both_ways):
        print(f"--- {part.__name__}")
        part(old)


if __name__ == "__main__":
    system.main(test)
