# SPDX-License-Identifier: Apache-2.0
"""Long-lived connections even out, by --peers: after a worker was added, when one is hot, and when one drains. Nothing is lost by it:
the master has the calls that the programs counted themselves, and its ledger balances."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import level  # pylint: disable=wrong-import-position
from level import check, system  # pylint: disable=wrong-import-position

PROGRAMS = 8


class Level:
    """Two workers at ports that are known before they run, asking each other."""

    def __init__(self, chain):
        self.chain = chain
        self.master = chain.master()
        self.listens = [f"127.0.0.1:{level.free_port()}" for _ in range(2)]
        self.agents = [f"tcp://127.0.0.1:{level.free_port()}" for _ in range(2)]

    def start(self, i):
        return self.chain.worker(self.master.endpoint, "--agent", self.agents[i], "--peers", ",".join(self.agents), "--metrics",
                                 "127.0.0.1:0", "--lanes", "1", listen=self.listens[i])

    def servers(self):
        return {f"w{i}": (listen, level.port_of(agent)) for i, (listen, agent) in enumerate(zip(self.listens, self.agents))}


def wait_even(what, workers, counts):
    """Until the senders of the workers are as `counts` wants them."""
    start = time.monotonic()
    system.wait_until(lambda: counts([level.senders(at) for at in workers]), level.WAIT_S, what)
    print(f"{what}: {[level.senders(at) for at in workers]} after {time.monotonic() - start:.1f} s")


def added_and_drained(chain):
    """Behind HAProxy: all programs at one worker, then a second comes, then the first is drained and stopped."""
    at = Level(chain)
    first = at.start(0)
    balancer = level.Balancer(chain, at.servers())
    programs = level.Programs(chain, level.STEADY)
    try:
        programs.start(balancer.endpoint, PROGRAMS)
        wait_even("one worker", [first], lambda counts: counts == [PROGRAMS])
        second = at.start(1)
        wait_even("a worker is added", [first, second], lambda counts: sum(counts) == PROGRAMS and min(counts) >= 3)
        first.process.send_signal(signal.SIGUSR1)
        wait_even("the first is drained", [first, second], lambda counts: counts == [0, PROGRAMS])
        check(level.agent_line(first).startswith("maint #"), "it is empty, and says so")
        chain.stop(first)
        printed = programs.end()
    finally:
        programs.kill()
        balancer.end()
    chain.stop(second)
    chain.stop(at.master)
    level.check_counts(at.master, printed)


def hot(chain):
    """Without a balancer, over lists of endpoints: few busy programs at the one, many quiet ones at the other."""
    at = Level(chain)
    workers = [at.start(i) for i in range(2)]
    quiet, busy = level.Programs(chain, level.STEADY), level.Programs(chain)
    lists = [",".join("tcp://" + listen for listen in order) for order in (at.listens, at.listens[::-1])]
    try:
        quiet.start(lists[1], PROGRAMS)
        wait_even("the quiet ones", workers, lambda counts: counts == [0, PROGRAMS] or min(counts) >= 3)
        before = level.senders(workers[1])
        busy.start(lists[0], 4, MILLRACE_POLICY="drop")
        wait_even("a hot worker", workers, lambda counts: sum(counts) == PROGRAMS + 4 and counts[1] > before)
        busy.end()
        quiet.end()
    finally:
        quiet.kill()
        busy.kill()
    for worker in workers:
        chain.stop(worker)


def test():
    for case in (added_and_drained, hot):
        print("---", case.__name__)
        with system.System() as chain:
            case(chain)


if __name__ == "__main__":
    system.main(test)
