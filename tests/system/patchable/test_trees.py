# SPDX-License-Identifier: Apache-2.0
"""The bookstore of docs/examples, built with patchable sites by gcc and with XRay's by clang: its call trees at the master
equal the expected files, which the build with -finstrument-functions equals, too (tests/system/bookstore).

Without inlining and tail calls: a function that is inlined has no sites, and hooks have it."""
import os
import shlex
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
import trees  # pylint: disable=wrong-import-position
from system import check

BOOKSTORE = system.SOURCE / "docs" / "examples" / "bookstore"
PROGRAMS = ("catalog", "orders", "storefront")
ROUNDS = "10"
KEEP_CALLS = ["-std=gnu17", "-O2", "-fno-inline", "-fno-optimize-sibling-calls"]
GCC = ("gcc", ["-fno-ipa-cp", "-fno-ipa-icf", "-fno-ipa-sra", "-fno-partial-inlining"], ["--variable=gcc_specs"], ["--libs"])
CLANG = ("clang", [], ["--variable=clang_cflags"], ["--variable=clang_ldflags", "--libs"])


def pkg_config(*arguments):
    environment = dict(os.environ, PKG_CONFIG_PATH=str(system.BUILD / "lib" / "pkgconfig"))
    words = []
    for argument in arguments:  # a variable and --libs exclude each other in one call
        run = subprocess.run(["pkg-config", argument, "millrace-patchable"], env=environment, capture_output=True,
                             text=True, check=True)
        words += shlex.split(run.stdout)
    return words


def make(folder, compiler):
    name, more, cflags, libs = compiler
    folder.mkdir()
    run = subprocess.run(["make", "-s", "-C", BOOKSTORE, f"OUT={folder}", "TRACED=", f"CC={name}",
                          f"CFLAGS={shlex.join([*KEEP_CALLS, *more, *pkg_config(*cflags)])}",
                          f"LDFLAGS={shlex.join(system.sanitizer_flags())}",
                          f"LDLIBS={shlex.join([*pkg_config(*libs), '-pthread'])}"],
                         capture_output=True, text=True, check=False)
    check(run.returncode == 0, f"make: {run.stdout}{run.stderr}")


def traced(chain, compiler, clock):
    folder = chain.folder / compiler[0]
    if not folder.exists():
        make(folder, compiler)
    master = chain.master(store=chain.folder / f"store-{compiler[0]}-{clock}")
    # A sanitizer starts the threads itself: the probe does not see their own start functions, so they are named.
    outer = ["--outer", "serve,clerk,shop"] if os.environ.get("MR_SANITIZE") else []
    worker = chain.worker(master.endpoint, *outer)
    # The expected files leave out functions of system headers.
    run = chain.run([BOOKSTORE / "run.sh", ROUNDS, folder], endpoint=worker.endpoint, MILLRACE_EXCEPT="__bswap_*",
                    MILLRACE_CLOCK=clock)
    # A program that has none of these is told so, if it still runs by then.
    said = [line for line in run.stderr.splitlines() if not line.endswith("no function that can be traced is named __bswap_*")]
    check(run.returncode == 0 and not said, f"run.sh ended with {run.returncode}: {run.stderr}")
    chain.stop(worker)
    trees.check_complete(master)
    found = {name: trees.from_master(master, name) for name in PROGRAMS}
    chain.stop(master)
    return found


def test():
    equal = True
    with system.System() as chain:
        # Each clock has a stub of its own; hybrid is refused, with a line, where there is one processor.
        several = len(os.sched_getaffinity(0)) > 1
        for compiler, clock in ((GCC, "tsc"), (GCC, "hybrid" if several else "tsc"), (GCC, "monotonic"), (CLANG, "tsc")):
            if compiler is CLANG and os.environ.get("MR_SANITIZE"):
                continue  # the probe of a sanitizer's build is gcc's
            found = traced(chain, compiler, clock)
            for name in PROGRAMS:
                expected = trees.from_file(BOOKSTORE / "expected" / f"{name}.txt")
                equal &= trees.compare(f"{name}, {compiler[0]}, {clock}", expected, found[name])
        check(equal, "call trees differ")


if __name__ == "__main__":
    system.main(test)
