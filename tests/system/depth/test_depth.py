# SPDX-License-Identifier: Apache-2.0
"""MILLRACE_DEPTH, from a program with hooks or patchable sites over a worker to a master: what is above the limit is
recorded, what is below is counted, longjmp does not make the depth drift."""
import json
import os
import pathlib
import platform
import shlex
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

HERE = pathlib.Path(__file__).parent
ALL = {"main": 1, "threads_work": 1, "work": 3, "recurse": 30, "deepest": 30, "last": 13, "leaves": 1, "leave": 1000,
       "raises": 1, "handle": 10}
RECORDED = {  # by limit
    0: ALL,
    2: {"main": 1, "threads_work": 1, "work": 3, "leaves": 1, "raises": 1},
    4: {**ALL, "recurse": 6, "deepest": 3},
}


def patchable(argument):
    environment = dict(os.environ, PKG_CONFIG_PATH=str(system.BUILD / "lib" / "pkgconfig"))
    run = subprocess.run(["pkg-config", argument, "millrace-patchable"], env=environment, capture_output=True, text=True,
                         check=True)
    return shlex.split(run.stdout)


def builds(folder):
    source = HERE / "depths.c"
    yield system.compile_program(folder / "hooks", [source])
    if platform.machine() == "x86_64":
        program = folder / "patchable"
        subprocess.run(["gcc", "-O2", "-g", *patchable("--variable=gcc_specs"), source, "-o", program,
                        *patchable("--libs"), "-pthread", *system.sanitizer_flags()], check=True)
        yield program


def tells(master, limit):
    """The ledger of the running master does."""
    expected = {"limit": limit, "calls_not_recorded": sum(ALL.values()) - sum(RECORDED[limit].values())}
    told = []

    def is_told():
        told[:] = [row["depth"] for row in master.get("/api/v1/ledger")["sources"]]
        return told == [expected]
    system.wait_until(is_told, 60, f"depth {expected} in the ledger")


def runs(chain, program, limit):
    master = chain.master(store=chain.folder / f"{program.name}-{limit}")
    worker = chain.worker(master.endpoint)
    done = chain.run([program], MILLRACE_ENDPOINT=worker.endpoint, MILLRACE_DEPTH=str(limit))
    check(done.returncode == 0 and done.stderr == "", f"{done}")
    chain.stop(worker)
    if limit:
        tells(master, limit)
    chain.stop(master)
    reports = [subprocess.run([system.MILLRACE, "report", *words, master.store], capture_output=True, text=True,
                              check=True).stdout for words in ([], ["--json"])]
    return reports[0], json.loads(reports[1])


def is_limited(chain, program, limit):
    text, told = runs(chain, program, limit)
    where = f"{program.name}, limit {limit}"
    calls = {row["name"]: row["calls"] for row in told["functions"]}
    ledger = told["ledger"]
    check(calls == RECORDED[limit], f"{where}: {calls}")
    check(ledger["balanced"] and ledger["lost"] == 0 and ledger["last"] == 2 * sum(calls.values()) - calls.get("leave", 0),
          f"{where}: {ledger}")
    if limit == 0:
        check(told["depths"] == [] and "Depth" not in text, f"{where}: {told['depths']}\n{text}")
        return
    skipped = sum(ALL.values()) - sum(calls.values())
    check([(row["depth_limit"], row["depth_skipped"]) for row in told["depths"]] == [(limit, skipped)],
          f"{where}: {told['depths']}, not {skipped}")
    check(f"depth limit {limit}: {skipped:,} calls below it" in text, f"{where}:\n{text}")


def test():
    with system.System() as chain:
        for program in builds(chain.folder):
            for limit in RECORDED:
                is_limited(chain, program, limit)
        done = chain.run([chain.folder / "hooks"], MILLRACE_ENDPOINT="tcp://127.0.0.1:1", MILLRACE_DEPTH="deep")
        check(done.returncode == 0 and "MILLRACE_DEPTH" in done.stderr, f"{done}")


if __name__ == "__main__":
    system.main(test)
