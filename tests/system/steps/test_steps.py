# SPDX-License-Identifier: Apache-2.0
"""A signal handler comes after each instruction of a traced call (subject.cpp, stepper.c): it leaves by a jump, makes calls of its
own, changes the stack, or ends the thread. Of each door, clock and state of the ring: what is made later is recorded, all of it,
in the call that made it; registers are as they were.

    test_steps.py [DOOR] [WHERE] [WHAT]     only these
"""
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import calls  # pylint: disable=wrong-import-position
import system  # pylint: disable=wrong-import-position
from sink import Sink  # pylint: disable=wrong-import-position
from system import check  # pylint: disable=wrong-import-position

HERE = pathlib.Path(__file__).parent
RUN_S = 100
AT_ONCE = 8  # they wait more than they compute
BLOCK = {"POLICY": "block", "BLOCK_TIMEOUT": "60s"}
SMALL = {"RING_SIZE": "4KiB"}

# compiler, package, its variables to compile and to link with, what else
DOORS = {
    "hooks-gcc": ("g++", "millrace", ["--cflags"], ["--libs"], ()),
    "hooks-clang": ("clang++-14", "millrace", ["--variable=clang_cflags"], ["--libs"], ()),
    "patchable-gcc": ("g++", "millrace-patchable", ["--variable=gcc_specs"], ["--libs"], ("-DPATCHABLE",)),
    "patchable-clang": ("clang++-14", "millrace-patchable", ["--variable=clang_cflags"], ["--variable=clang_ldflags", "--libs"],
                        ("-DPATCHABLE",)),
}
WHATS = ("calls", "switch", "jump", "throw", "exit")
# where, variables of the probe, every how many instructions
PLACES = (
    ("warm", BLOCK, 1),
    ("warm", {**BLOCK, "CLOCK": "monotonic"}, 7),
    ("shared", {**BLOCK, "CLOCK": "hybrid"}, 3),
    ("first", BLOCK, 47),
    ("full", {**SMALL, "POLICY": "drop"}, 29),
    ("full", {**SMALL, "POLICY": "block", "BLOCK_TIMEOUT": "1ms"}, 29),
)


def run(command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=RUN_S, check=False, **more)
    check(done.returncode == 0, f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr}")
    return done


def pkg_config(package, questions):
    environment = dict(os.environ, PKG_CONFIG_PATH=str(system.BUILD / "lib" / "pkgconfig"))
    return [word for question in questions for word in run(["pkg-config", question, package], env=environment).stdout.split()]


def build(folder, door):
    compiler, package, compiling, linking, more = DOORS[door]
    run([compiler, "-O2", "-g", "-std=c++17", "-Wall", "-Wextra", *pkg_config(package, compiling), *more, HERE / "subject.cpp",
         folder / "state.o", "-o", folder / door, *pkg_config(package, linking), "-pthread"])


def check_trees(path, what, about):
    """A call that was left has none; but what the handler called in it."""
    text = calls.Calls(path, (), lambda tree: True).text()
    callers = [None] * 64
    for line in text.splitlines():
        depth, name = (len(line) - len(line.lstrip())) // 4, line.split()[0]
        callers[depth] = name
        if name == "outer":
            allowed = ("nothing", "main", "thread") if what in ("calls", "switch") else ("main", "thread")
            check(callers[depth - 1] in allowed, f"{about}: outer() is shown in {callers[depth - 1]}():\n{text[:4000]}")


def one(folder, door, where, what, variables, stride):
    first = random.randint(1, stride)
    command = [system.BIN / "stepper", folder / door, where, what, str(first), str(stride)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MILLRACE_", "OTEL_"))}
    environment.update({"MILLRACE_" + key: value for key, value in variables.items()})
    trees = folder / f"{door}-{where}-{what}-{len(variables)}-{first}.trees"
    with Sink("--sources", "1", "--trees", trees) as sink:
        said = run(command, env={**environment, "MILLRACE_ENDPOINT": sink.endpoint}).stdout
        about = f"{' '.join(map(str, command))} {variables}\n{said[:2000]}"
        account = sink.finish()[0]
    signals, made = map(int, re.search(r"signals=(\d+) made=(\d+)", said).groups())
    check("fault" not in said and signals > 3, about)
    told = account["events"] + sum(account[reason] for reason in ("ring-full", "block-timeout", "nested", "exit", "budget"))
    check(told == made + 1, f"{about}: {told} events have arrived: {account}")  # main() returns
    if what in ("calls", "switch") and where != "full":
        check(account["nested"] == 0, f"{about}: events were lost: {account}")
    # A jump out of an exit that is told by a tail call leaves a frame that is gone: only where a traced function lies further out.
    if where not in ("first", "full") and what != "exit":
        check_trees(trees, what, about)


def test():
    words = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="millrace-steps-") as name:
        folder = pathlib.Path(name)
        run(["gcc", "-c", HERE / "state.S", "-o", folder / "state.o"])
        doors = [door for door in DOORS if shutil.which(DOORS[door][0])]
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda door: build(folder, door), doors))
            cases = [(folder, door, where, what, variables, stride) for door in doors for what in WHATS
                     for where, variables, stride in PLACES if all(word in (door, where, what) for word in words)]
            for _ in pool.map(lambda case: one(*case), cases):
                pass


if __name__ == "__main__":
    system.main(test)
