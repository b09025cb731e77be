# SPDX-License-Identifier: Apache-2.0
"""Which functions are recorded: by the environment, and by `millrace attach` while the program runs; the same program
(doors.c) built with hooks, with gcc's patchable sites and with clang's. Counted at a sink, call by call."""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "probe"))
import test_programs as probe  # pylint: disable=wrong-import-position
from test_programs import check  # pylint: disable=wrong-import-position

FIRST_MODULE = 0x1000000  # docs/FORMAT.md section 6.2
HERE = probe.SOURCE / "tests" / "system" / "patchable"
BUILDS = {  # compiler, package and variable for compiling, what links
    "hooks": ("gcc", "millrace", "--cflags", ["--libs"]),
    "gcc": ("gcc", "millrace-patchable", "--variable=gcc_specs", ["--libs"]),
    "clang": ("clang", "millrace-patchable", "--variable=clang_cflags", ["--variable=clang_ldflags", "--libs"]),
}
CALLS = 100  # of each function but batch() in a batch


def pkg_config(package, *arguments):
    environment = dict(os.environ, PKG_CONFIG_PATH=str(probe.BUILD / "lib" / "pkgconfig"))
    words = []
    for argument in arguments:
        run = subprocess.run(["pkg-config", argument, package], env=environment, capture_output=True, text=True,
                             check=True)
        words += shlex.split(run.stdout)
    return words


def build(folder, door):
    compiler, package, cflags, libs = BUILDS[door]
    program = folder / door
    source = HERE / "doors.c"
    if compiler == "clang":  # it does not know noipa
        source = folder / "doors.c"
        source.write_text((HERE / "doors.c").read_text().replace(", noipa", ""))
    sanitize = [f"-fsanitize={probe.SANITIZED}"] if probe.SANITIZED else []
    subprocess.run([compiler, "-O2", *pkg_config(package, cflags), source, *sanitize, "-o", program,
                    *pkg_config(package, *libs)], check=True)
    return program


def names_of(program):
    """Site -> name of the functions of doors.c."""
    run = subprocess.run(["nm", program], capture_output=True, text=True, check=True)
    wanted = {"tiny_add", "tiny_sub", "tiny_loop", "tiny_kept", "large_mix", "batch", "main"}
    return {FIRST_MODULE + int(words[0], 16): words[2] for words in map(str.split, run.stdout.splitlines())
            if len(words) == 3 and words[2] in wanted}


class Program:
    def __init__(self, path, sink, **variables):
        self.names = names_of(path)
        self.sink = sink
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("MILLRACE_", "OTEL_"))}
        environment.update({"MILLRACE_ENDPOINT": sink.endpoint, "MILLRACE_POLICY": "block",
                            "MILLRACE_BLOCK_TIMEOUT": "60s"})
        environment.update({f"MILLRACE_{k}": v for k, v in variables.items()})
        self.process = subprocess.Popen([path], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)

    def batch(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        check(self.process.stdout.readline().startswith("done"), "doors does not answer")

    def attach(self, *options, status=0):
        run = subprocess.run([probe.BIN / "millrace", "attach", str(self.process.pid), *options], capture_output=True,
                             text=True, timeout=60, check=False)
        check(run.returncode == status, f"attach: {run.stdout}{run.stderr}")
        return run.stdout

    def finish(self):
        """name -> (enters, exits), and what went to standard error."""
        _, errors = self.process.communicate(timeout=60)
        check(self.process.returncode == 0, f"doors ended with {self.process.returncode}: {errors}")
        self.sink.finish()
        calls = probe.lines_of(self.sink.account, "call")
        for call in calls:
            check(call["site"] in self.names, f"events of a site that is none: {call}, {self.names}")
        return {self.names[call["site"]]: (call["enters"], call["exits"]) for call in calls}, errors


def run(path, batches=1, **variables):
    with probe.Sink("--calls", "") as sink:
        program = Program(path, sink, **variables)
        for _ in range(batches):
            program.batch()
        return program.finish()


def by_environment(path):
    each, once = (CALLS, CALLS), (1, 1)
    tiny = {"tiny_add": each, "tiny_sub": each, "tiny_loop": each, "tiny_kept": each}
    everything = {**tiny, "large_mix": each, "batch": once, "main": once}
    # What loops is never too small; MR_ALWAYS_TRACE is known of sites alone. Some compilers make batch() a large one.
    large = {"large_mix": each, "tiny_loop": each, "batch": once, "main": once}
    if path.name != "hooks":
        large["tiny_kept"] = each
    cases = [
        ({}, everything),
        ({"ONLY": "tiny_*"}, tiny),
        ({"ONLY": "tiny_*,batch", "EXCEPT": "*sub,*_loop,*_kept"}, {"tiny_add": each, "batch": once}),
        ({"EXCEPT": "tiny_*,main"}, {"large_mix": each, "batch": once}),
        ({"MIN_SIZE": "100"}, large),
    ]
    for variables, expected in cases:
        found, errors = run(path, **variables)
        check(not errors, f"{path.name}, {variables}: {errors}")
        check(found == expected, f"{path.name}, {variables}: {found} instead of {expected}")
    found, errors = run(path, ONLY="tiny_add,nothing_like_it")
    check(found == {"tiny_add": each}, f"{path.name}: {found}")
    check("nothing_like_it" in errors and errors.count("\n") == 1, f"{path.name}: no warning of a glob: {errors}")


def by_attach(path):
    with probe.Sink("--calls", "") as sink:
        program = Program(path, sink, CONTROL="1", START="off")
        program.batch()  # nothing
        answer = program.attach("--on", "--only", "tiny_add", "--only", "no_such_*", status=2)
        check(re.search(r"matched(-hooks)? +1\n", answer) and "no_such_*" in answer, answer)
        program.batch()  # tiny_add
        program.attach("--on", "--only", "*", "--except", "main", "--except", "batch")
        program.batch()  # tiny_*, large_mix
        program.attach("--off", "--only", "tiny_*")
        program.batch()  # large_mix
        program.attach("--off")
        program.attach("--on", "--min-size", "100", "--except", "main", "--except", "batch")
        program.batch()  # large_mix, tiny_loop, tiny_kept
        program.attach("--off")
        program.batch()  # nothing
        program.attach("--on")
        program.batch()  # all
        program.attach("--off")
        found, errors = program.finish()
    kept = 2 if path.name == "hooks" else 3
    expected = {"tiny_add": (3 * CALLS, 3 * CALLS), "tiny_sub": (2 * CALLS, 2 * CALLS),
                "tiny_loop": (3 * CALLS, 3 * CALLS), "tiny_kept": (kept * CALLS, kept * CALLS),
                "large_mix": (4 * CALLS, 4 * CALLS), "batch": (1, 1)}
    check(found == expected and not errors, f"{path.name}, attach: {found} instead of {expected}; {errors}")


def test():
    with tempfile.TemporaryDirectory() as folder:
        for door, (compiler, *_) in BUILDS.items():
            if compiler == "clang" and probe.SANITIZED:
                continue  # the probe of a sanitizer's build is gcc's
            path = build(pathlib.Path(folder), door)
            by_environment(path)
            by_attach(path)
            print(f"{door}: as chosen")


if __name__ == "__main__":
    try:
        test()
    except probe.Failure as failure:
        print("FAILED:", failure)
        sys.exit(1)
