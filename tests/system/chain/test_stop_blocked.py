# SPDX-License-Identifier: Apache-2.0
"""SIGTERM to a worker that is blocked: the next level accepts and never reads, the outbox and every pipe up to the lane are full, and the
lane waits to push. The worker says that all of it is in use, and ends all the same, after --drain-timeout: what it has stays in its
spool. The program waits meanwhile (policy block) and goes on at the worker that is started next on it, with a master above: nothing
is lost, nothing counts twice.
"""
import os
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "wire"))
import wire as lib  # pylint: disable=wrong-import-position
from wire import check, system  # pylint: disable=wrong-import-position

PROGRAMS, THREADS, ROUNDS = 3, 3, 60_000
LOOKS, BLOCKED_S = 20, 4
# Deltas that are small and many: a small outbox is full soon.
OPTIONS = ["--lanes", "1", "--drivers", "1", "--max-frame", "64K", "--outbox", "1M", "--delta-interval", "1ms", "--drain-timeout", "500ms"]


def is_full(values, name):
    labels = '{graph="trunk",filter="%s"}' % name
    return values["millrace_pipe_batches" + labels] == values["millrace_pipe_capacity_batches" + labels]


def metrics(worker):
    return dict(line.rsplit(" ", 1) for line in worker.get_text("/metrics").splitlines() if not line.startswith("#"))


def is_blocked(worker):
    """Both pipes of the trunk are full: its first thread waits for the second one, and that for the next level."""
    values = metrics(worker)
    return all(is_full(values, name) for name in ("scatter", "forward"))


def wait_blocked(worker):
    """Some looks in a row. Mostly it comes to that; but a tick that ends with the last place of a pipe leaves the first thread free."""
    end, looks = time.monotonic() + BLOCKED_S, 0
    while looks < LOOKS and time.monotonic() < end:
        looks = looks + 1 if is_blocked(worker) else 0
        time.sleep(0.02)
    print("blocked" if looks == LOOKS else "the outbox is full, not all pipes")


def wait_busy(worker):
    """It has no room for more, and no balancer should take it for idle."""
    system.wait_until(lambda: float(metrics(worker)["millrace_utilisation"]) > 0.9, 30, "a worker that is blocked to be in use")


def start(chain, binary, endpoint, app):
    """Each application has rows of its own in a delta, so that it is sent in several frames."""
    environment = chain.environment(MILLRACE_ENDPOINT=endpoint, MILLRACE_APP=app, MILLRACE_POLICY="block", MILLRACE_BLOCK_TIMEOUT="60s",
                                    MILLRACE_EXIT_TIMEOUT="60s")
    return subprocess.Popen([binary, "count", str(ROUNDS)], env=environment, stdout=subprocess.PIPE, text=True)


def run(placement):
    with system.System() as chain, socket.create_server(("127.0.0.1", 0), backlog=64) as mute:
        options = [*OPTIONS, "--placement", placement, "--spool", str(chain.folder / "spool")]
        blocked = chain.worker("tcp://127.0.0.1:%d" % mute.getsockname()[1], *options, "--metrics", "127.0.0.1:0")
        binary = lib.build(chain)
        programs = [start(chain, binary, blocked.endpoint, f"app{i}") for i in range(PROGRAMS)]
        try:
            wait_blocked(blocked)
            wait_busy(blocked)
            chain.stop(blocked)
            check("stay in the spool" in blocked.log.read_text(), "it does not say what stays in the spool")
            master = chain.master()
            worker = chain.worker(master.endpoint, *options, listen=blocked.ready["listen"])
            for program in programs:
                check(program.wait(60) == 0, f"a program ended with {program.returncode}")
        finally:
            for program in programs:
                program.kill()
                program.communicate()
        chain.stop(worker)
        chain.stop(master)
        report = lib.report(master.store)
        print(placement, report["ledger"])
        lib.check_ledger(report["ledger"])
        calls = sum(row["ok"] + row["incomplete"] for row in report["functions"] if row["name"] == "serve")
        check(calls == PROGRAMS * THREADS * ROUNDS, f"{calls} calls")


def test():
    run("threads")
    run("fused")


if __name__ == "__main__":
    system.main(test)
