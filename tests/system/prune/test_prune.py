# SPDX-License-Identifier: Apache-2.0
"""MILLRACE_PRUNE through every door, over a worker to a master: each call is recorded or counted, from which moment on is
decided by request and by what calls take, and call trees keep few shapes whatever falls into them."""
import json
import os
import pathlib
import platform
import re
import shlex
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check, wait_until  # pylint: disable=wrong-import-position

HERE = pathlib.Path(__file__).parent
CHEAP = {"tiny", "twice", "wrap", "kept"}
LIMIT = "2us"  # far from what they take, and from what slow takes, in sanitized builds too
ROUNDS = 100
WAIT_S = 90
USAGE = 2


def patchable(argument):
    environment = dict(os.environ, PKG_CONFIG_PATH=str(system.BUILD / "lib" / "pkgconfig"))
    run = subprocess.run(["pkg-config", argument, "millrace-patchable"], env=environment, capture_output=True, text=True,
                         check=True)
    return shlex.split(run.stdout)


def builds(folder):
    """Programs, and what of CHEAP can be pruned in them: hooks do not know MR_ALWAYS_TRACE."""
    source = HERE / "calls.c"
    yield system.compile_program(folder / "hooks", [source]), CHEAP
    if platform.machine() != "x86_64" or os.environ.get("MR_SANITIZE") == "thread":
        return
    for compiler, flags in (("gcc", patchable("--variable=gcc_specs")),
                            ("clang", patchable("--variable=clang_cflags") + patchable("--variable=clang_ldflags"))):
        if compiler == "clang" and os.environ.get("MR_SANITIZE"):
            continue  # the probe has gcc's runtime
        program = folder / compiler
        include = patchable("--variable=includedir")[0]
        subprocess.run([compiler, "-O2", "-g", *flags, "-I", include, source, "-o", program, *patchable("--libs"),
                        "-pthread", *system.sanitizer_flags()], check=True)
        yield program, CHEAP - {"kept"}


def attach(pid, *options, status=0):
    run = subprocess.run([system.MILLRACE, "attach", str(pid), *options], capture_output=True, text=True, check=False)
    check(run.returncode == status, f"attach {options}: {run}")
    return run


def told(pid, *options):
    return json.loads(attach(pid, *options, "--json").stdout)


def pruned_names(status):
    """{name: calls} of functions that are pruned now."""
    rows = [row.split(" ", 1) for row in status.get("pruned-function", [])]
    return {name: int(calls) for calls, name in rows if "(" not in name}


class Calls:
    """The program, told line by line what to do; `made` is its own count."""

    def __init__(self, chain, path, worker, **variables):
        variables = {"MILLRACE_CONTROL": "1", "MILLRACE_POLICY": "block", "MILLRACE_BLOCK_TIMEOUT": "60s",
                     "MILLRACE_ENDPOINT": worker.endpoint, **variables}
        self.process = subprocess.Popen([path], env=chain.environment(**variables), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, preexec_fn=system.die_with_parent)
        self.made = {}
        self.tell("run 1")  # it answers requests from here on

    @property
    def pid(self):
        return self.process.pid

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        words = self.process.stdout.readline().split()
        self.made = {name: int(count) for name, count in zip(words[::2], words[1::2])}

    def run_until_pruned(self, names):
        """In many call trees, so that marks fall into some of them."""
        def is_pruned():
            self.tell(f"run {ROUNDS}")
            return set(pruned_names(told(self.pid))) == names
        wait_until(is_pruned, WAIT_S, f"{names} pruned")

    def end(self):
        self.process.stdin.write("quit\n")
        self.process.stdin.close()
        check(self.process.wait() == 0, "the program failed")


def functions(master):
    return {row["name"]: row for row in master.get("/api/v1/functions")["functions"]}


def counts(master, name):
    """Calls recorded, and counted only, of a function; None: nobody counted."""
    row = functions(master)[name]
    return row["calls"], row["pruned"]["calls_not_recorded"] if row["pruned"] else None


def arrive(program, master, name):
    """All that the program made so far is at the master, recorded or counted: waits for it. In a child it ended before."""
    attach(program.pid, "--flush")

    def is_there():
        recorded, counted = counts(master, name)
        return recorded + (counted or 0) == program.made[name]
    wait_until(is_there, WAIT_S, f"all calls of {name}")


def is_exact(master, program, names):
    for name in names:
        arrive(program, master, name)
        row = functions(master)[name]
        check(row["pruned"]["sources"] >= 1 and row["pruned"]["since_ns"] > 0 and row["pruned"]["below_ns"] == 2000,
              f"{name}: {row}")
        check(row["pruned"]["calls_not_recorded"] > 0, f"{name}: {row}")
    for name in {"slow", "request"} | CHEAP - names:
        arrive(program, master, name)
        check(counts(master, name)[1] is None, f"{name} was pruned: {functions(master)[name]}")
    check(functions(master)["request"]["self_includes_pruned"], "request's time includes that of tiny")
    check(not functions(master)["slow"]["self_includes_pruned"], "slow calls nothing")


def paths_tell_estimates(master, name):
    """They sum up to what was counted, less what rounding takes."""
    counted = counts(master, name)[1]
    rows = [row for row in master.get("/api/v1/paths?form=list")["paths"] if row["site"]["name"] == name]
    estimates = [row["pruned"]["calls_not_recorded_estimate"] for row in rows]
    check(0 <= counted - sum(estimates) < len(rows) and len(rows) > 0, f"{name}: {estimates}, not {counted}")


def switches_off(program, master, names):
    """Back again: from here on each call is recorded, and what was counted stands."""
    before = {name: counts(master, name) for name in names}
    sources = {name: functions(master)[name]["pruned"]["sources"] for name in names}
    made = dict(program.made)
    status = told(program.pid, "--prune", "off")
    check(status["pruned"] == 0 and "prune-ns" not in status, f"{status}")
    program.tell(f"run {ROUNDS}")
    for name in names:
        arrive(program, master, name)
        recorded, counted = counts(master, name)
        check((recorded - before[name][0], counted) == (program.made[name] - made[name], before[name][1]),
              f"{name}: {before[name]}, then {recorded}, {counted}; made {made[name]}, then {program.made[name]}")
        # The child ended with it pruned.
        check(functions(master)[name]["pruned"]["sources"] == sources[name] - 1, f"{name} is pruned still")


def has_few_shapes(master, program, prunes):
    """One for each set of functions that was recorded at a time; trees that a mark fell into have none."""
    def served():
        return {row["name"]: row for row in master.get("/api/v1/entries")["entries"]}["serve"]

    def are_many():  # on a busy machine few are over when all is pruned
        program.tell("run 1")
        attach(program.pid, "--flush")
        return served()["count"] >= 3 * prunes
    wait_until(are_many, WAIT_S, "many call trees")
    check(served()["shapes"] <= 2 + prunes, f"{served()}")


def reports(store, program, names):
    text, told_json = [subprocess.run([system.MILLRACE, "report", *words, store], capture_output=True, text=True,
                                      check=True).stdout for words in ([], ["--json"])]
    summary = json.loads(told_json)
    rows = {row["name"]: row for row in summary["functions"]}
    check("Pruned:" in text and "tiny (pruned)" in text, text)
    for name in names:
        check(rows[name]["calls"] + rows[name]["pruned"]["calls_not_recorded"] == program.made[name], f"{rows[name]}")
    check("pruned" not in rows["slow"] and rows["slow"]["calls"] == program.made["slow"], f"{rows['slow']}")
    check(summary["ledger"]["balanced"] and summary["ledger"]["lost"] == 0, f"{summary['ledger']}")


def counts_every_call(chain, path, names):
    master = chain.master(store=chain.folder / f"{path.name}-store")
    worker = chain.worker(master.endpoint)
    program = Calls(chain, path, worker, MILLRACE_PRUNE=LIMIT)
    program.run_until_pruned(names)
    program.tell(f"run {ROUNDS}")
    if os.environ.get("MR_SANITIZE") != "thread":  # its runtime does not survive a fork among threads
        program.tell(f"fork {ROUNDS}")
    is_exact(master, program, names)
    paths_tell_estimates(master, "tiny")
    attach(program.pid, "--off")
    attach(program.pid, "--on")
    check(set(pruned_names(told(program.pid))) == names, "a switch took them back")
    program.tell(f"run {ROUNDS}")
    is_exact(master, program, names)
    switches_off(program, master, names)
    attach(program.pid, "--prune", LIMIT)
    program.run_until_pruned(names)
    is_exact(master, program, names)
    has_few_shapes(master, program, 3 * len(names))
    program.end()
    chain.stop(worker)
    chain.stop(master)
    reports(master.store, program, names)


def leaves_out_by_name(chain, worker, path):
    program = Calls(chain, path, worker, MILLRACE_PRUNE=LIMIT, MILLRACE_PRUNE_EXCEPT="t[w]*, kep?")
    program.run_until_pruned({"tiny", "wrap"})
    program.end()


def names_the_worst(chain, worker, path):
    """Without MILLRACE_PRUNE, too."""
    program = Calls(chain, path, worker)
    status = {}

    def is_named():
        program.tell(f"run {ROUNDS}")
        status.update(told(program.pid))
        return "short-function" in status
    if os.environ.get("MR_SANITIZE"):  # nothing is as short as that
        program.end()
        return
    wait_until(is_named, WAIT_S, "the worst functions named")
    named = {row.split(" % ")[1] for row in status["short-function"]}
    check(named <= CHEAP and "tiny" in named and "pruned" not in status, f"{status}")
    text = attach(program.pid).stdout
    check("MILLRACE_EXCEPT='" in text and "--prune 20ns" in text and "MR_NEVER_TRACE" in text, text)
    program.end()


def names_as_people_write_them(chain, worker):
    """C++: `attach` has the demangler that the probe does not bring along; and its advice can be taken as it stands."""
    if os.environ.get("MR_SANITIZE"):  # nothing is as short as that
        return
    path = system.compile_program(chain.folder / "names", [HERE / "names.cpp"], compiler="g++")
    process = subprocess.Popen([path], env=chain.environment(MILLRACE_CONTROL="1", MILLRACE_ENDPOINT=worker.endpoint),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=system.die_with_parent)
    wanted = {"(anonymous namespace)::quick(int)", "shop::item::add(int)"}

    def named():
        process.stdin.write("again\n")
        process.stdin.flush()
        check(process.stdout.readline() == "done\n", "names ended")
        return {row.split(" % ")[1] for row in told(process.pid).get("short-function", [])}
    wait_until(lambda: named() == wanted, WAIT_S, f"{wanted} named")
    text = attach(process.pid).stdout
    advice = re.search("MILLRACE_EXCEPT='([^']*)'", text)
    check(advice and wanted == {glob[:-1] + "(int)" for glob in advice.group(1).split(",")}, text)
    for glob in advice.group(1).split(","):
        attach(process.pid, "--off", "--only", glob)
    process.stdin.close()
    check(process.wait() == 0, "names failed")


def refuses(chain, worker, path):
    def starts(text, **variables):
        run = chain.run([path], MILLRACE_ENDPOINT="tcp://127.0.0.1:1", **variables)
        check(run.returncode == 0 and run.stderr.count("\n") == 1 and text in run.stderr, f"{variables}: {run}")
    starts("MILLRACE_PRUNE: 'soon'", MILLRACE_PRUNE="soon")
    starts("MILLRACE_PRUNE: ", MILLRACE_PRUNE="2s")
    starts("MILLRACE_PRUNE_EXCEPT=a,,b: an empty glob", MILLRACE_PRUNE="1us", MILLRACE_PRUNE_EXCEPT="a,,b")
    for variables, text in (({"MILLRACE_CLOCK": "hybrid"}, "too coarse for 50 ns"),
                            ({"MILLRACE_POLICY": "overwrite", "MILLRACE_RECORDER_DIR": str(chain.folder)},
                             "a flight recorder")):
        program = Calls(chain, path, worker, **variables)
        check(text in attach(program.pid, "--prune", "50ns", status=USAGE).stderr, f"{variables}")
        program.end()
    program = Calls(chain, path, worker)
    for options, text in ((["--prune", "soon"], "expected a duration such as 50ns, at most 1s, or off"),
                          (["--prune", "0"], "expected a duration such as 50ns, at most 1s, or off"),
                          (["--prune", "2s"], "expected a duration such as 50ns, at most 1s, or off"),
                          (["--prune", "50ns", "--on"], "--prune goes alone")):
        said = attach(program.pid, *options, status=USAGE).stderr
        check(text in said and said.count("\n") == 1, f"{options}: {said}")
    program.end()


def test():
    with system.System() as chain:
        for path, names in builds(chain.folder):
            counts_every_call(chain, path, names)
        worker = chain.worker(chain.master().endpoint)
        leaves_out_by_name(chain, worker, path)
        names_the_worst(chain, worker, path)
        names_as_people_write_them(chain, worker)
        refuses(chain, worker, path)


if __name__ == "__main__":
    system.main(test)
