#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules of the house that no compiler knows.

- Includes follow the arrows base <- net <- {probe, pipeline} <- {worker, master} <- bench <- cli, net <- scale <- cli; the probe never
  includes the pipeline, worker and master do not include each other; tests may include all.
- Every header compiles alone, with all warnings; the probe's public headers as C17 and as C++17.
- No file is longer than 800 lines, no function longer than 100; over 400 and 60 are counted.
- Every source begins with its SPDX line; nothing in it says that it is unfinished.
- A file that opens with a concurrency table ("field ... written by") is in the index, docs/CONCURRENCY.md.
- Compiler extensions live in base/compiler.h (and in probe/arch.h, for the processor's; and in the probe's public
  headers, which include nothing of ours).

Prints one line "file:line: what" per fault; exit status 1 if there is any. Use:
    lint.py --root . [--cc gcc] [--cxx g++] [--cflags '-Wall ...'] [--only includes,headers,sizes,text,extensions,tables]
"""
import argparse
import concurrent.futures
import os
import re
import shlex
import subprocess
import sys

LINES_MAX = 800
LINES_MANY = 400
FUNCTION_MAX = 100
FUNCTION_MANY = 60

FOLDERS = ["base", "net", "probe", "pipeline", "worker", "master", "scale", "cli", "bench", "tests", "docs", "scripts",
           "cmake", ".ci"]
MAY_INCLUDE = {
    "base": {"base"},
    "net": {"base", "net"},
    "probe": {"base", "net", "probe"},
    "pipeline": {"base", "net", "pipeline"},
    "worker": {"base", "net", "pipeline", "probe", "worker"},
    "master": {"base", "net", "pipeline", "probe", "master"},
    "scale": {"base", "net", "scale"},
    "cli": {"base", "net", "probe", "pipeline", "worker", "master", "scale", "bench", "cli"},
    "bench": {"base", "net", "probe", "pipeline", "worker", "master", "bench"},
    # Examples show what a reader's own program can include: the public headers.
    "docs": {"probe", "docs"},
}
C_EXTENSIONS = (".c", ".h", ".def")
CXX_EXTENSIONS = (".cc", ".cpp", ".hpp")
SOURCE_EXTENSIONS = C_EXTENSIONS + CXX_EXTENSIONS + (".py", ".sh", ".cmake", ".ts", ".js", ".css")
PUBLIC_HEADERS = "probe/include/"
EXTENSION_HOMES = ("base/compiler.h", "probe/arch.h")
EXTENSION_WORDS = re.compile(
    r"\b(__attribute__|__builtin_\w+|__typeof__|typeof|__asm__|asm|__extension__|__int128|__sync_\w+|__atomic_\w+)\b")
TABLE = re.compile(r"^ \* field +.*written by")
TABLE_INDEX = "docs/CONCURRENCY.md"
TABLE_FOLDERS = ("base", "net", "probe", "pipeline", "worker", "master", "scale", "bench", "cli")
# Spelled apart, so that this file does not accuse itself.
UNFINISHED = re.compile(r"\b(" + "TO" + "DO|" + "FIX" + "ME|" + "XX" + r"X)\b")


class Report:
    """The faults and counts of one run."""

    def __init__(self):
        self.faults = []
        self.long_files = 0
        self.long_functions = 0

    def fault(self, path, line, text):
        self.faults.append(f"{path}:{line}: {text}")


def is_source(name):
    return name.endswith(SOURCE_EXTENSIONS) or name == "CMakeLists.txt"


def find_sources(root):
    """All source files, as paths relative to the root, in order."""
    found = [name for name in os.listdir(root) if is_source(name) and os.path.isfile(os.path.join(root, name))]
    for folder in FOLDERS:
        for at, folders, names in os.walk(os.path.join(root, folder)):
            folders[:] = sorted(name for name in folders if name not in ("__pycache__", "node_modules"))
            found += [os.path.relpath(os.path.join(at, name), root) for name in names if is_source(name)]
    return sorted(found)


def read_lines(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()


def blank(match):
    """As many lines as the match has, without their text."""
    return "\n" * match.group(0).count("\n") or " "


def code_lines(lines):
    """The lines without comments, strings and characters; as many as before."""
    text = "\n".join(lines)
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, blank, text, flags=re.S).split("\n")


def check_includes(path, lines, report):
    folder = path.split("/")[0]
    if folder not in MAY_INCLUDE:
        return
    for number, line in enumerate(lines, 1):
        match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if not match:
            continue
        quoted, name = match.group(1) == '"', match.group(2)
        first = "probe" if name.startswith("millrace/") else name.split("/")[0]
        if first not in MAY_INCLUDE and first != "tests":
            if quoted and folder != "docs":
                report.fault(path, number, f'include "{name}" by its folder, as in "{folder}/{name}"')
        elif "/" in name and first not in MAY_INCLUDE[folder]:
            report.fault(path, number, f"{folder}/ must not include {first}/ ({name}): the arrows of the design")


def check_sizes(path, lines, report):
    if len(lines) > LINES_MAX:
        report.fault(path, len(lines), f"{len(lines)} lines; a file is split before {LINES_MAX}")
    report.long_files += len(lines) > LINES_MANY
    if path.endswith(C_EXTENSIONS + CXX_EXTENSIONS):
        check_functions(path, code_lines(lines), report)


def check_functions(path, lines, report):
    """A function's braces stand alone in column 0, which clang-format sees to."""
    start = None
    for number, line in enumerate(lines, 1):
        if line.rstrip() == "{":
            start = number
        elif line.startswith("}") and start:
            size = number - start + 1
            if size > FUNCTION_MAX:
                report.fault(path, start, f"function of {size} lines; at most {FUNCTION_MAX}")
            report.long_functions += size > FUNCTION_MANY
            start = None


def check_text(path, lines, report):
    head = lines[:2] if lines and lines[0].startswith("#!") else lines[:1]
    if not any("SPDX-License-Identifier: Apache-2.0" in line for line in head):
        report.fault(path, 1, "the first line is not the SPDX line")
    for number, line in enumerate(lines, 1):
        match = UNFINISHED.search(line)
        if match:
            report.fault(path, number, f"{match.group(0)}: finish it or open an issue")


def check_extensions(path, lines, report):
    folder = path.split("/")[0]
    if (folder not in MAY_INCLUDE or folder == "docs" or not path.endswith(C_EXTENSIONS)
            or path in EXTENSION_HOMES or path.startswith(PUBLIC_HEADERS)):
        return
    for number, line in enumerate(code_lines(lines), 1):
        match = EXTENSION_WORDS.search(line)
        if match:
            report.fault(path, number, f"{match.group(0)}: compiler extensions live in base/compiler.h")


def check_tables(paths, options, report):
    try:
        with open(os.path.join(options.root, TABLE_INDEX), encoding="utf-8") as file:
            index = file.read()
    except FileNotFoundError:
        index = ""
    for path in paths:
        if path.split("/")[0] in TABLE_FOLDERS and path.endswith(C_EXTENSIONS):
            has_table = any(TABLE.match(line) for line in read_lines(options.root, path))
            if has_table and f"`{path}`" not in index:
                report.fault(path, 1, f"its concurrency table is missing from {TABLE_INDEX}")


def header_commands(path, options):
    """The compiler calls, with the text for their stdin, that a header must survive."""
    flags = ["-Werror", "-fsyntax-only"] + shlex.split(options.cflags)
    c_flags = ["-std=c17", "-D_GNU_SOURCE", "-I", options.root] + shlex.split(options.c_only_flags)
    if not path.startswith(PUBLIC_HEADERS):
        return [([options.cc] + flags + c_flags + ["-x", "c", "-"], f'#include "{path}"\n')]
    # A reader's program has neither our include root nor our macros.
    include = ["-I", os.path.join(options.root, PUBLIC_HEADERS)]
    text = f"#include <{path[len(PUBLIC_HEADERS):]}>\n"
    return [([options.cc] + flags + ["-std=c17"] + include + ["-x", "c", "-"], text),
            ([options.cxx] + flags + ["-std=c++17"] + include + ["-x", "c++", "-"], text)]


def compile_header(path, options):
    """The first complaint about the header, or None."""
    for command, text in header_commands(path, options):
        # Twice, for a header is guarded; and with a declaration, for it may hold macros alone.
        text = text * 2 + "extern int mr_lint_declaration;\n"
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "error" in line] or ["no message"]
            return f"does not compile alone ({os.path.basename(command[0])}): {lines[0]}"
    return None


def check_headers(paths, options, report):
    headers = [path for path in paths if path.endswith(".h")]
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for path, complaint in zip(headers, pool.map(lambda path: compile_header(path, options), headers)):
            if complaint:
                report.fault(path, 1, complaint)


def run(options):
    report = Report()
    checks = {"includes": check_includes, "sizes": check_sizes, "text": check_text, "extensions": check_extensions}
    only = set(options.only.split(","))
    paths = find_sources(options.root)
    for path in paths:
        lines = read_lines(options.root, path)
        for name, check in checks.items():
            if name not in only:
                continue
            if name == "includes" and not path.endswith(C_EXTENSIONS + CXX_EXTENSIONS):
                continue
            check(path, lines, report)
    if "tables" in only:
        check_tables(paths, options, report)
    if "headers" in only:
        check_headers(paths, options, report)
    return report, len(paths)


def main():
    parser = argparse.ArgumentParser(description="checks the rules of the house")
    parser.add_argument("--root", required=True)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--cflags", default="-Wall -Wextra -Wpedantic", help="for C and C++")
    parser.add_argument("--c-only-flags", default="", help="for C alone")
    parser.add_argument("--only", default="includes,headers,sizes,text,extensions,tables")
    options = parser.parse_args()
    report, count = run(options)
    for fault in report.faults:
        print(fault)
    print(f"{count} files, {report.long_files} over {LINES_MANY} lines, "
          f"{report.long_functions} functions over {FUNCTION_MANY} lines, {len(report.faults)} faults")
    if not count:
        print("no source file found: is --root right?")
    return 1 if report.faults or not count else 0


if __name__ == "__main__":
    sys.exit(main())
