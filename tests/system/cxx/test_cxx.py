# SPDX-License-Identifier: Apache-2.0
"""A C++ program with templates, exceptions and a thread pool (pool.cpp): its call trees at the master equal the expected
file, which was read off the source by hand; and so does what an independent witness (tree_hooks.c) logs.

The start function of a std::thread is one of libstdc++, which has no probe; what it calls, the pool's work(), is an outer
frame by option."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
import trees  # pylint: disable=wrong-import-position
from system import check

FOLDER = system.SOURCE / "tests" / "system" / "cxx"
OUTER = {"main", "pool::Pool<work::Task>::work"}
TASKS = "70"


def run_pool(chain, program, **options):
    run = chain.run([program, TASKS], **options)
    check(run.returncode == 0 and not run.stderr, f"pool ended with {run.returncode}: {run.stderr}")
    check(run.stdout == "70 tasks, 20 failed\n", f"pool says {run.stdout}")


def witness(chain):
    hooks, program = chain.folder / "tree_hooks.o", chain.folder / "pool-witness"
    subprocess.run(["gcc", "-O2", "-c", system.SOURCE / "tests/system/lib/tree_hooks.c", "-o", hooks], check=True)
    subprocess.run(["g++", "-std=c++17", "-O2", "-g", *system.pkg_config("--cflags"), FOLDER / "pool.cpp", hooks,
                    "-pthread", "-o", program], check=True)
    run_pool(chain, program, TREE_HOOKS=chain.folder / "log")
    return trees.from_witness(chain.folder / "log.pool-witness", program, OUTER)


def traced(chain):
    program = system.compile_program(chain.folder / "pool", [FOLDER / "pool.cpp"], "-std=c++17", compiler="g++")
    master = chain.master()
    worker = chain.worker(master.endpoint, "--outer", "pool::Pool*::work(*")
    run_pool(chain, program, endpoint=worker.endpoint)
    chain.stop(worker)
    trees.check_complete(master)
    return trees.from_master(master, "pool")


def test():
    with system.System() as chain:
        expected = trees.from_file(FOLDER / "expected.txt")
        equal = trees.compare("pool, witness", expected, witness(chain))
        equal &= trees.compare("pool, millrace", expected, traced(chain))
        check(equal, "call trees differ")


if __name__ == "__main__":
    system.main(test)
