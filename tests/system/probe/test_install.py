# SPDX-License-Identifier: Apache-2.0
"""What `cmake --install` puts under a prefix is whole: a C and a C++ program are built with what pkg-config says there, by
gcc and by clang, and run under the prefix's own `millrace record`. The prefix is moved in between."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BIN = pathlib.Path(os.environ["MR_BIN"])
BUILD = pathlib.Path(os.environ["MR_BUILD"])
SECONDS = 120

C_PROGRAM = r"""
#include <stdio.h>
static __attribute__((noinline)) int tell(int x) { return printf("%d\n", x); }
int main(void) { return tell(41) != 3; }
"""
CXX_PROGRAM = r"""
#include <algorithm>
#include <cstdio>
#include <vector>
static __attribute__((noinline)) int tell(int x) { return std::printf("%d\n", x); }
int main()
{
    std::vector<int> values{41, 7};
    std::sort(values.begin(), values.end());
    return tell(values.back()) != 3;
}
"""
MANUAL_PROGRAM = r"""
#include <millrace/probe.h>
#include <stdio.h>
int main(void) { MR_SPAN("tell"); return printf("41\n") != 3; }
"""
FILES = ["bin/millrace", "include/millrace/probe.h"]
LIBRARIES = ["libmillrace.so", "libmillrace.so.1", "libmillrace.a", "pkgconfig/millrace.pc", "pkgconfig/millrace-manual.pc"]


class Failure(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failure(text)


def run(*command, **options):
    process = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=SECONDS,
                             stdin=subprocess.DEVNULL, check=False, **options)
    check(process.returncode == 0, f"{command}: status {process.returncode}\n{process.stdout}{process.stderr}")
    return process


def install(folder):
    """Installs, and moves the prefix away from where it was installed to."""
    run("cmake", "--install", BUILD, "--prefix", folder / "first")
    prefix = folder / "usr"
    (folder / "first").rename(prefix)
    found = list(prefix.glob("**/libmillrace.so"))
    check(len(found) == 1, f"libmillrace.so is there {len(found)} times")
    libraries = found[0].parent
    for path in [prefix / name for name in FILES] + [libraries / name for name in LIBRARIES]:
        check(path.exists(), f"not installed: {path}")
    return prefix, libraries


def flags(libraries, package, *what):
    environment = {**os.environ, "PKG_CONFIG_PATH": str(libraries / "pkgconfig")}
    text = run("pkg-config", *what, package, env=environment).stdout
    check(str(BUILD) not in text, f"{package}.pc leads to the build folder: {text}")
    return text.split()


def try_program(folder, prefix, libraries, compiler, package, source, ask):
    program = folder / "program"
    suffix = ".cc" if "++" in compiler else ".c"
    (folder / "program").with_suffix(suffix).write_text(source)
    run(compiler, "-O2", *flags(libraries, package, ask), program.with_suffix(suffix), "-o", program,
        *flags(libraries, package, "--libs"))
    loaded = run("ldd", program).stdout
    check(str(libraries.resolve()) in loaded or str(libraries) in loaded, f"another library is loaded: {loaded}")
    recorded = run(prefix / "bin/millrace", "record", program, cwd=folder)
    check(recorded.stdout == "41\n", f"stdout became {recorded.stdout}")
    check("tell" in recorded.stderr, f"{compiler} {package}: tell() is not in the summary:\n{recorded.stderr}")
    print(f"{compiler} {package}: ok")


def main():
    if os.environ.get("MR_SANITIZE") or not (BIN / "millrace").exists():
        print("skipped: a sanitizer's runtime would have to come first, or no millrace is built")
        return 0
    folder = pathlib.Path(tempfile.mkdtemp(prefix="mr-install-"))
    try:
        prefix, libraries = install(folder)
        cases = [("gcc", "millrace", C_PROGRAM, "--cflags"), ("g++", "millrace", CXX_PROGRAM, "--cflags"),
                 ("gcc", "millrace-manual", MANUAL_PROGRAM, "--cflags")]
        if shutil.which("clang-14"):
            cases += [("clang-14", "millrace", C_PROGRAM, "--variable=clang_cflags"),
                      ("clang++-14", "millrace", CXX_PROGRAM, "--variable=clang_cflags")]
        for case in cases:
            try_program(folder, prefix, libraries, *case)
    except (Failure, subprocess.SubprocessError) as failure:
        print(f"FAILED: {failure}")
        return 1
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
