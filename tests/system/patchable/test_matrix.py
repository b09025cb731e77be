# SPDX-License-Identifier: Apache-2.0
"""Ways to build and link: in each, every function of matrix_*.{cc,c} is found and recorded, call by call.

The calls: main 1, twice<int> 20 (an inline function of two units), other_unit 10, lib_work 3, inner 6."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "probe"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_programs as probe  # pylint: disable=wrong-import-position
from test_programs import check  # pylint: disable=wrong-import-position
from test_filter import HERE, pkg_config  # pylint: disable=wrong-import-position

GCC = ("gcc", "g++", ["--variable=gcc_specs"], ["--libs"])
CLANG = ("clang", "clang++", ["--variable=clang_cflags"], ["--variable=clang_ldflags", "--libs"])
CALLS = {"main": 1, "_Z5twiceIiET_S0_": 20, "_Z10other_uniti": 10, "lib_work": 3, "inner": 6}

#           name              compilers   flags of compiling and linking, flags of linking, what the library is
BUILDS = [
    ("pie", (GCC, CLANG), ["-fPIE"], ["-pie"], "object"),
    ("non-pie", (GCC, CLANG), ["-fno-pie"], ["-no-pie"], "object"),
    ("shared", (GCC, CLANG), [], ["-Wl,-z,text"], "shared"),
    ("dlopen", (GCC, CLANG), [], ["-Wl,-z,text"], "dlopen"),
    ("archive", (GCC, CLANG), [], [], "archive"),
    ("gc-sections", (GCC, CLANG), ["-ffunction-sections", "-fdata-sections"], ["-Wl,--gc-sections"], "object"),
    ("hidden", (GCC, CLANG), ["-fvisibility=hidden", "-fvisibility-inlines-hidden"], [], "shared"),
    ("lld", (GCC, CLANG), [], ["-fuse-ld=lld", "-Wl,-z,text"], "shared"),
    ("lto", (GCC,), ["-flto"], ["-flto"], "object"),
    ("cet", (GCC,), ["-fcf-protection=full"], [], "object"),
    ("stripped", (GCC,), [], [], "object"),
    ("static", (GCC,), [], ["-static"], "object"),
]


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(folder, compilers, flags, ldflags, kind):
    cc, cxx, cflags, libs = compilers
    flags = ["-O2", *flags, *pkg_config("millrace-patchable", *cflags)]
    libs = pkg_config("millrace-patchable", *libs)
    if "-static" in ldflags:
        # libmillrace.a is self-contained but for libc.
        libs = [word for word in libs if not word.startswith("-Wl,-rpath")]
    if cc == "gcc":  # as for -flto: what compiles at the link
        ldflags = [*ldflags, *pkg_config("millrace-patchable", "--variable=gcc_specs")]
    library = folder / "liblib.so"
    more = [f'-DMATRIX_DLOPEN="{library}"'] if kind == "dlopen" else []
    objects = []
    for source in ("matrix_a.cc", "matrix_b.cc"):
        objects.append(folder / (source + ".o"))
        run(cxx, "-std=c++17", *flags, *more, "-c", HERE / source, "-o", objects[-1])
    part = folder / "lib.o"
    run(cc, *flags, *([] if kind in ("object", "archive") else ["-fPIC"]), "-c", HERE / "matrix_lib.c", "-o", part)
    if kind in ("shared", "dlopen"):
        run(cc, "-shared", part, *ldflags, *libs, "-o", library)
        part = library
    if kind == "archive":
        run("ar", "rcs", folder / "lib.a", part)
        part = folder / "lib.a"
    parts = [] if kind == "dlopen" else [part]
    program = folder / "matrix"
    rpath = [] if "-static" in ldflags else [f"-Wl,-rpath,{folder}"]
    run(cxx, *objects, *parts, *ldflags, *rpath, *libs, "-ldl", "-pthread", "-o", program)
    return program, library


def symbols(path):
    names = {}
    for line in run("nm", path).splitlines():
        words = line.split()
        if len(words) == 3 and words[2].split(".")[0] in CALLS:
            names[int(words[0], 16)] = words[2].split(".")[0]
    return names


def names_of(account, places):
    """Site -> name, through the module table as it was sent."""
    found = {}
    for module in probe.lines_of(account, "module"):
        for address, name in places.get(os.path.basename(module["path"]), {}).items():
            found[module["site_base"] + address + module["bias"] - module["address"]] = name
    return found


def one(folder, name, compilers, flags, ldflags, kind):
    program, library = build(folder, compilers, flags, ldflags, kind)
    places = {"matrix": symbols(program)}
    if library.exists():
        places["liblib.so"] = symbols(library)
    if name == "stripped":
        run("strip", program)
    with probe.Sink("--calls", "") as sink:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("MILLRACE_", "OTEL_"))}
        environment.update(MILLRACE_ENDPOINT=sink.endpoint, MILLRACE_POLICY="block", MILLRACE_BLOCK_TIMEOUT="60s")
        done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=120, check=False)
        check(done.returncode == 0 and done.stdout == "190 36\n" and not done.stderr,
              f"{name}: {done.returncode} {done.stdout}{done.stderr}")
        sink.finish()
    names = names_of(sink.account, places)
    calls = {}
    for call in probe.lines_of(sink.account, "call"):
        check(call["enters"] == call["exits"], f"{name}: {call}")
        key = names.get(call["site"], hex(call["site"]))
        calls[key] = calls.get(key, 0) + call["enters"]
    calls.pop("by_name", None)
    if kind == "dlopen":
        # A library that was closed before the helper looked for new modules has no name: then by its counts.
        for key in [key for key in calls if key.startswith("0x")]:
            alike = [name_ for name_ in ("lib_work", "inner") if CALLS[name_] == calls[key]]
            calls.update({name_: calls[key] for name_ in alike[:1]})
            calls.pop(key)
    extra = {key: count for key, count in calls.items() if key not in CALLS}
    missing = {key: count for key, count in CALLS.items() if calls.get(key) != count}
    # by_name() may be a function of its own or not; nothing else may come.
    check(not missing and sum(extra.values()) <= 1, f"{name}: missing {missing}, found {calls}")
    check("gmon.out" not in os.listdir(folder), f"{name}: gprof's start code was linked")


def test():
    wanted = sys.argv[1:]
    for name, compilers, flags, ldflags, kind in BUILDS:
        for compiler in compilers:
            if wanted and name not in wanted:
                continue
            if (name == "lld" and not shutil.which("ld.lld")) or (compiler is CLANG and probe.SANITIZED) or probe.SANITIZED:
                print(f"{name}, {compiler[0]}: skipped")
                continue
            with tempfile.TemporaryDirectory() as folder:
                one(pathlib.Path(folder), name, compiler, flags, ldflags, kind)
            print(f"{name}, {compiler[0]}: all calls")


if __name__ == "__main__":
    try:
        test()
    except probe.Failure as failure:
        print("FAILED:", failure)
        sys.exit(1)
