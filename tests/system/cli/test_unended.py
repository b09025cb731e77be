# SPDX-License-Identifier: Apache-2.0
"""A function's total is not less than its own time: a recursive call counts in the outermost one's total, which has none where it
does not end."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

HERE = pathlib.Path(__file__).parent


def test():
    with system.System() as chain:
        program, output = chain.folder / "unended", chain.folder / "unended.data"
        system.compile_program(program, [HERE / "unended.c"])
        done = subprocess.run([system.MILLRACE, "record", "--output", output, program], env=chain.environment(), capture_output=True, text=True,
                              check=False)
        check(done.returncode == 0, f"{done}")
        told = subprocess.run([system.MILLRACE, "report", "--json", output], capture_output=True, text=True, check=True).stdout
        dig = {row["name"]: row for row in json.loads(told)["functions"]}["dig"]
        check(dig["ok"] == 3 and dig["incomplete"] == 1, f"calls of {dig}")
        check(dig["self_ns"] >= 3_000_000 and dig["total_ns"] >= dig["self_ns"], f"times of {dig}")


if __name__ == "__main__":
    system.main(test)
