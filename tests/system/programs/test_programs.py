# SPDX-License-Identifier: Apache-2.0
"""Random programs that count their own calls, against what `millrace record` has of them (generate.py, compare.py).

    MR_PROGRAMS_SECONDS    how long, 10 by default
    MR_TEST_SEED           begins with this program instead of a new one

What fails stays in a folder that is named, with the command to see it.
"""
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from compare import differences  # pylint: disable=wrong-import-position
from generate import generate  # pylint: disable=wrong-import-position

HERE = pathlib.Path(__file__).parent
SECONDS_DEFAULT = 10
RUN_S = 60

# door -> pkg-config's package, its variable of flags to compile with (or --cflags), of more flags to link with
PACKAGES = {
    "hooks-gcc": ("millrace", "--cflags", None),
    "hooks-clang": ("millrace", "--variable=clang_cflags", None),
    "patchable-gcc": ("millrace-patchable", "--cflags", None),
    "patchable-clang": ("millrace-patchable", "--variable=clang_cflags", "--variable=clang_ldflags"),
    "spans": ("millrace-manual", "--cflags", None),
}


def pkg_config(package, question):
    environment = dict(os.environ, PKG_CONFIG_PATH=str(system.BUILD / "lib" / "pkgconfig"))
    run = subprocess.run(["pkg-config", question, package], env=environment, capture_output=True, text=True, check=True)
    return shlex.split(run.stdout)


def run(command, **more):
    """What it says on standard error. All that it started ends with it."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          start_new_session=True, **more) as process:
        try:
            said = process.communicate(timeout=RUN_S)[1]
        except subprocess.TimeoutExpired as late:
            os.killpg(process.pid, signal.SIGKILL)
            raise system.Failure(f"{shlex.join(map(str, command))}\nhas not ended after {RUN_S} s") from late
    system.check(process.returncode == 0, f"{shlex.join(map(str, command))}\nended with {process.returncode}\n{said}")
    return said


class Builder:
    """Compiles for a program's door."""

    def __init__(self, program, folder):
        package, compiling, linking = PACKAGES[program.door]
        is_clang = program.door.endswith("clang")
        self.compilers = {"c": "clang-14" if is_clang else "gcc", "c++": "clang++-14" if is_clang else "g++"}
        self.folder = folder
        self.flags = [*pkg_config(package, compiling), "-g", "-w", "-pthread", f"-I{HERE}", f"-I{system.SOURCE}", *system.sanitizer_flags()]
        self.libs = [*(pkg_config(package, linking) if linking else []), *pkg_config(package, "--libs"), "-pthread", "-ldl",
                     *system.sanitizer_flags()]

    def compile(self, source, language, *flags):
        output = self.folder / (source.stem + ".o")
        run([self.compilers[language], *self.flags, *flags, "-c", source, "-o", output])
        return output

    def link(self, output, language, objects, *flags):
        run([self.compilers[language], *objects, "-o", output, *flags, *self.libs])
        return output


def compile_truth(folder):
    """Untraced, once for all programs."""
    output = folder / "truth.o"
    run(["gcc", "-O2", "-g", "-Wall", "-Wextra", "-fPIC", "-c", HERE / "truth.c", "-o", output, *system.sanitizer_flags()])
    return output


def build(program, folder, truth):
    builder = Builder(program, folder)
    language = program.language
    source = folder / ("program.c" if language == "c" else "program.cc")
    source.write_text(program.text)
    main = builder.compile(source, language, program.optimisation, *program.flags)
    if "plugin" in program.features:
        plugin = builder.compile(HERE / "plugin.c", "c", "-O2", "-fPIC", *(["-DSPANS"] if program.door == "spans" else []))
        builder.link(folder / "plugin.so", "c", [plugin], "-shared")
    return builder.link(folder / "program", language, [main, truth], "-rdynamic")


def record(program, executable, folder):
    truth = folder / "truth"
    truth.mkdir()
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MILLRACE_")}
    environment |= {"TRUTH_FOLDER": str(truth), "PLUGIN": str(folder / "plugin.so"), "MILLRACE_SPOOL": "none",
                    "ASAN_OPTIONS": environment.get("ASAN_OPTIONS", "") + ":detect_leaks=0", **program.variables}
    recording = folder / "millrace.data"
    said = run([system.MILLRACE, "record", "--output", recording, *program.options, executable], env=environment, cwd=folder)
    warnings = said.split("Functions by self time")[0].splitlines()[2:]
    system.check(not any(warnings), f"said by millrace record, or the program: {said}")
    return truth, recording


def describe(program):
    return " ".join([f"MR_TEST_SEED={program.seed}:", program.language, program.door, program.optimisation, *program.flags,
                     *program.options, *(f"{key}={value}" for key, value in program.variables.items()), "with", ", ".join(program.features) or "calls"])


def check(seed, folder, truth):
    program = generate(seed)
    print(describe(program), flush=True)
    folder.mkdir()
    try:
        executable = build(program, folder, truth)
        found = list(differences(program, *record(program, executable, folder)))
    except (system.Failure, subprocess.SubprocessError) as failure:
        found = [str(failure)]
    if not found:
        shutil.rmtree(folder)
        return
    again = f"MR_TEST_SEED={seed} MR_PROGRAMS_SECONDS=0"
    raise system.Failure("\n".join([*found, f"To see it: {system.MILLRACE} report {folder}/millrace.data; the program: {folder}/",
                                    f"Again: {again} ctest --test-dir {system.BUILD} -R programs --output-on-failure"]))


def test():
    given = os.environ.get("MR_TEST_SEED")
    seed = int(given, 0) if given else time.time_ns() >> 20
    end = time.monotonic() + float(os.environ.get("MR_PROGRAMS_SECONDS", SECONDS_DEFAULT))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-programs-"))
    truth = compile_truth(folder)
    first = seed
    while True:
        check(seed, folder / str(seed), truth)
        seed += 1
        if time.monotonic() >= end:
            break
    shutil.rmtree(folder)
    print(f"{seed - first} programs")


if __name__ == "__main__":
    system.main(test)
