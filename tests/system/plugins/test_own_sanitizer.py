# SPDX-License-Identifier: Apache-2.0
"""A program that is built with ThreadSanitizer, traced by a library that is not: what that does under its own locks is no data race
of the program. (ThreadSanitizer sees what the library asks of libc, but not its atomics.)"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check  # pylint: disable=wrong-import-position

HERE = pathlib.Path(__file__).resolve().parent
RUNS, LOADS = 5, 40  # before the locks were told of, 14 of 15 such runs had a report


def test():
    if os.environ.get("MR_SANITIZE"):
        print("left out: the library has a sanitizer itself")
        return
    with system.System() as setup:
        program = system.compile_program(setup.folder / "loader", [HERE / "loader.c"], "-fsanitize=thread", "-ldl")
        library = setup.folder / "plugin.so"
        subprocess.run(["gcc", "-fPIC", "-shared", "-DNAME=a", HERE / "plugin.c", "-o", library], check=True)
        for _ in range(RUNS):
            run = setup.run([program, library, str(LOADS)], endpoint="discard")
            check(run.returncode == 0 and "ThreadSanitizer" not in run.stderr, f"{run.returncode}: {run.stderr[:2000]}")
            check("events of loader" in run.stderr, f"it was not traced: {run.stderr}")


if __name__ == "__main__":
    system.main(test)
