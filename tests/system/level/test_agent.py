# SPDX-License-Identifier: Apache-2.0
"""--agent with Debian's HAProxy, under roundrobin and leastconn: the idler of two workers gets more of the new connections; one that
drains gets none and empties itself; once empty it is in maintenance, and ready again when told; one that ends is down."""
import os
import signal
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import level  # pylint: disable=wrong-import-position
from level import check, system  # pylint: disable=wrong-import-position

CONNECTIONS = 60
BURSTS = 10
DRAIN_S = 300  # --drain-timeout: only the test ends the wait


def connect(balancer, count):
    """All open at the same time, then closed. None is one of a sender."""
    held = [socket.create_connection(("127.0.0.1", balancer.port), timeout=30) for _ in range(count)]
    for connection in held:
        connection.close()


def new_connections(balancer):
    """w0's and w1's share of new ones."""
    before = [balancer.sessions(name) for name in ("w0", "w1")]
    connect(balancer, CONNECTIONS)
    system.wait_until(lambda: sum(balancer.sessions(name) for name in ("w0", "w1")) >= sum(before) + CONNECTIONS, 30, "all connections")
    return [balancer.sessions(name) - count for name, count in zip(("w0", "w1"), before)]


def are_by_use(weights):
    return weights[0] >= 85 and weights[1] <= weights[0] - 20  # how busy it gets is a matter of its speed


def connections_by_use(balancer):
    """Shares of new connections under weights that were by use before and after them: connections make workers busy, too."""
    def weights():
        return [balancer.weight(name) for name in ("w0", "w1")]

    for _ in range(BURSTS):
        system.wait_until(lambda: are_by_use(weights()), level.WAIT_S, "weights by use")
        before, shares, after = weights(), new_connections(balancer), weights()
        print(f"weights {before}, then {after}: new connections to the idle worker and to the busy one {shares}")
        if are_by_use(before) and are_by_use(after):
            return shares
    raise system.Failure(f"in {BURSTS} bursts the weights did not stay")


def check_weights(balancer, workers):
    idle, busy = connections_by_use(balancer)
    check(idle + busy == CONNECTIONS and idle > busy, "the idle worker got no more")
    use = [level.metrics(at)["millrace_utilisation"] for at in workers]
    check(0 <= use[0] < use[1] <= 1, f"utilisations {use}")
    check(all(0 <= level.metrics(at)["millrace_process_cpu_share"] <= 1 for at in workers), "shares of the processors")


def check_drain(balancer, workers, programs):
    """w1 is drained: its senders go to w0 through the balancer."""
    programs.start(balancer.endpoint, 3)
    system.wait_until(lambda: sum(map(level.senders, workers)) == 3, level.WAIT_S, "three senders")
    workers[1].process.send_signal(signal.SIGUSR1)
    system.wait_until(lambda: balancer.state("w1").startswith(("DRAIN", "MAINT")), level.WAIT_S, "HAProxy sees that w1 drains")
    idle, drained = new_connections(balancer)
    check(drained == 0 and idle >= CONNECTIONS, f"{drained} new connections to a worker that drains")  # its senders may come at the same time
    system.wait_until(lambda: balancer.state("w1").startswith("MAINT"), level.WAIT_S, "HAProxy sees that w1 is empty")
    check(level.senders(workers[1]) == 0 and level.agent_line(workers[1]).startswith("maint #"), level.agent_line(workers[1]))
    system.wait_until(lambda: level.senders(workers[0]) == 3, level.WAIT_S, "all senders are at w0")
    workers[1].process.send_signal(signal.SIGUSR2)
    system.wait_until(lambda: balancer.state("w1").startswith("UP"), level.WAIT_S, "HAProxy sees that w1 is ready again")
    check(level.agent_line(workers[1]).startswith("up ready "), "ready")


def check_end(chain, balancer, workers):
    """While w0 ends, held up by a sender that does not answer, it says so; when it is gone, the balancer knows that."""
    stuck = level.Programs(chain)
    stuck.start(workers[0].endpoint)
    system.wait_until(lambda: level.senders(workers[0]) == 1, level.WAIT_S, "a sender")
    stuck.running[0].send_signal(signal.SIGSTOP)
    workers[0].process.terminate()
    system.wait_until(lambda: level.agent_line(workers[0]).startswith("down #"), 4, "it says that it ends")
    system.wait_until(lambda: balancer.state("w0").startswith("DOWN"), level.WAIT_S, "HAProxy sees it")
    stuck.running[0].send_signal(signal.SIGCONT)
    # Not told again: a second SIGTERM would drop what the sender has not settled, and say so.
    check(workers[0].process.wait(system.STOP_S) == 0, f"w0 ended otherwise: {workers[0].log.read_text()[-2000:]}")
    idle, left = new_connections(balancer)
    check((idle, left) == (0, CONNECTIONS), f"{idle} new connections to a worker that is gone")
    stuck.kill()


def check_all(balance):
    print("---", balance)
    with system.System() as chain:
        master = chain.master()
        workers = [level.worker(chain, master.endpoint, "--drain-timeout", f"{DRAIN_S}s") for _ in range(2)]
        balancer = level.Balancer(chain, level.as_servers(workers), balance)
        programs = level.Programs(chain)
        try:
            programs.start(workers[1].endpoint, 3, MILLRACE_POLICY="drop")
            check_weights(balancer, workers)
            programs.end()
            check_drain(balancer, workers, programs)
            programs.end()
            check_end(chain, balancer, workers)
        finally:
            programs.kill()
            balancer.end()


def test():
    for balance in ("roundrobin", "leastconn"):
        check_all(balance)


if __name__ == "__main__":
    system.main(test)
