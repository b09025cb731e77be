# SPDX-License-Identifier: Apache-2.0
"""The bookstore of docs/examples: the call trees of its three processes, as the master has them after a worker of level 1
and one of level 2, equal the expected files, which were read off the source by hand; and so does what an independent
witness (tree_hooks.c) logs of the same programs."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
import trees  # pylint: disable=wrong-import-position
from system import check

BOOKSTORE = system.SOURCE / "docs" / "examples" / "bookstore"
PROGRAMS = ("catalog", "orders", "storefront")
OUTER = {"main", "serve", "clerk", "shop"}
ROUNDS = "10"


def make(folder, *variables):
    folder.mkdir()
    environment = dict(os.environ, PKG_CONFIG_PATH=str(system.BUILD / "lib" / "pkgconfig"))
    run = subprocess.run(["make", "-s", "-C", BOOKSTORE, f"OUT={folder}", *variables], env=environment,
                         capture_output=True, text=True, check=False)
    check(run.returncode == 0, f"make: {run.stdout}{run.stderr}")


def run_bookstore(chain, programs, **options):
    run = chain.run([BOOKSTORE / "run.sh", ROUNDS, programs], **options)
    check(run.returncode == 0 and not run.stderr, f"run.sh ended with {run.returncode}: {run.stderr}")
    check("ada bought 20, was refused 0" in run.stdout, f"the storefront says {run.stdout}")


def witness(chain):
    hooks = chain.folder / "tree_hooks.o"
    subprocess.run(["gcc", "-O2", "-c", system.SOURCE / "tests/system/lib/tree_hooks.c", "-o", hooks], check=True)
    folder = chain.folder / "witness"
    make(folder, "TRACED=", f"CFLAGS=-std=gnu17 -O2 -g {' '.join(system.pkg_config('--cflags'))}",
         f"LDLIBS={hooks} -pthread")
    run_bookstore(chain, folder, TREE_HOOKS=chain.folder / "log")
    return {name: trees.from_witness(chain.folder / f"log.{name}", folder / name, OUTER) for name in PROGRAMS}


def traced(chain):
    folder = chain.folder / "traced"
    make(folder, *system.make_flags())
    master = chain.master()
    level2 = chain.worker(master.endpoint, level=2)
    # A sanitizer starts the threads itself: the probe does not see their own start functions, so they are named.
    outer = ["--outer", "serve,clerk,shop"] if os.environ.get("MR_SANITIZE") else []
    level1 = chain.worker(level2.endpoint, *outer)
    run_bookstore(chain, folder, endpoint=level1.endpoint)
    chain.stop(level1)
    chain.stop(level2)
    trees.check_complete(master)
    return {name: trees.from_master(master, name) for name in PROGRAMS}


def test():
    with system.System() as chain:
        by_hooks, by_millrace = witness(chain), traced(chain)
        equal = True
        for name in PROGRAMS:
            expected = trees.from_file(BOOKSTORE / "expected" / f"{name}.txt")
            equal &= trees.compare(f"{name}, witness", expected, by_hooks[name])
            equal &= trees.compare(f"{name}, millrace", expected, by_millrace[name])
        check(equal, "call trees differ")


if __name__ == "__main__":
    system.main(test)
