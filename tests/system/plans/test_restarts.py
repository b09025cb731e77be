# SPDX-License-Identifier: Apache-2.0
"""Random plans through three levels of workers, the lowest behind HAProxy, while servers end and start again at their addresses, on their
spools and store:

    gentle   those that programs send to by SIGTERM, those above by SIGKILL, too: nothing differs from what the programs' logs say
    rough    all by SIGKILL, too, so that programs go on at other workers, which do not know what is open: traces are incomplete

At last the master ends once more: from its store it answers as before."""
import collections
import os
import random
import shutil
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import balancer  # pylint: disable=wrong-import-position
import chains  # pylint: disable=wrong-import-position
import joined  # pylint: disable=wrong-import-position
import plan  # pylint: disable=wrong-import-position
import programs  # pylint: disable=wrong-import-position
import said  # pylint: disable=wrong-import-position
import system  # pylint: disable=wrong-import-position
import test_plans  # pylint: disable=wrong-import-position

REQUESTS, PAUSE_US = 90, 30_000
JOIN_TIMEOUT_S = 10  # longer than any server is away, unless the machine stands still
ATTEMPTS = 3
# One call tree is open in a stream when it moves, so that it is whole at last (OPERATIONS.md, "What is lost when").
HABITS = {
    "gentle": {"several", "empty", "unattached", "undetached", "detached-twice", "dropped", "unreadable", "zero", "headless", "never",
               "inside", "ask", "no-begin", "two-roots", "slow"},
    "rough": {"several", "unattached", "dropped", "never", "inside", "two-roots", "slow"},
}
OPTIONS = ([], ["--lanes", "1"], ["--lanes", "6", "--drivers", "2", "--lane-of", "sender"], ["--lanes", "2", "--placement", "threads"],
           ["--max-parts", "16", "--delta-interval", "1ms"])
ANSWERS = ("/api/v1/traces?limit=10000", "/api/v1/ledger", "/api/v1/functions?limit=10000", "/api/v1/entries?limit=10000",
           "/api/v1/shapes?limit=10000")


class Stalled(Exception):
    """A server was away for so long that parts may have come past the join's time-out."""


def free_address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


class Standing:
    """A server that can end and start again: start(listen) starts it."""

    def __init__(self, chain, start):
        self.chain, self.start, self.listen = chain, start, free_address()
        self.server = start(self.listen)

    def restart(self, how):
        """How long it was away, in seconds."""
        began = time.monotonic()
        if how == signal.SIGTERM:
            self.chain.stop(self.server)
        else:
            self.server.process.kill()
            self.server.process.wait()
        self.server = self.start(self.listen)
        return time.monotonic() - began


class Levels:
    """Two workers, two, and one, and a master."""

    def __init__(self, chain, name, options):
        self.chain, self.name, self.options = chain, name, options
        http = free_address()
        self.master = Standing(chain, lambda listen: chain.master("--join-timeout", f"{JOIN_TIMEOUT_S}s", listen=listen, http=http,
                                                                  store=chain.folder / f"store-{name}"))
        self.top = self.worker(3, self.master)
        self.middle = [self.worker(2, self.top) for _ in range(2)]
        self.low = [self.worker(1, *self.middle) for _ in range(2)]
        self.endpoint = balancer.start(chain, [worker.server for worker in self.low])
        self.workers = [*self.low, *self.middle, self.top]

    def worker(self, level, *above):
        forward = ",".join(at.server.endpoint for at in above)
        return Standing(self.chain, lambda listen: chains.worker(
            self.chain, forward, "--source-grace", "2s", "--spool", str(self.chain.folder / f"spool-{self.name}-{listen}"), *self.options,
            listen=listen, level=level))

    def disturb(self, random_):
        """How long a server was away."""
        if random_.random() < 0.25:
            return self.master.restart(signal.SIGKILL)
        worker = random_.choice(self.workers)
        may_kill = self.name == "rough" or worker not in self.low
        return worker.restart(signal.SIGKILL if may_kill and random_.random() < 0.5 else signal.SIGTERM)

    def stop(self):
        for worker in self.workers:
            self.chain.stop(worker.server)


def json_differences(given, expected, place=""):
    """Of two answers, the places where they differ, but for what is said of now."""
    if place.endswith(".last_10s"):
        return
    if type(given) is not type(expected) or not isinstance(given, (dict, list)):
        if given != expected:
            yield f"{place}: {given}, not {expected}"
    elif isinstance(given, list):
        if len(given) != len(expected):
            yield f"{place}: {len(given)} of them, not {len(expected)}"
        for number, pair in enumerate(zip(given, expected)):
            yield from json_differences(*pair, f"{place}[{number}]")
    else:
        for key in sorted(set(given) | set(expected)):
            yield from json_differences(given.get(key), expected.get(key), f"{place}.{key}")


def rough_differences(master, streams):
    """No trace is whole that was none, every call and event is accounted for."""
    known = joined.Joined([part for stream in streams for part in stream.parts])
    whole = collections.Counter()
    for text, row in said.Said(master).rows.items():
        for status in ("ok", "failed"):
            whole[status] += row[status]
            expected = known.rows[text].counts[status] if text in known.rows else 0
            if row[status] > expected:
                yield f"{row[status]} are {status}, not at most {expected}: {text}"
    print(f"rough: {dict(whole)} of {known.sums()}")
    ledger, parts = (master.get("/api/v1/ledger")[what] for what in ("ledger", "parts"))
    if not ledger["balanced"] or ledger["lost"] or ledger["held"] or not parts["balanced"]:
        yield f"{ledger}, {parts}"
    yield from said.call_count_differences(master, streams)


class Run:
    def __init__(self, chain, binary, name, seed):
        self.name, self.random = name, random.Random(f"{seed} {name}")
        options, clocks = self.random.choice(OPTIONS), self.random.choices(test_plans.CLOCKS, k=3)
        print(f"{name}: workers {' '.join(options)}; {' '.join(clocks)}")
        self.slack = said.HYBRID if "hybrid" in clocks else said.PRECISE
        self.levels = Levels(chain, name, options)
        each = plan.Plan(f"{seed} {name}", requests=REQUESTS, habits=HABITS[name])
        each.pause_us = PAUSE_US
        self.programs = programs.Programs(chain, binary, each, name, [self.levels.endpoint], clocks=clocks)
        self.rounds, self.away_s = 0, 0.0

    def disturb(self):
        """True while the programs run."""
        if self.programs.are_running():
            self.away_s = max(self.away_s, self.levels.disturb(self.random))
            self.rounds += 1
        return self.programs.are_running()

    def answers(self):
        """Once no part waits; but for what is said of the process."""
        master = self.levels.master.server
        system.wait_until(lambda: master.get("/api/v1/traces")["parts_waiting"] == 0, 60, f"{self.name}: no part waits")
        return {path: {key: value for key, value in master.get(path).items() if key not in ("generation", "stages")} for path in ANSWERS}

    def differences(self):
        self.answers()
        master, streams = self.levels.master.server, self.programs.streams()
        print(f"{self.name}: {self.rounds} times a server ended; {sum(len(stream.parts) for stream in streams)} parts, "
              f"traces {said.Said(master).sums()}")
        return list(rough_differences(master, streams) if self.name == "rough" else said.differences(master, streams, slack=self.slack))

    def store_differences(self):
        before = self.answers()
        self.levels.master.restart(signal.SIGTERM)
        for (path, after), answer in zip(self.answers().items(), before.values()):
            yield from (f"{path}: {line}" for line in json_differences(after, answer))


def run_both(chain, seed):
    binary = system.compile_program(chain.folder / "program", test_plans.SOURCES)
    runs = [Run(chain, binary, name, seed) for name in HABITS]
    while any([run.disturb() for run in runs]):
        time.sleep(runs[0].random.uniform(0.1, 0.4))  # moments of no request's choosing
    for run in runs:
        run.programs.wait()
        run.levels.stop()
    differences = [f"{run.name}: {line}" for run in runs for line in run.differences()]
    away_s = max(run.away_s for run in runs)
    if differences and away_s > JOIN_TIMEOUT_S / 2:
        raise Stalled("\n".join([*differences[:3], f"{len(differences)} differences, but a server was away for {away_s:.1f} s"]))
    return differences + [f"{run.name}, from the store: {line}" for run in runs for line in run.store_differences()]


def test():
    if not shutil.which("haproxy"):
        print("no HAProxy here: skipped")
        sys.exit(system.SKIP)
    for attempt in range(ATTEMPTS):
        try:
            test_plans.run_rounds("plans_restarts", run_both)
            return
        except Stalled as stalled:
            print(f"{stalled}: {'again' if attempt + 1 < ATTEMPTS else 'no more'}")
    raise system.Failure(f"{ATTEMPTS} times something differed and a server was away for seconds")


if __name__ == "__main__":
    system.main(test)
