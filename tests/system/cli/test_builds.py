# SPDX-License-Identifier: Apache-2.0
"""Two builds of a program side by side (docs/OPERATIONS.md, What is told apart): their functions look the same, and what tells them apart is shown."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

HERE = pathlib.Path(__file__).parent


def flags(what):
    environment = dict(os.environ, PKG_CONFIG_PATH=str(system.BUILD / "lib" / "pkgconfig"))
    return shlex.split(subprocess.run(["pkg-config", what, "millrace"], env=environment, capture_output=True, text=True, check=True).stdout)


def build(folder, name, *more):
    """The build id that the linker gave it."""
    subprocess.run(["gcc", "-O2", "-g", *flags("--cflags"), *more, HERE / "builds.c", "-o", folder / name, *flags("--libs"), "-pthread",
                    "-Wl,--build-id", *system.sanitizer_flags()], check=True)
    notes = subprocess.run(["readelf", "-n", folder / name], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", notes)[1]


def test():
    with system.System() as chain:
        builds = {build(chain.folder, "first"), build(chain.folder, "second", "-DSECOND")}
        check(len(builds) == 2, f"the builds are one: {builds}")
        output = chain.folder / "both.data"
        done = subprocess.run([system.MILLRACE, "record", "--unchecked", "--output", output, "sh", "-c", "./first; ./second"],
                              env=chain.environment(), cwd=chain.folder, capture_output=True, text=True, check=False)
        check(done.returncode == 0, f"{done}")
        text = done.stdout + done.stderr
        print(text)
        for name, line in (("step", 10), ("work", 21)):
            shown = set(re.findall(rf" {name} +builds\.c:{line} \(build ([0-9a-f]{{8}})\)", text))
            check(shown == {build[:8] for build in builds}, f"of {name} these builds are shown: {shown}, not {builds}")
        check(re.search(r" only_second +builds\.c:\d+$", text, re.MULTILINE), "a function that is there once shows a build, or is not there")
        told = json.loads(subprocess.run([system.MILLRACE, "report", "--json", output], capture_output=True, text=True, check=True).stdout)
        got = {row["build_id"] for row in told["functions"] if row["name"] == "step"}
        check(got == builds, f"report --json has {got}")


if __name__ == "__main__":
    system.main(test)
