# SPDX-License-Identifier: Apache-2.0
"""Programs that do what is hard on a tracer: the whole call tree of each of their threads equals an expected file.

    test_safety.py DOOR [CASE...]       DOOR: see DOORS; CASE: see CASES, or `chain`; without, all

Each case is a small program of this folder, built as a user of that door builds it, and run against the sink, which lets
the worker's own filters match enters and exits (lib/calls.py has the notation). With policy block nothing may be lost but
where the case says so, and the sink's account of its own must hold.

What is shown is in expected/CASE.txt; where a door, or doors of some way, show another thing, in expected/CASE.WAY.txt (see DOORS),
with the reason in a comment. MR_SAFETY_UPDATE=1 writes the files anew, comments kept: for the eye to judge.
"""
import collections
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import calls  # pylint: disable=wrong-import-position
import system  # pylint: disable=wrong-import-position
from sink import Sink, lines_of  # pylint: disable=wrong-import-position
from system import check  # pylint: disable=wrong-import-position

FOLDER = system.SOURCE / "tests" / "system" / "safety"
WAIT_S = 100
DIFF_LINES = 60
SANITIZED = os.environ.get("MR_SANITIZE", "")

# Compilers, pkg-config's package, its variables of flags to compile and to link (None: --cflags, nothing), what else; and how
# it differs from others in what is shown: `silent` doors see no exits on unwinding.
Door = collections.namedtuple("Door", "c cxx package cflags ldflags flags ways")
# A patchable site's first event, or one that waits, saves all registers on the stack.
MORE_STACK = ("-DSTACK_MORE=4096",)
DOORS = {
    "hooks-gcc": Door("gcc", "g++", "millrace", None, None, (), ()),
    "hooks-clang": Door("clang-14", "clang++-14", "millrace", "clang_cflags", None, (), ("silent", "clang")),
    "spans": Door("gcc", "g++", "millrace-manual", None, None, ("-DSPANS", "-g"), ("spans",)),
    "patchable-gcc": Door("gcc", "g++", "millrace-patchable", "gcc_specs", None, MORE_STACK, ("patchable", "silent")),
    "patchable-clang": Door("clang-14", "clang++-14", "millrace-patchable", "clang_cflags", "clang_ldflags", MORE_STACK,
                            ("patchable", "silent", "clang")),
}
FUNCTIONS = tuple(door for door in DOORS if door != "spans")


class Case:
    """`arguments` of the program; `floating`: see calls.py; `flags` of compiler and linker; `processes` that are sources;
    `lost`: reasons for which events may be; `status` of its end; `variables` of the probe; `static`: linked with libmillrace.a;
    `sanitized`: also run under a sanitizer; `doors`: only these."""

    def __init__(self, program, *arguments, floating=(), flags=(), processes=1, lost=(), status=0, variables=None,
                 static=False, sanitized=False, doors=tuple(DOORS), libraries=(), keep=lambda tree: True, output=None, ignore=(), sink=(), preload=None):
        self.program, self.arguments, self.floating, self.flags = program, arguments, floating, flags
        self.processes, self.lost, self.status, self.variables = processes, lost, status, variables or {}
        self.static, self.sanitized, self.doors, self.libraries = static, sanitized, doors, libraries
        self.keep, self.output, self.ignore = keep, output, ignore
        self.sink, self.preload = sink, preload


EXCEPTIONS = "-fexceptions"
HEAP = str(FOLDER / "heap.c")
HEAP_CALLS = ("malloc", "free", "calloc", "realloc", "aligned_alloc", "posix_memalign")
BIG_RING = {"RING_SIZE": "8MiB", "MEMORY": "64MiB"}
CASES = {
    # A ring that never fills: a handler that comes while its thread waits for room loses its calls (nested).
    "signals-timers": Case("signals.c", "timers", "200000", floating=("on_tick", "on_profile"), variables=BIG_RING,
                           sanitized=True),
    # -z now: resolving a symbol at its first call alone takes more than this stack has.
    "signals-first": Case("signals.c", "first", flags=("-Wl,-z,now",)),
    "signals-threads": Case("signals.c", "threads", "20000", floating=("on_profile",), variables=BIG_RING, sanitized=True),
    "longjmp": Case("jumps.c", "plain", sanitized=True),
    "longjmp-nested": Case("jumps.c", "nested", sanitized=True),
    "longjmp-handler": Case("jumps.c", "handler", sanitized=True),
    "longjmp-stack": Case("jumps.c", "stack"),
    "longjmp-recursion": Case("jumps.c", "recursion", sanitized=True),
    "longjmp-each": Case("jumps.c", "each", sanitized=True, doors=FUNCTIONS),
    "longjmp-checked": Case("jumps.c", "nested", flags=("-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"), doors=FUNCTIONS),
    "thread-exit": Case("threads.c", "exit", sanitized=True),
    "thread-exit-unwound": Case("threads.c", "exit", flags=(EXCEPTIONS,), sanitized=True),
    "cancel-deferred": Case("threads.c", "deferred", sanitized=True),
    "cancel-deferred-unwound": Case("threads.c", "deferred", flags=(EXCEPTIONS,)),
    "cancel-async": Case("threads.c", "async"),
    "cancel-async-unwound": Case("threads.c", "async", flags=(EXCEPTIONS, "-fnon-call-exceptions", "-fasynchronous-unwind-tables")),
    # A ring that never fills: one who waits for room when the process ends loses that event.
    "threads-detached": Case("threads.c", "detached", floating=("late",), ignore=("late [incomplete]",), variables=BIG_RING),
    "threads-last": Case("threads.c", "last"),
    "threads-none": Case("threads.c", "none"),
    "threads-forked": Case("threads.c", "forked", processes=2),
    "threads-keys": Case("threads.c", "keys", sanitized=True),
    "threads-small": Case("threads.c", "small", sanitized=True),
    "threads-deep": Case("threads.c", "deep", "100000"),
    "threads-storm": Case("threads.c", "storm", "12", sanitized=True),
    "exceptions": Case("exceptions.cpp", sanitized=True),
    **{f"exceptions-{mode}": Case("landings.cpp", mode, sanitized=mode not in ("exit", "cancel"))
       for mode in ("nested", "cleanup", "recursion", "library", "thread", "terminate", "exit", "cancel")},
    # Spans have other names there, and do not obey a filter of functions.
    "exceptions-virtual": Case("landings.cpp", "virtual", sanitized=True, doors=FUNCTIONS),
    "exceptions-switched": Case("landings.cpp", "switched", doors=FUNCTIONS),
    "exceptions-untold": Case("exceptions.cpp", variables={"LANDINGS": "off"}, doors=("hooks-clang", "patchable-gcc", "patchable-clang")),
    "exceptions-plugin": Case("throws.c", "20", libraries=("plugin_throws.cpp",), doors=("spans", "patchable-gcc", "patchable-clang")),
    # With hooks, a library that comes and goes within the 100 ms between two looks at the modules has no names.
    "plugins": Case("plugins.c", "20", libraries=("plugin.c",), floating=("busy",),
                    doors=("spans", "patchable-gcc", "patchable-clang")),
    "coroutines-nested": Case("coroutines.c", "nested"),
    "coroutines-mixed": Case("coroutines.c", "mixed"),
    "order": Case("order.c", sanitized=True),
    "order-exit": Case("order.c", "exit", sanitized=True),
    "order-_exit": Case("order.c", "_exit"),
    "order-abort": Case("order.c", "abort", status=-6),
    "order-kill": Case("order.c", "kill", status=-9),
    "order-exec": Case("order.c", "exec", processes=2),
    "order-static": Case("order.c", flags=("-static",), static=True),
    "threads-static": Case("threads.c", "storm", "4", flags=("-static",), static=True),
    "fork": Case("processes.c", "fork", "5", processes=6),
    "exec": Case("processes.c", "exec", processes=5, sanitized=True),
    "vfork": Case("processes.c", "vfork", processes=2),
    "daemon": Case("processes.c", "daemon", processes=2),
    "fork-in-thread": Case("processes.c", "threads", processes=2),
    "registers": Case("registers.c", "2000", variables={"RING_SIZE": "4KiB"}, sanitized=True),
    "heap-linked": Case("heaps.c", "10000", "100", flags=(HEAP,), libraries=("quiet.c",), floating=HEAP_CALLS, lost=("exit",),
                        variables={"RING_SIZE": "4KiB"}, sink=("--sleep-us", "100")),
    "heap-preloaded": Case("heaps.c", "10000", "100", libraries=("quiet.c", "heap.c"), floating=HEAP_CALLS, lost=("exit",),
                           variables={"RING_SIZE": "4KiB"}, sink=("--sleep-us", "100"), preload="heap.so"),
    "prefork": Case("processes.c", "prefork", "1000", processes=1001),
}


def pkg_config(package, *arguments):
    environment = dict(os.environ, PKG_CONFIG_PATH=str(system.BUILD / "lib" / "pkgconfig"))
    run = subprocess.run(["pkg-config", *arguments, package], env=environment, capture_output=True, text=True, check=True)
    return run.stdout.split()


class Builder:
    """Programs of one door, each built once."""

    def __init__(self, door, folder):
        self.door, self.folder = door, folder
        self.cflags = pkg_config(door.package, f"--variable={door.cflags}" if door.cflags else "--cflags")
        self.libs = pkg_config(door.package, f"--variable={door.ldflags}") if door.ldflags else []
        self.libs += pkg_config(door.package, "--libs")

    def compile(self, sources, output, *flags):
        is_cxx = any(str(source).endswith(".cpp") for source in sources)
        compiler = [self.door.cxx, "-std=c++17"] if is_cxx else [self.door.c, "-std=gnu17"]
        command = [*compiler, "-O2", "-g", "-Wall", "-Wextra", "-Wno-infinite-recursion", *self.cflags, *self.door.flags, *map(str, sources), "-o",
                   str(output), *map(str, flags), "-pthread", *system.sanitizer_flags()]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        # What -static says of parts that it does not need.
        stderr = re.sub(r"[^\n]*: in function `[^\n]*\n[^\n]*warning: Using '[^\n]*\n", "", run.stderr)
        check(run.returncode == 0 and not stderr, f"{' '.join(command)}\n{stderr}")

    def build(self, case):
        """The program's path, and its libraries' beside it."""
        key = re.sub(r"\W+", "-", "-".join([case.program, *case.flags, "static" if case.static else ""]))
        program = self.folder / key
        for library in case.libraries:
            output = (self.folder / library).with_suffix(".so")
            if not output.exists():
                self.compile([FOLDER / library], output, "-shared", "-fPIC", *self.libs)
        if not program.exists():
            archive = str(system.BUILD / "lib" / "libmillrace.a")
            libs = [archive if case.static and flag == "-lmillrace" else flag for flag in self.libs]
            self.compile([FOLDER / case.program], program, *case.flags, *libs, "-ldl")
        return program


def run_program(case, program, endpoint):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MILLRACE_", "OTEL_"))}
    variables = {"ENDPOINT": endpoint, "POLICY": "block", "BLOCK_TIMEOUT": "60s", **case.variables}
    environment.update({"MILLRACE_" + key: value for key, value in variables.items()})
    if case.preload:
        environment["LD_PRELOAD"] = str(program.parent / case.preload)
    environment["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    run = subprocess.run([program, *case.arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                         text=True, timeout=WAIT_S, check=False, cwd=program.parent)
    check(run.returncode == case.status and not run.stderr,
          f"ended with {run.returncode}, not {case.status}:\n{run.stdout}{run.stderr}")
    if case.output:
        check(re.fullmatch(case.output, run.stdout.strip(), re.S), f"said {run.stdout}")
    return run


def expected_path(name, door):
    """The file of the door, of its way, or that of all."""
    for way in (door, *DOORS[door].ways):
        path = FOLDER / "expected" / f"{name}.{way}.txt"
        if path.exists():
            return path
    return FOLDER / "expected" / f"{name}.txt"


def shown(case, found):
    text = found.text()
    if case.floating:
        floating = sorted(tree for tree in found.floating if tree not in case.ignore)
        text += "floating\n" + "".join("    " + line + "\n" for tree in floating for line in tree.splitlines())
    return text


def compare(name, door, case, found):
    path = expected_path(name, door)
    lines = path.read_text().splitlines() if path.exists() else []
    comments = [line for line in lines if line.startswith("#") or not line]
    expected = [line for line in lines if line and not line.startswith("#")]
    text = shown(case, found).splitlines()
    if os.environ.get("MR_SAFETY_UPDATE") and expected != text:
        path.write_text("\n".join([*comments, *text]) + "\n")
        return
    if expected != text:
        differences = list(difflib.unified_diff(expected, text, lineterm="", n=4))[2:DIFF_LINES]
        raise system.Failure(f"differs from {path.name} (- expected, + found)\n" + "\n".join(differences))


def check_account(case, accounts):
    check(len(accounts) == case.processes, f"{len(accounts)} sources instead of {case.processes}")
    for account in accounts:
        lost = sum(account[reason] for reason in LOSSES if reason not in case.lost)
        check(lost == 0, f"events were lost: {account}")


LOSSES = ("ring-full", "block-timeout", "overwritten", "budget", "nested", "exit")


def run_case(name, door, builder):
    case = CASES[name]
    if door not in case.doors:
        return "not for this door"
    if SANITIZED and not case.sanitized:
        return "skipped"
    program = builder.build(case)
    trees = builder.folder / f"{name}.trees"
    with Sink("--sources", str(case.processes), "--trees", trees, *case.sink) as sink:
        run = run_program(case, program, sink.endpoint)
        accounts = sink.finish()
        check_account(case, accounts)
    found = calls.Calls(trees, case.floating, case.keep)
    compare(name, door, case, found)
    handled = re.search(r"handled=(\d+)", run.stdout)
    if handled:
        count = sum(found.floating.values())
        check(count == int(handled[1]), f"{count} handlers are shown, there were {handled[1]}")
    return f"{sum(account['events'] for account in accounts)} events"


def check_ledger(master):
    """What the cases may lose is all that is lost, by reason; the rest is reduced."""
    ledger = master.get("/api/v1/ledger")["ledger"]
    allowed = {reason.replace("-", "_") for case in CASES.values() for reason in case.lost}
    lost = {reason: events for reason, events in ledger["lost_by_reason"].items() if events}
    check(ledger["balanced"] and ledger["held"] == 0, f"the ledger: {ledger}")
    check({reason.replace("-", "_") for reason in lost} <= allowed, f"lost: {lost}")
    check(ledger["written"] == ledger["reduced"] + ledger["lost"], f"the ledger: {ledger}")
    print(f"ledger: {ledger['written']} events = {ledger['reduced']} reduced + {ledger['lost']} lost {lost}")


def through_the_chain(door, builder):
    """All of them again, now through a worker and a master."""
    with system.System() as chain:
        master = chain.master()
        worker = chain.worker(master.endpoint)
        for case in CASES.values():
            if door in case.doors and (case.sanitized or not SANITIZED):
                run_program(case, builder.build(case), worker.endpoint)
        chain.stop(worker)
        check_ledger(master)
    return "balanced"


def attempt(name, what):
    start = time.monotonic()
    try:
        result, is_good = what(), True
    except (system.Failure, ValueError, subprocess.SubprocessError) as failure:
        result, is_good = f"FAILED: {failure}", False
    print(f"{name}: {result} ({time.monotonic() - start:.1f} s)", flush=True)
    return is_good


def main():
    door, chosen = sys.argv[1], sys.argv[2:] or [*CASES, "chain"]
    compilers = DOORS[door].c, DOORS[door].cxx
    missing = [compiler for compiler in compilers if not shutil.which(compiler)]
    if missing or (SANITIZED and door != "hooks-gcc"):
        print(f"skipped: {door} {missing or 'under a sanitizer'}")
        sys.exit(system.SKIP)
    good = True
    with tempfile.TemporaryDirectory(prefix="millrace-safety-") as folder:
        builder = Builder(DOORS[door], pathlib.Path(folder))
        for name in chosen:
            if name == "chain":
                good &= attempt("chain", lambda: through_the_chain(door, builder))
            else:
                good &= attempt(name, lambda: run_case(name, door, builder))
    sys.exit(not good)


if __name__ == "__main__":
    main()
