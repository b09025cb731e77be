# SPDX-License-Identifier: Apache-2.0
"""Forked children whose only calls are in a library that they open, and that end at once: all of them are recorded, with names. Also
where their parent does the same in between. And children of a process whose other threads open libraries all the while: none hangs."""
import json
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check  # pylint: disable=wrong-import-position

HERE = pathlib.Path(__file__).resolve().parent
CHILDREN, CALLS = 60, 20
CHILDREN_BESIDE = 200
WAIT_S = 60


def names_all(chain, parent):
    folder, output = chain.folder, chain.folder / f"forks-{parent}.data"
    done = subprocess.run([system.MILLRACE, "record", "--output", output, folder / "forks", str(CHILDREN), str(CALLS), str(parent)],
                          env=chain.environment(), cwd=folder, capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"{done}")
    told = subprocess.run([system.MILLRACE, "report", "--json", output], capture_output=True, text=True, check=True).stdout
    calls = {row["name"]: row["calls"] for row in json.loads(told)["functions"]}
    times = CHILDREN * (1 + parent)
    check(calls == {"a_work": times, "a_leaf": times * CALLS}, f"parent {parent}: {calls}")


def beside_loaders(chain):
    variables = chain.environment(MILLRACE_ENDPOINT="discard", MILLRACE_EXIT_TIMEOUT="100ms")
    with subprocess.Popen([chain.folder / "forks_beside", str(CHILDREN_BESIDE)], env=variables, cwd=chain.folder,
                          stderr=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            status = process.wait(WAIT_S)
        except subprocess.TimeoutExpired as late:
            os.killpg(process.pid, signal.SIGKILL)  # a child that hangs is in its group
            raise system.Failure("a forked child hangs") from late
    check(status == 0, f"forks_beside ended with {status}")


def test():
    with system.System() as chain:
        folder = chain.folder
        system.compile_program(folder / "a.so", [HERE / "plugin.c"], "-fPIC", "-shared", "-DNAME=a")
        system.compile_program(folder / "forks", [HERE / "forks.c"])
        for parent in (0, 1):
            names_all(chain, parent)
        if not os.environ.get("MR_SANITIZE"):  # whose runtime a forked child may find locked
            system.compile_program(folder / "forks_beside", [HERE / "forks_beside.c"])
            beside_loaders(chain)


if __name__ == "__main__":
    system.main(test)
