# SPDX-License-Identifier: Apache-2.0
"""A server whose loop over requests lies below three functions: without an option the requests become traces of their own, in
the process whose loop ends as in the one whose never does; nothing is lost, no share is over the whole."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

SECONDS, REQUESTS = 13, 500  # a loop is learned after 11.25 s, when the next request ends
PROCESSES = 2
CALLERS = ["child_main", "serve", "run", "worker_loop"]


def report(store):
    run = subprocess.run([system.MILLRACE, "report", "--json", store], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def check_calls(told):
    calls = {row["name"]: row for row in told["functions"]}
    handled = calls["handle"]["calls"]
    check(handled == calls["parse"]["calls"] == calls["answer"]["calls"], f"calls {calls}")
    check(handled >= PROCESSES * (REQUESTS + 64), f"{handled} requests")
    for name in CALLERS:  # of each process one; of one process they never end
        check(calls[name]["calls"] == PROCESSES and calls[name]["outer"], f"{name}: {calls[name]}")
    return handled


def check_traces(told, handled):
    entries = {row["name"]: row for row in told["entries"]}
    requests = entries["handle"]
    shares = told["shares"]
    check(PROCESSES * REQUESTS <= requests["ok"] < handled, f"{requests}")
    check(requests["incomplete"] == 0, f"{requests}")
    check(shares["incomplete"]["calls"] * 20 < shares["calls"], f"incomplete calls: {shares}")
    check(shares["path_time_ns"] <= shares["time_ns"], f"more on paths than there is: {shares}")


def test():
    with system.System() as chain:
        program = chain.folder / "server"
        system.compile_program(program, [pathlib.Path(__file__).parent / "server.c"], "-O1")
        master = chain.master(store=chain.folder / "store")
        worker = chain.worker(master.endpoint)
        done = chain.run([program, str(SECONDS), str(REQUESTS)], MILLRACE_ENDPOINT=worker.endpoint)
        check(done.returncode == 0 and done.stderr == "", f"{done}")
        chain.stop(worker)
        chain.stop(master)
        told = report(master.store)
        check(told["ledger"]["balanced"] and told["ledger"]["lost"] == 0, f"{told['ledger']}")
        check_traces(told, check_calls(told))


if __name__ == "__main__":
    system.main(test)
