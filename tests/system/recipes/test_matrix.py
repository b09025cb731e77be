# SPDX-License-Identifier: Apache-2.0
"""Each door with each compiler, in all ways of linking that are known for their traps: the call trees are the same.

Built by the project's Makefile with CC=millrace-cc. PIE and not; shared libraries; a plugin by dlopen() and dlclose(); C++ templates in
two units; -z text; --gc-sections; lld; LTO; an archive; hidden visibility; static linking; sanitizers, of the program alone."""
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recipes as lib  # pylint: disable=wrong-import-position
from recipes import check, system  # pylint: disable=wrong-import-position

LLD = next((folder for folder in ("/usr/lib/llvm-14/bin", "/usr/bin") if os.path.exists(folder + "/ld.lld")), None)
# Name, flags for compiling, flags for linking, more for make.
VARIANTS = [
    ("pie", "-O2 -fPIE", "-pie -Wl,-z,text", []),
    ("small", "-O2 -fvisibility=hidden -ffunction-sections -fdata-sections", "-Wl,--gc-sections -Wl,-z,now", []),
    ("nopie", "-O1 -fno-pie -DWHOLE", "-no-pie", ["WHOLE=1"]),
    ("static", "-O2", "-static", ["WHOLE=1"]),
    ("lto", "-O2 -flto", "-flto", []),
    ("lld", "-O2 -fPIE", f"-pie -fuse-ld=lld -B{LLD} -Wl,-z,text", []),
    ("lld-lto", "-O2 -flto", f"-flto -fuse-ld=lld -B{LLD}", []),
    ("address", "-O2 -fsanitize=address", "-fsanitize=address", []),
    ("thread", "-O2 -fsanitize=thread", "-fsanitize=thread", []),
]


def is_possible(compiler, name):
    """gcc's LTO and lld do not know each other; clang's LTO is lld's."""
    if "lld" in name and not LLD:
        return False
    return name != ("lto" if compiler == "clang" else "lld-lto")


def build(prefix, folder, door, compiler, variant):
    name, cflags, ldflags, more = variant
    out = folder / f"{door}-{compiler}-{name}"
    out.mkdir()
    ar = "gcc-ar" if compiler == "gcc" else "llvm-ar-14" if shutil.which("llvm-ar-14") else "ar"
    lib.run("make", "-s", "-C", lib.PROJECT, f"OUT={out}", "CC=millrace-cc", "CXX=millrace-c++", f"AR={ar}",
            f"CFLAGS={cflags}", f"LDFLAGS={ldflags}", *more, **prefix.environment, MILLRACE_DOOR=door,
            MILLRACE_CC=lib.COMPILERS[compiler][0], MILLRACE_CXX=lib.COMPILERS[compiler][1])
    return out


def test():
    if lib.skip_with_sanitizer():
        return
    with system.System() as setup:
        prefix = lib.Prefix(setup.folder)
        bench = lib.Bench(setup)
        for door in lib.DOORS:
            for compiler in lib.COMPILERS:
                for variant in VARIANTS:
                    if is_possible(compiler, variant[0]):
                        out = build(prefix, setup.folder, door, compiler, variant)
                        bench.trace(out.name, out / "main", out / "plugin.so")
        check(len(bench.apps) >= 6, f"only {bench.apps} were built")
        bench.compare()


if __name__ == "__main__":
    system.main(test)
