# SPDX-License-Identifier: Apache-2.0
"""The recipes of docs/INSTRUMENTING.md, each from scratch against an installed prefix: CMake, autotools, Meson, and the wrapper's
own manners: what only asks the compiler something gets the compiler's own answer. (Make: test_matrix.py.)"""
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recipes as lib  # pylint: disable=wrong-import-position
from recipes import check, system  # pylint: disable=wrong-import-position


def copy(folder, name):
    shutil.copytree(lib.PROJECT, folder / name)
    return folder / name


def cmake(bench, prefix, folder, door, compiler):
    app = f"cmake-{door}-{compiler}"
    source, build = copy(folder, app), folder / f"{app}-build"
    cc, cxx = lib.COMPILERS[compiler]
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    lib.run("cmake", *generator, "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix.folder}", f"-DCMAKE_C_COMPILER={cc}",
            f"-DCMAKE_CXX_COMPILER={cxx}", f"-DMR_TEST_DOOR={door}", "-DCMAKE_BUILD_TYPE=RelWithDebInfo")
    lib.run("cmake", "--build", build)
    bench.trace(app, build / "main", build / "plugin.so")


def cmake_says_what_is_wrong(prefix, folder):
    source = folder / "wrong"
    source.mkdir()
    for call, words in (("TARGET nothing", "nothing is no target"), ("TARGET main DOOR front", "DOOR front: expected"),
                        ("DOOR hooks", "which targets?")):
        (source / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.18)\nproject(wrong C)\nfind_package(millrace)\n"
                                               f"add_executable(main main.c)\nmillrace_instrument({call})\n")
        (source / "main.c").write_text("int main(void) { return 0; }\n")
        try:
            lib.run("cmake", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={prefix.folder}")
        except system.Failure as failure:
            check(words in " ".join(str(failure).split()), f"{call}: {failure}")
        else:
            raise system.Failure(f"millrace_instrument({call}) was taken")


def autotools(bench, prefix, folder, door, compiler):
    app = f"autotools-{door}-{compiler}"
    if not shutil.which("autoreconf") or not shutil.which("automake"):
        print(f"{app}: skipped: autoconf or automake is not there")
        return
    source, build = copy(folder, app), folder / f"{app}-build"
    cc, cxx = lib.COMPILERS[compiler]
    build.mkdir()
    (source / "Makefile").unlink()  # of the Make recipe
    lib.run("autoreconf", "-i", cwd=source)
    variables = {**prefix.environment, "MILLRACE_DOOR": door, "MILLRACE_CC": cc, "MILLRACE_CXX": cxx}
    lib.run(source / "configure", "CC=millrace-cc", "CXX=millrace-c++", "CFLAGS=-O2", "CXXFLAGS=-O2", cwd=build, **variables)
    config = (build / "config.log").read_text()
    check("ac_cv_func_memcpy=yes" in config and "ac_cv_func_strlcpy=no" in config, "configure found other functions")
    lib.run("make", "-s", cwd=build, **variables)
    bench.trace(app, build / "main")


def meson(bench, prefix, folder, compiler):
    app = f"meson-{compiler}"
    if not shutil.which("meson") or not shutil.which("ninja"):
        print(f"{app}: skipped: meson or ninja is not there")
        return
    source, build = copy(folder, app), folder / f"{app}-build"
    cc, cxx = lib.COMPILERS[compiler]
    if compiler == "gcc":
        # The dependency's flags do all.
        lib.run("meson", "setup", build, source, "--buildtype=debugoptimized", **prefix.environment, CC=cc, CXX=cxx)
    else:
        native = source / "native.ini"
        native.write_text("[binaries]\nc = ['millrace-cc']\ncpp = ['millrace-c++']\n")
        lib.run("meson", "setup", build, source, "--buildtype=debugoptimized", "--native-file", native, "-Dmillrace=",
                **prefix.environment, MILLRACE_CC=cc, MILLRACE_CXX=cxx)
    lib.run("ninja", "-C", build, **prefix.environment, MILLRACE_CC=cc, MILLRACE_CXX=cxx)
    bench.trace(app, build / "main", build / "plugin.so")


def wrapper_passes_questions_through(prefix):
    source = lib.PROJECT / "archive.c"
    for compiler, (cc, _) in lib.COMPILERS.items():
        for question in (["--version"], ["-dumpmachine"], ["-print-search-dirs"], ["-E", source], ["-M", source], ["-v"],
                         ["-fsyntax-only", source]):
            where = [] if source not in question else [f"-I{prefix.bin}/../include"]  # of millrace/probe.h
            plain = lib.run(cc, *question, *where)
            wrapped = lib.run("millrace-cc", *question, **prefix.environment, MILLRACE_CC=cc)
            check((plain.stdout, plain.stderr) == (wrapped.stdout, wrapped.stderr), f"{compiler} {question}: {wrapped.stdout}")
        # Nothing to complain of, in any step.
        for door in lib.DOORS:
            settings = {**prefix.environment, "MILLRACE_CC": cc, "MILLRACE_DOOR": door}
            whole = prefix.folder / "whole"
            for step in (["-c", source, "-o", f"{whole}.o"], ["-S", source, "-o", f"{whole}.s"], ["-c", f"{whole}.s", "-o", f"{whole}.o"],
                         ["-shared", "-fPIC", source, "-o", f"{whole}.so"], ["-r", f"{whole}.o", "-o", f"{whole}-r.o"],
                         ["-c", "-fPIC", source, "-o", f"{whole}.o"], ["-shared", f"{whole}.o", "-o", f"{whole}.so"]):
                done = lib.run("millrace-cc", "-Wall", "-Wextra", "-Werror", *step, **settings)
                check(not done.stderr, f"{compiler} {door} {step}: {done.stderr}")
    try:
        lib.run("millrace-cc", "-c", source, **prefix.environment, MILLRACE_DOOR="back")
    except system.Failure as failure:
        check("MILLRACE_DOOR=back: expected patchable or hooks" in str(failure), f"{failure}")
    else:
        raise system.Failure("MILLRACE_DOOR=back was taken")


def test():
    if lib.skip_with_sanitizer():
        return
    with system.System() as setup:
        prefix = lib.Prefix(setup.folder)
        bench = lib.Bench(setup)
        wrapper_passes_questions_through(prefix)
        cmake_says_what_is_wrong(prefix, setup.folder)
        compilers = list(lib.COMPILERS)
        cmake(bench, prefix, setup.folder, lib.DOORS[0], compilers[0])
        cmake(bench, prefix, setup.folder, "hooks", compilers[-1])
        autotools(bench, prefix, setup.folder, lib.DOORS[0], compilers[-1])
        autotools(bench, prefix, setup.folder, "hooks", compilers[0])
        if lib.IS_X86:
            for compiler in compilers:
                meson(bench, prefix, setup.folder, compiler)
        bench.compare()


if __name__ == "__main__":
    system.main(test)
