# SPDX-License-Identifier: Apache-2.0
"""The start function of a thread is an outer frame also where a handler of a signal is the thread's first call."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check  # pylint: disable=wrong-import-position

THREADS = 300


def test():
    with system.System() as chain:
        program, output = chain.folder / "started", chain.folder / "started.data"
        system.compile_program(program, [pathlib.Path(__file__).parent / "started.c"])
        done = subprocess.run([system.MILLRACE, "record", "--output", output, program, str(THREADS)], env=chain.environment(),
                              capture_output=True, text=True, check=False)
        check(done.returncode == 0, f"{done}")
        told = json.loads(subprocess.run([system.MILLRACE, "report", "--json", output], capture_output=True, text=True, check=True).stdout)
        check(int(done.stdout.split("early ")[1]) > 0, "no handler came early: nothing was tried")
        counts = {row["name"]: row["count"] for row in told["entries"]}
        print(done.stdout.strip(), counts)
        check(counts["leaf"] == THREADS and "start" not in counts, f"{counts}")


if __name__ == "__main__":
    system.main(test)
