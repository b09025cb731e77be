# SPDX-License-Identifier: Apache-2.0
"""Forked children whose only calls are in a library that they open, and that end at once: all of them are recorded, with names."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check  # pylint: disable=wrong-import-position

HERE = pathlib.Path(__file__).resolve().parent
CHILDREN, CALLS = 60, 20


def test():
    with system.System() as chain:
        folder = chain.folder
        system.compile_program(folder / "a.so", [HERE / "plugin.c"], "-fPIC", "-shared", "-DNAME=a")
        system.compile_program(folder / "forks", [HERE / "forks.c"])
        done = subprocess.run([system.MILLRACE, "record", "--output", folder / "forks.data", folder / "forks", str(CHILDREN), str(CALLS)],
                              env=chain.environment(), cwd=folder, capture_output=True, text=True, check=False)
        check(done.returncode == 0, f"{done}")
        told = subprocess.run([system.MILLRACE, "report", "--json", folder / "forks.data"], capture_output=True, text=True, check=True).stdout
        calls = {row["name"]: row["calls"] for row in json.loads(told)["functions"]}
        check(calls == {"a_work": CHILDREN, "a_leaf": CHILDREN * CALLS}, f"{calls}")


if __name__ == "__main__":
    system.main(test)
