# SPDX-License-Identifier: Apache-2.0
"""`millrace bench probe`: it runs to its end, its results have the promised form, mistakes get one clear line, and
Ctrl-C keeps what there is. No time is asserted."""
import json
import pathlib
import signal
import subprocess
import sys
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))
import system  # noqa: E402
from system import check  # noqa: E402

KEYS = {"bench": str, "case": str, "metric": str, "value": (int, float), "unit": str, "ratio_to": (str, type(None)),
        "ratio": (int, float, type(None)), "lost": (int, type(None)), "loops": int, "discarded": int, "partial": bool}
SHORT = ["--quick", "--loops", "2", "--slices", "2", "--slice", "100us", "--rival", "none"]


def bench(folder, *arguments, **variables):
    environment = system.bench_environment(**variables)
    return subprocess.run([system.MILLRACE, "bench", *arguments], cwd=folder, env=environment, capture_output=True,
                          stdin=subprocess.DEVNULL, text=True, timeout=200, check=False)


def read_lines(text):
    lines = [json.loads(line) for line in text.splitlines()]
    check(lines, "no results")
    for line in lines:
        for key, kind in KEYS.items():
            check(key in line and isinstance(line[key], kind), f"{key} of {line}")
        check(line["bench"] == "probe", line)
        check(len(line["case"].split("/")) == 4, line)
    return lines


def find(lines, case, metric):
    found = [line for line in lines if line["case"] == case and line["metric"] == metric]
    check(len(found) == 1, f"{len(found)} results {metric} of {case}")
    return found[0]


def check_results(folder):
    run = bench(folder, "probe", *SHORT, "--door", "manual,hooks", "--workload", "tiny,rec10", "--json")
    check(run.returncode == 0, f"ended with {run.returncode}: {run.stderr}")
    lines = read_lines(run.stdout)
    for door in ["manual", "hooks"]:
        for workload in ["tiny", "rec10"]:
            on = find(lines, f"{door}/tsc/{workload}/tcp", "ns_per_call")
            check(on["unit"] == "ns" and on["ratio_to"] == "floor" and on["ratio"] > 0, on)
            check(on["lost"] == 0, f"policy block, and yet lost: {on}")
            find(lines, f"{door}/tsc/{workload}/off", "ns_per_call")
            added = find(lines, f"{door}/tsc/{workload}/tcp", "added_ns_per_call")
            check(added["ratio_to"] == "plain", added)
            check(find(lines, f"{door}/tsc/{workload}/tcp", "bytes_per_event")["value"] > 0, "no bytes")
            tail = [find(lines, f"{door}/tsc/{workload}/tcp", name)["value"]
                    for name in ["p50", "p90", "p99", "p99.9", "p99.99", "max"]]
            check(tail == sorted(tail), f"percentiles fall: {tail}")
    check(find(lines, "floor/tsc/stores/memory", "ns_per_call")["lost"] is None, "the floor has no account")
    check(find(lines, "plain/none/tiny/off", "ns_per_call")["lost"] is None, "plain has no account")
    out = folder / "millrace.bench"
    check((out / "probe.jsonl").read_text() == run.stdout, "probe.jsonl is not what was printed")
    xml.etree.ElementTree.parse(out / "probe.svg")
    check("| hooks/tsc/tiny/tcp" in (out / "probe.md").read_text(), "probe.md has no row of hooks")
    environment = json.loads((out / "environment.json").read_text())
    check(environment["loops"] == 2 and environment["machine"]["cpus"] > 0, environment)
    samples = [json.loads(line) for line in (out / "samples.jsonl").read_text().splitlines()]
    check(len([sample for sample in samples if sample["case"] == "hooks/tsc/tiny/tcp"]) >= 2, "samples are missing")
    left = sorted(path.name for path in out.iterdir())
    check(left == ["environment.json", "probe.jsonl", "probe.md", "probe.svg", "programs", "samples.jsonl"], f"left behind: {left}")


def check_table(folder):
    run = bench(folder, "probe", *SHORT, "--door", "hooks", "--workload", "tiny", "--sink", "off,control,recorder,discard,worker")
    check(run.returncode == 0, f"ended with {run.returncode}: {run.stderr}")
    rows = {line.split()[0]: line.split() for line in run.stdout.splitlines() if "/" in line.split(" ")[0]}
    check("hooks/tsc/tiny/worker" in rows and rows["hooks/tsc/tiny/worker"][-1] == "0", run.stdout)
    check("hooks/tsc/tiny/off" in rows and "plain/none/tiny/off" in rows, run.stdout)
    check("hooks/tsc/tiny/control" in rows, run.stdout)
    check("hooks/tsc/tiny/discard" in rows and rows["hooks/tsc/tiny/discard"][-1] == "0", run.stdout)
    check(rows["hooks/tsc/tiny/recorder"][-1] == "-", "a flight recorder has no account of loss")
    check("Medians of 2 loops" in run.stdout, run.stdout)


def check_self_check(folder):
    """That it runs and tells; how well it did is not a test's affair."""
    run = bench(folder, "probe", *SHORT, "--self-check", "--json")
    check(run.returncode in (0, 1), f"ended with {run.returncode}: {run.stderr}")
    check("100 ns added to each call are measured as" in run.stderr, run.stderr)
    added = find(read_lines(run.stdout), "self-check/none/tiny/off", "added_ns_per_call")
    check(added["ratio_to"] == "plain" and added["value"] > 10, added)


def check_start(folder):
    run = bench(folder, "probe", *SHORT, "--door", "patchable,hooks", "--workload", "start", "--sites", "1000", "--json")
    check("start: compiling 3 programs" in run.stderr, f"what is compiled is not told: {run.stderr}")
    check(": loop 1 of " in run.stderr, f"no progress is told: {run.stderr}")
    check(run.returncode == 0, f"ended with {run.returncode}: {run.stderr}")
    lines = read_lines(run.stdout)
    check(find(lines, "hooks/tsc/start/tcp", "start_ms")["value"] > 0, "no start_ms")
    check(find(lines, "hooks/tsc/start/off", "loaded_bytes")["ratio"] > 1, "hooks take no space")
    check(find(lines, "plain/none/start/off", "private_kib")["value"] > 0, "no memory")


def check_stamps(folder):
    """Clock tsc tells the time of each call within what lies between two reads of the counter, most of the time."""
    run = bench(folder, "probe", *SHORT, "--door", "hooks,patchable", "--clock", "tsc", "--workload", "stamps", "--json")
    check(run.returncode == 0, f"ended with {run.returncode}: {run.stderr}")
    lines = read_lines(run.stdout)
    for door in ["hooks"] + (["patchable"] if "patchable" not in run.stderr else []):
        error = find(lines, f"{door}/tsc/stamps/tcp", "error_p50")
        check(error["lost"] == 0, error)
        # The counter is read by the program first: no recorded time is earlier, but for what a processor reorders.
        check(find(lines, f"{door}/tsc/stamps/tcp", "error_max")["value"] < 100, "a time is early")


def check_compact(folder):
    run = bench(folder, "probe", *SHORT, "--door", "hooks", "--workload", "tiny", "--sink", "tcp,compact", "--json")
    check(run.returncode == 0, f"ended with {run.returncode}: {run.stderr}")
    lines = read_lines(run.stdout)
    words = find(lines, "hooks/tsc/tiny/tcp", "bytes_per_event")["value"]
    compact = find(lines, "hooks/tsc/tiny/compact", "bytes_per_event")["value"]
    check(compact < words / 2, f"compact {compact} B an event, words {words}")


def check_bad_input(folder):
    mistakes = [
        (["probe", "--door", "hoks"], "--door: unknown value 'hoks' (did you mean 'hooks'?)"),
        (["probe", "--workload", "tinny"], "--workload: unknown value 'tinny' (did you mean 'tiny'?)"),
        (["probe", "--rival", "gprof"], "--rival: unknown value 'gprof' (there are: uftrace, lttng, xray-fdr, all, none)"),
        (["probe", "--sink", "tpc"], "--sink: unknown value 'tpc' (did you mean 'tcp'?)"),
        (["probe", "--threads", "0"], "--threads: '0' is not a number from 1 to 64"),
        (["probe", "--quick", "--threads", "65"], "--threads: '65' is not a number from 1 to 64"),
        (["probe", "--workload", "none"], "--workload: choose at least one"),
        (["probe", "tiny"], "unexpected argument 'tiny'"),
        (["prob"], "unknown command 'prob' (did you mean 'probe'?)"),
    ]
    for arguments, text in mistakes:
        run = bench(folder, *arguments)
        check(run.returncode == 2 and text in run.stderr and run.stderr.count("\n") == 1,
              f"{arguments}: {run.returncode}, {run.stderr}")
    for arguments in [["probe", "--loops", "0"], ["probe", "--loops", "x"], ["probe", "--quik"]]:
        run = bench(folder, *arguments)
        check(run.returncode == 2 and run.stderr, f"{arguments}: {run.returncode}, {run.stderr}")
    run = bench(folder, "probe", "--quick", CC="no-such-compiler")
    check(run.returncode == 1 and "cannot run 'no-such-compiler'" in run.stderr, f"{run.returncode}, {run.stderr}")
    run = bench(folder, "probe", "--quick", "--out", "/proc/nowhere/x")
    check(run.returncode == 1 and "--out: cannot make /proc/nowhere" in run.stderr, f"{run.returncode}, {run.stderr}")
    check(bench(folder).returncode == 2 and "probe" in bench(folder, "--help").stdout, "no help")


def check_interrupt(folder, number):
    """Ctrl-C, or the end of the terminal, once the first loops are done: what was measured is told, and labelled; nothing else is left."""
    out = folder / f"interrupted-{number}"
    process = subprocess.Popen([system.MILLRACE, "bench", "probe", *SHORT, "--loops", "1000", "--door", "none",
                                "--workload", "tiny", "--sink", "off", "--out", str(out), "--json"],
                               cwd=folder, env=system.bench_environment(), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    try:
        samples = out / "samples.jsonl"
        system.wait_until(lambda: samples.exists() and samples.read_text().count("\n") >= 3, 60, "three runs")
        process.send_signal(number)
        output, errors = process.communicate(timeout=100)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    check(process.returncode == 130, f"ended with {process.returncode}: {errors}")
    lines = read_lines(output)
    check(all(line["partial"] for line in lines), "partial results are not labelled")
    check("INTERRUPTED" in (out / "probe.md").read_text(), "the table does not say so")
    check(not list(out.glob("scratch.*")), "its scratch folder is left")


def test():
    with system.System() as place:
        check_bad_input(place.folder)
        check_results(place.folder)
        check_table(place.folder)
        check_self_check(place.folder)
        check_start(place.folder)
        check_stamps(place.folder)
        check_compact(place.folder)
        for number in (signal.SIGINT, signal.SIGHUP):
            check_interrupt(place.folder, number)


if __name__ == "__main__":
    system.main(test)
