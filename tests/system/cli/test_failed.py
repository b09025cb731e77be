# SPDX-License-Identifier: Apache-2.0
"""What counts as failed (docs/INSTRUMENTING.md): what says so itself, not its caller; what a longjmp leaves; and what an exception
leaves, where the door has no exit on the way of unwinding."""
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
CALLS = 10
FAILED = {"says_so": 5, "calls_one_that_says_so": 0, "takes_it_back": 0, "throws": 0, "catches": 0, "jumps": 5, "is_jumped_to": 0, "main": 0}
DOORS = {"millrace": FAILED, "millrace-patchable": FAILED | {"throws": 5}}


def flags(door, what):
    environment = dict(os.environ, PKG_CONFIG_PATH=str(system.BUILD / "lib" / "pkgconfig"))
    return shlex.split(subprocess.run(["pkg-config", what, door], env=environment, capture_output=True, text=True, check=True).stdout)


def record(chain, door):
    """function -> its row"""
    program, output = chain.folder / door, chain.folder / f"{door}.data"
    subprocess.run(["g++", "-O2", "-g", *flags(door, "--cflags"), HERE / "failed.cc", "-o", program, *flags(door, "--libs"), "-pthread",
                    *system.sanitizer_flags()], check=True)
    done = subprocess.run([system.MILLRACE, "record", "--output", output, program], env=chain.environment(), capture_output=True, text=True,
                          check=False)
    check(done.returncode == 0, f"{done}")
    told = subprocess.run([system.MILLRACE, "report", "--json", output], capture_output=True, text=True, check=True).stdout
    return {row["name"].split("(")[0]: row for row in json.loads(told)["functions"]}


def test():
    with system.System() as chain:
        for door, failed in DOORS.items():
            if door == "millrace-patchable" and (platform.machine() != "x86_64" or os.environ.get("MR_SANITIZE")):
                continue
            rows = record(chain, door)
            got = {name: rows[name]["failed"] for name in failed}
            print(door, got)
            check(got == failed, f"{door}: {got} failed, not {failed}")
            check(all(row["ok"] + row["failed"] == (1 if name == "main" else CALLS) for name, row in rows.items()), f"{door}: {rows}")


if __name__ == "__main__":
    system.main(test)
