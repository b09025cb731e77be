# SPDX-License-Identifier: Apache-2.0
"""Programs, a worker and a master on hosts of their own, by IPv4, by IPv6, and by names that have both where one of them is not answered;
with an MTU of 1280, packets that are lost, and the worker's link pulled while they run: every event arrives, and the ledger balances.

Without root, or what makes hosts here: skipped.
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from account import report  # pylint: disable=wrong-import-position
from hosts import Absent, Lan, Refused  # pylint: disable=wrong-import-position
from system import check, wait_until  # pylint: disable=wrong-import-position

CALLS = 1500  # of slow.c, a millisecond each
EVENTS = 2 * (1 + 3 * 100000) + 2 * (1 + CALLS)  # of bad_input/program.c and slow.c
SECONDS = 90
PULLED_S = 2
CASES = [  # how the listener is called, the family by which nothing is answered, whether the link is pulled
    ("{host.address}", None, True),
    ("[{host.address_6}]", None, True),
    ("both", "ip", False),
    ("both", "ip6", False),
]


def listen(host, name, silent):
    """By the family that is answered, if there is one that is not."""
    if name == "both":
        name = "{host.address}" if silent == "ip6" else "[{host.address_6}]"
    return "tcp://" + name.format(host=host)


def start_servers(chain, hosts, name, silent, number):
    _, at_worker, at_master = hosts
    master = chain.start("master", ["master", "--listen", listen(at_master, name, silent) + ":7420", "--insecure", "--http", "127.0.0.1:0",
                                    "--store", str(chain.folder / f"store{number}")], prefix=at_master.inside)
    forward = "tcp://master" if name == "both" else listen(at_master, name, silent)
    worker = chain.start("worker", ["worker", "--listen", listen(at_worker, name, silent) + ":7410", "--insecure", "--forward",
                                    forward + ":7420", "--drain-timeout", "60s"], prefix=at_worker.inside)
    return master, worker


def run_programs(chain, hosts, endpoint, is_pulled):
    at_programs, at_worker, _ = hosts
    begun = chain.folder / "begun"
    environment = chain.environment(MILLRACE_ENDPOINT=endpoint, MILLRACE_POLICY="block", MILLRACE_BLOCK_TIMEOUT="60s",
                                    MILLRACE_EXIT_TIMEOUT="60s")
    programs = [at_programs.start(command, env=environment, stdout=system.subprocess.DEVNULL)
                for command in ([chain.folder / "slow", begun, str(CALLS)], [chain.folder / "program"])]
    wait_until(begun.exists, SECONDS, "the program begins")
    if is_pulled:
        at_worker.link(False)
        time.sleep(PULLED_S)
        at_worker.link(True)
    statuses = [program.wait(SECONDS) for program in programs]
    check(statuses == [0, 7], f"the programs ended with {statuses}")
    begun.unlink()


def run(chain, lan, number, name, silent, is_pulled):
    hosts = [lan.host(f"{kind}{number}") for kind in ("programs", "worker", "master")]
    called = [f"{address} {kind}" for kind, host in zip(("worker", "master"), hosts[1:]) for address in (host.address, host.address_6)]
    if not all(host.has_6 for host in hosts) and name != "{host.address}":
        print(f"{name}: no IPv6 here: left out")
        return
    for host in hosts:
        host.names(chain.folder / f"hosts-{host.name}", called)
        host.run("ip", "link", "set", "eth0", "mtu", "1280")
        if lan.has_nft:
            host.drop("in", 0.02)
            if silent and host is not hosts[0]:
                host.swallow(silent)
    master, worker = start_servers(chain, hosts, name, silent, number)
    run_programs(chain, hosts, ("tcp://worker" if name == "both" else listen(hosts[1], name, silent)) + ":7410", is_pulled)
    chain.stop(worker)
    chain.stop(master)
    ledger = report(system.MILLRACE, chain.folder / f"store{number}")["ledger"]
    print(f"{name}, no answer by {silent}: {ledger['reduced']} of {EVENTS} events, {ledger['lost']} lost")
    check(ledger["balanced"] and ledger["last"] == ledger["reduced"] == EVENTS and ledger["lost"] == 0, f"{name}, {silent}: {ledger}")


def test():
    with system.System() as chain:
        system.compile_program(chain.folder / "slow", [system.SOURCE / "tests/system/cli/slow.c"])
        system.compile_program(chain.folder / "program", [system.SOURCE / "tests/system/bad_input/program.c"])
        try:
            lan = Lan()
        except Absent as why:
            print(f"{why}: skipped")
            sys.exit(system.SKIP)
        try:
            for number, case in enumerate(CASES):
                run(chain, lan, number, *case)
        except Refused as why:
            raise system.Failure(str(why)) from why
        finally:
            lan.close_all()


if __name__ == "__main__":
    system.main(test)
