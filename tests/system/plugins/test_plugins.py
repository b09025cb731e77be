# SPDX-License-Identifier: Apache-2.0
"""Libraries that are loaded, called and closed at once, each where another one lay just before, while the probe's writer is
busy: each call has the name of the function that was called, by hooks and by patchable sites. Also with hooks in libraries that lie
far from those that were there when the program began: their functions are told by address. Sites there are refused, and no more."""
import os
import pathlib
import platform
import shlex
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check, wait_until  # pylint: disable=wrong-import-position

HERE = pathlib.Path(__file__).resolve().parent
LOADS, CALLS = 20, 100
FAR_GIB = 2  # more than the window of addresses that have sites
WAIT_S = 90


def patchable(argument):
    environment = dict(os.environ, PKG_CONFIG_PATH=str(system.BUILD / "lib" / "pkgconfig"))
    run = subprocess.run(["pkg-config", argument, "millrace-patchable"], env=environment, capture_output=True, text=True,
                         check=True)
    return shlex.split(run.stdout)


def compile_all(folder, cflags, libs):
    """host, a.so and b.so in `folder`."""
    folder.mkdir()
    common = ["gcc", "-O2", "-g", *cflags, *system.sanitizer_flags()]
    commands = [[*common, HERE / "host.c", "-o", folder / "host", *libs, "-pthread", "-ldl"]]
    for name in "ab":
        commands.append([*common, "-fPIC", "-shared", f"-DNAME={name}", HERE / "plugin.c", "-o", folder / f"{name}.so", *libs])
    for command in commands:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        check(run.returncode == 0, f"{shlex.join(map(str, command))}\n{run.stderr}")
    return folder


def builds(folder):
    yield compile_all(folder / "hooks", system.pkg_config("--cflags"), system.pkg_config("--libs"))
    if platform.machine() == "x86_64" and os.environ.get("MR_SANITIZE") != "thread":
        yield compile_all(folder / "patchable", patchable("--variable=gcc_specs"), patchable("--libs"))


def calls(master):
    return {row["name"]: row["calls"] for row in master.get("/api/v1/functions")["functions"]}


def names_all(chain, folder, gib):
    master = chain.master(store=chain.folder / f"store-{folder.name}-{gib}")
    worker = chain.worker(master.endpoint)
    run = chain.run([folder / "host", str(LOADS), str(CALLS), str(gib)], endpoint=worker.endpoint, cwd=folder)
    check(run.returncode == 0, f"{folder.name}: {run}")
    reused = int(run.stdout.split("reused ")[1])
    check(reused > 0, f"{folder.name}: the libraries never lay in one place: nothing was tried")
    chain.stop(worker)
    in_plugins = {"a_work": LOADS // 2, "b_work": LOADS // 2, "a_leaf": LOADS // 2 * CALLS, "b_leaf": LOADS // 2 * CALLS}
    wait_until(lambda: calls(master).get("busy"), WAIT_S, f"{folder.name}: the calls at the master")
    found = calls(master)
    check("busy_leaf" in found, f"{folder.name}: {found}: {run.stderr}")
    del found["busy_leaf"]
    wanted = {} if gib and folder.name == "patchable" else in_plugins
    wanted.update({"main": 1, "busy": 1} if "main" in found else {"busy": 1})
    chain.stop(master)
    print(f"{folder.name}, {gib} GiB away: {found}; {reused} of {LOADS} where another was; loads:",
          " ".join(line.split()[1] for line in run.stdout.splitlines() if line.startswith("load")), "ms")
    check(found == wanted, f"{folder.name}: {found}, not {wanted}")


def test():
    with system.System() as chain:
        for folder in builds(chain.folder):
            for gib in (0, FAR_GIB):
                names_all(chain, folder, gib)


if __name__ == "__main__":
    system.main(test)
