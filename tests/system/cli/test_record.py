# SPDX-License-Identifier: Apache-2.0
"""millrace record on a real instrumented program: counts, streams, exit status, the recording it leaves, and what it says
about programs that cannot be recorded."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

HERE = pathlib.Path(__file__).parent
COUNT = 2000
EVENTS = 2 * (COUNT * (1 + 10 + 10) + 1)  # enter and exit of serve, descend, leaf; and of main


def millrace(chain, *arguments, text="", **variables):
    return subprocess.run([system.MILLRACE, *map(str, arguments)], input=text, capture_output=True, text=True,
                          env=chain.environment(**variables), cwd=chain.folder, timeout=120, check=False)


def report(chain, *arguments):
    done = millrace(chain, "report", *arguments)
    check(done.returncode == 0 and done.stderr == "", f"report {arguments}: {done}")
    return done.stdout


def no_servers_left(chain):
    """Nobody but us knows the folder of this test: whoever has it in its command line is a child of record."""
    left = subprocess.run(["pgrep", "-f", str(chain.folder)], capture_output=True, text=True, check=False).stdout
    check(left == "", f"processes left behind: {left}")


def records(chain, toy):
    data = chain.folder / "millrace.data"
    done = millrace(chain, "record", toy, COUNT, 7, text="through and through")
    check(done.returncode == 7, f"the program's status: {done}")
    check(done.stdout == "through and through", f"its stdin and stdout: {done}")
    check(done.stderr.startswith("toy says hello\n"), f"its stderr comes first: {done.stderr}")
    told = done.stderr.split("\n", 1)[1]
    check(report(chain) == told, f"report is not what record printed:\n{told}\n---\n{report(chain)}")
    check(report(chain, data) == told, "report DIR is what report prints")
    for part in ["Functions by self time", "Entry points", f"none of {EVENTS:,} events", "balanced", "exit status 7"]:
        check(part in told, f"'{part}' is not in it:\n{told}")
    check_numbers(json.loads(report(chain, "--json")))
    no_servers_left(chain)


def check_numbers(told):
    calls = {row["name"]: row["calls"] for row in told["functions"]}
    expected = {"main": 1, "serve": COUNT, "descend": 10 * COUNT, "leaf": 10 * COUNT}
    check(calls == expected, f"calls {calls}, not {expected}")
    entry = [row for row in told["entries"] if row["name"] == "serve"]
    check(len(entry) == 1 and entry[0]["count"] == COUNT and entry[0]["ok"] == COUNT, f"entry points: {told['entries']}")
    quantiles = [entry[0][name] for name in ("p50", "p90", "p99")]
    for quantile in quantiles:
        check(0 < quantile["low_ns"] <= quantile["value_ns"] <= quantile["high_ns"], f"{quantile}")
    check(quantiles[0]["value_ns"] <= quantiles[2]["value_ns"], f"p50 above p99: {quantiles}")
    ledger = told["ledger"]
    check(ledger["balanced"] and ledger["last"] == ledger["reduced"] == EVENTS, f"ledger: {ledger}")
    check(ledger["lost"] == 0 and ledger["held"] == 0, f"ledger: {ledger}")
    check(told["run"]["exit_status"] == 7 and told["run"]["wall_ns"] > 0, f"run: {told['run']}")


def orders(chain):
    rows = report(chain, "--functions", 2, "--entries", 0, "--sort", "calls").splitlines()
    at = next(i for i, line in enumerate(rows) if line.startswith("Functions by calls"))
    check("(2 of 4)" in rows[at], f"a cut table says so: {rows[at]}")
    check([row.split()[-2] for row in rows[at + 2:at + 4]] == ["descend", "leaf"], f"by calls, then name: {rows}")
    check(not any(row.startswith("Entry points") for row in rows), "no rows, no table")


def clocks(chain, toy):
    """Each clock gives the same calls; what ticks hide is a bound, in text, JSON, and at no place a time of 0."""
    for clock in ("tsc", "monotonic", "hybrid"):
        done = millrace(chain, "record", "--clock", clock, "--output", chain.folder / clock, toy, COUNT, 0)
        check(done.returncode == 0, f"{clock}: {done}")
        told = json.loads(report(chain, "--json", chain.folder / clock))
        check(told["ledger"]["last"] == told["ledger"]["reduced"] == EVENTS, f"{clock}: {told['ledger']}")
        kind = told["clocks"][0]["kind"]
        if clock == "monotonic":
            check(kind == "monotonic" and "tick_ns" not in told, f"{told['clocks']}")
        elif clock == "hybrid" and len(os.sched_getaffinity(0)) > 1 and kind != "monotonic":
            check(told["tick_ns"] == told["clocks"][0]["tick_ns"] == 4000, f"{told['clocks']}")
            check("hybrid, ticks of 4.00 \u00b5s" in done.stderr, done.stderr)
            check(" 0 ns" not in done.stderr, done.stderr)
        else:
            check("tick_ns" not in told, f"{told['clocks']}")
    bad = millrace(chain, "record", "--clock", "sundial", toy, 1, 0)
    check(bad.returncode == 2 and "tsc|hybrid|monotonic" in bad.stderr, f"{bad}")


def compares(chain, toy):
    done = millrace(chain, "record", "--compare", "--output", "compared", toy, COUNT)
    check(done.returncode == 0, f"{done}")
    check("times slower" in done.stderr, f"the slow-down: {done.stderr}")
    check(done.stderr.count("toy says hello") == 2, f"it ran twice: {done.stderr}")
    told = json.loads(report(chain, "--json", "compared"))
    check(told["run"]["slow_down"] > 0, f"{told['run']}")


def ends_by_a_signal(chain, toy):
    done = millrace(chain, "record", "--output", "killed", toy, COUNT, "kill")
    check(done.returncode == 128 + signal.SIGTERM, f"the signal shows in the status: {done}")
    check("Ledger" in done.stderr, f"what was seen is told: {done.stderr}")


def replaces_only_recordings(chain, toy):
    other = chain.folder / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("years of work")
    done = millrace(chain, "record", "--output", other, toy, 1)
    check(done.returncode == 2 and "thesis.tex" in done.stderr, f"{done}")
    check((other / "thesis.tex").read_text() == "years of work", "it is untouched")
    check(os.listdir(other) == ["thesis.tex"], "nothing was added")
    done = millrace(chain, "record", toy, 3)
    check(done.returncode == 0, f"{done}")
    entry = [row for row in json.loads(report(chain, "--json"))["entries"] if row["name"] == "serve"]
    check(entry[0]["count"] == 3, f"the new recording replaced the old one: {entry}")


def cannot_be_recorded(chain):
    plain = chain.folder / "plain"
    subprocess.run(["gcc", "-o", plain, HERE / "toy.c"], check=True)
    done = millrace(chain, "record", "--output", "none", plain)
    check(done.returncode == 2, f"{done}")
    check("pkg-config --cflags" in done.stderr and "pkg-config --libs millrace" in done.stderr, f"flags: {done.stderr}")
    check(done.stdout == "" and not (chain.folder / "none").exists(), "it did not run")
    done = millrace(chain, "record", "./no-such-program")
    check(done.returncode == 127 and "no-such-program" in done.stderr, f"{done}")
    done = millrace(chain, "record", "no-such-program-in-path")
    check(done.returncode == 127 and "PATH" in done.stderr, f"{done}")
    for name, text, hint in (("odd", "echo no first line\n", "begins with #!"), ("lost", "#!/no/such/shell\n", "interpreter")):
        (chain.folder / name).write_text(text)
        (chain.folder / name).chmod(0o755)
        done = millrace(chain, "record", "--output", "none", f"./{name}")
        check(done.returncode == 126 and hint in done.stderr and done.stderr.count("\n") == 1, f"{name}: {done}")
        check(not (chain.folder / "none").exists(), f"{name}: a recording of nothing is left")
    (chain.folder / "data").write_text("data")
    for name in ["./data", "/tmp"]:
        done = millrace(chain, "record", name)
        check(done.returncode == 126 and done.stderr.count("\n") == 1, f"{name}: {done}")


def mistakes_cost_no_recording(chain, toy):
    """What is wrong with the options, or where the recording is to go, is told before an earlier one gives way."""
    before = report(chain)
    globs = "a" * 9000
    for arguments, said in ((["--outer", globs], "--outer: longer"), (["--root", globs], "--root: longer"),
                            (["--endpoint", "nowhere"], "--endpoint: endpoint 'nowhere'"), (["--output", "a/b"], "--output: a/b: No such"),
                            (["--output", "data"], "--output: data: Not a directory"),
                            (["--output", "/proc/none"], "--output: /proc/none:")):
        done = millrace(chain, "record", *arguments, toy, 1)
        check(done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, f"{arguments}: {done}")
    check(report(chain) == before, "the earlier recording is not what it was")
    done = millrace(chain, "record", "--output", "none", toy, 1, TMPDIR="/no/such")
    check(done.returncode == 1 and "TMPDIR" in done.stderr and done.stderr.count("\n") == 1, f"{done}")
    check(not (chain.folder / "none").exists(), "a recording of nothing is left")


def preloads(chain):
    """Compiled with the hooks, not linked: record brings the library."""
    hooked = chain.folder / "hooked"
    subprocess.run(["gcc", "-O1", "-g", "-finstrument-functions", "-o", hooked, HERE / "toy.c"], check=True)
    if os.environ.get("MR_SANITIZE"):
        return  # a sanitizer's runtime must come first, and would have to be preloaded, too
    done = millrace(chain, "record", "--output", "preloaded", hooked, COUNT)
    check(done.returncode == 0, f"{done}")
    told = json.loads(report(chain, "--json", "preloaded"))
    check({row["name"]: row["calls"] for row in told["functions"]}["descend"] == 10 * COUNT, f"{told['functions']}")


def sends_to_an_endpoint(chain, toy):
    master = chain.master()
    worker = chain.worker(master.endpoint)
    done = millrace(chain, "record", "--endpoint", worker.endpoint, "--output", "not-made", toy, COUNT, 5)
    check(done.returncode == 5 and worker.endpoint in done.stderr, f"{done}")
    nobody = millrace(chain, "record", "--endpoint", "tcp://127.0.0.1:1", toy, 1)
    check("could not be sent to 127.0.0.1:1" in nobody.stderr and "sent to tcp://" not in nobody.stderr, f"{nobody}")
    check(not (chain.folder / "not-made").exists(), "no recording is left")
    chain.stop(worker)
    chain.stop(master)
    told = json.loads(report(chain, "--json", master.store))
    check(told["ledger"]["reduced"] == EVENTS, f"the master has it: {told['ledger']}")
    check("run" not in told, "a master's store knows of no run")


def names_ports_that_somebody_listens_at(chain):
    """Who does what an error says is to reach a master that was started without options."""
    defaults = {command: re.search(r"--listen ENDPOINT.*?default:\s+(tcp://[0-9.:]+)", millrace(chain, command, "--help").stdout, re.S).group(1)
                for command in ("master", "worker")}
    check(millrace(chain, "worker").stderr.rstrip().endswith(defaults["master"]), "--forward is missing")
    check(defaults["worker"] in millrace(chain, "worker", "--forward", "nowhere").stderr, "--forward has no port")


def test():
    with system.System() as chain:
        toy = system.compile_program(chain.folder / "toy", [HERE / "toy.c"])
        records(chain, toy)
        orders(chain)
        clocks(chain, toy)
        compares(chain, toy)
        ends_by_a_signal(chain, toy)
        replaces_only_recordings(chain, toy)
        cannot_be_recorded(chain)
        mistakes_cost_no_recording(chain, toy)
        preloads(chain)
        sends_to_an_endpoint(chain, toy)
        names_ports_that_somebody_listens_at(chain)
        done = millrace(chain, "report", "nowhere")
        check(done.returncode == 1 and "nowhere" in done.stderr, f"{done}")


if __name__ == "__main__":
    system.main(test)
