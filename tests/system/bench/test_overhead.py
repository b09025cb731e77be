# SPDX-License-Identifier: Apache-2.0
"""`millrace bench overhead`: it runs to its end, its results have the promised form, nothing is lost with policy block,
mistakes get one clear line, Ctrl-C and a full disk keep what there is. No time is asserted."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))
import system  # noqa: E402
from system import check  # noqa: E402

PHASES = ["none", "inactive", "collecting", "writing", "reconstruction", "reduction"]
SHORT = ["--calls", "2000", "--loops", "2"]


def bench(folder, *arguments, **variables):
    environment = system.bench_environment(**variables)
    return subprocess.run([system.MILLRACE, "bench", "overhead", *arguments], cwd=folder, env=environment, capture_output=True,
                          stdin=subprocess.DEVNULL, text=True, timeout=250, check=False)


def results(run):
    check(run.returncode == 0, f"ended with {run.returncode}: {run.stderr}")
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    for line in lines:
        check(line["bench"] == "overhead" and len(line["case"].split("/")) == 5, line)
        check(line["case"].split("/")[0] in PHASES and not line["partial"], line)
    return lines


def find(lines, case, metric, ratio_to=None):
    found = [line for line in lines if line["case"] == case and line["metric"] == metric
             and (ratio_to is None or line["ratio_to"] == ratio_to)]
    check(len(found) == 1, f"{len(found)} results {metric} of {case} in {sorted({line['case'] for line in lines})}")
    return found[0]


def case_of(phase, point="d10-t1-m0"):
    if phase == "none":
        return f"none/plain/none/none/{point}"
    if phase == "inactive":
        return f"inactive/hooks/none/none/{point}"
    return f"{phase}/hooks/tsc/block/{point}"


def check_phases(folder):
    lines = results(bench(folder, *SHORT, "--raw", "--json"))
    for phase in PHASES:
        case = case_of(phase)
        check(find(lines, case, "response_ns")["value"] > 0, case)
        tail = [find(lines, case, f"response_{name}")["value"] for name in ["q1", "median", "q3", "p99", "p99.9", "max"]]
        check(tail == sorted(tail), f"percentiles fall: {tail}")
        check(abs(find(lines, case, "response_ns_per_call")["value"] * 10 - find(lines, case, "response_ns")["value"]) < 1, case)
        if phase != "none":
            check(find(lines, case, "traces_per_second", "none")["ratio"] > 0, case)
    for phase in PHASES[2:]:
        check(find(lines, case_of(phase), "response_ns")["lost"] == 0, f"{phase}, policy block, and yet lost")
        find(lines, case_of(phase), "drained_traces_per_second")
    check(find(lines, case_of("none"), "response_ns")["lost"] is None, "nothing recorded has no account")
    for phase, step in zip(PHASES[1:], ["instrumentation", "collecting", "writing", "reconstruction", "reduction"]):
        find(lines, case_of(phase), f"overhead_ns_{step}")
    check(find(lines, case_of("reduction"), "traces_per_second", "collecting")["ratio"] > 0, "no ratio to collecting")
    check(find(lines, case_of("reduction"), "busy_seconds_reduce")["value"] > 0, "the worker reduces in no time")
    check(not [line for line in lines if line["case"] == case_of("reconstruction") and line["metric"] == "busy_seconds_reduce"],
          "phase reconstruction reduces")
    check(find(lines, case_of("reduction"), "peak_kib_master")["value"] > 0, "no memory")
    check_files(folder / "millrace.bench", lines)


def check_files(out, lines):
    for name in ["overhead.svg", "overhead-boxes.svg", "overhead-shares.svg"]:
        xml.etree.ElementTree.parse(out / name)
    text = (out / "overhead.md").read_text()
    check("| traces per second" in text and "| 95% CI +-" in text and "per: root call" in text, text)
    check(f"| {case_of('reduction')}" in text, text)
    environment = json.loads((out / "environment.json").read_text())
    check(environment["loops"] == 2 and environment["seeds"]["order"] > 0 and "-finstrument" in environment["flags_hooks"],
          environment)
    # Six cases, each with a raw file per loop of MooBench's name and columns.
    raw = sorted(out.glob("raw-*.csv"))
    check(len(raw) == 12 and raw[0].name == "raw-1-10-0.csv", raw)
    rows = raw[0].read_text().splitlines()
    check(len(rows) == 2000 and all(len(row.split(";")) == 4 for row in rows), rows[:3])
    yaml = (out / "results.yaml").read_text()
    check("kind: millrace" in yaml and "per: root-call" in yaml and "per: call" in yaml, yaml)
    list_of = {}
    for line in yaml.splitlines():
        if line.startswith("      \""):
            name, values = line.strip().split(": ")
            list_of.setdefault(name.strip('"'), []).append([float(value) for value in values.strip("[]").split(", ")])
    root, call = list_of[case_of("none")]
    check(len(root) == 8 and abs(root[0] - 10 * call[0]) < 1e-4 and root[7] <= root[3] <= root[4] <= root[5] <= root[6], root)
    seconds = sorted(int(row.split(";")[1]) for path in raw if path.name.endswith("-0.csv")
                     for row in path.read_text().splitlines()[1000:])
    check(abs(root[0] - sum(seconds) / len(seconds) / 1000) < 1e-4, "results.yaml is not the raw files' second halves")
    left = [path.name for path in out.iterdir() if path.name.startswith("scratch")]
    check(not left, f"left behind: {left}")
    check((out / "overhead.jsonl").read_text().count("\n") == len(lines), "overhead.jsonl is not what was printed")


def check_other_ways(folder):
    """Threads, depth, waiting, no times of single calls, another door, filters on threads of their own."""
    lines = results(bench(folder, *SHORT, "--phase", "none,writing,reduction", "--threads", "2", "--depth", "3",
                          "--method-time", "200ns", "--timing", "whole", "--door", "manual", "--placement", "threads", "--json"))
    case = "reduction/manual/tsc/block/d3-t2-m200"
    check(find(lines, case, "traces_per_second", "none")["lost"] == 0, "lost")
    check(not [line for line in lines if line["metric"] == "response_ns"], "times of calls that were not timed")
    lines = results(bench(folder, *SHORT, "--phase", "none,collecting", "--sweep", "depth,ring", "--json"))
    for point in ["d1-t1-m0", "d100-t1-m0"]:
        find(lines, case_of("none", point), "response_ns")
        check(find(lines, case_of("collecting", point), "response_ns")["lost"] == 0, point)
    find(lines, case_of("collecting", "d10-t1-m0-r16k"), "response_ns")


def check_clock(folder):
    """Each case ran with the clock in its name: the bench itself checks every run, a single caller's and several threads'."""
    if len(os.sched_getaffinity(0)) > 1:
        for more, point in [([], "d10-t1-m0"), (["--threads", "2"], "d10-t2-m0")]:
            lines = results(bench(folder, *SHORT, "--phase", "collecting,writing,reduction", "--clock", "all", "--json", *more))
            cases = {line["case"] for line in lines}
            check(cases == {f"{phase}/hooks/{clock}/block/{point}" for phase in ["collecting", "writing", "reduction"]
                            for clock in ["tsc", "hybrid", "monotonic"]}, f"not all were measured: {sorted(cases)}")
    # One processor has none for hybrid's ticker: a clear word, and tsc is measured nevertheless.
    one = {min(os.sched_getaffinity(0))}
    arguments = [system.MILLRACE, "bench", "overhead", *SHORT, "--phase", "collecting", "--json", "--clock"]
    for clocks, status in [("tsc,hybrid", 0), ("hybrid", 1)]:
        run = subprocess.run([*arguments, clocks], cwd=folder, env=system.bench_environment(), capture_output=True,
                             stdin=subprocess.DEVNULL, text=True, timeout=250, preexec_fn=lambda: os.sched_setaffinity(0, one), check=False)
        check(run.returncode == status and "clock hybrid: it needs two processors" in run.stderr, f"{run.returncode}, {run.stderr}")
        check({json.loads(line)["case"] for line in run.stdout.splitlines()} ==
              ({case_of("collecting")} if status == 0 else set()), run.stdout)


# A compiler whose programs may run on one processor, as they are told; the bench may on all.
COMPILER = """#!/bin/bash
case " $* " in
*" -c "* | *--version*) exec gcc "$@" ;;
*) exec gcc "$@" "$(dirname "$0")/one.c" ;;
esac
"""
ONE = """#define _GNU_SOURCE
#include <sched.h>
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    (void)pid;
    CPU_ZERO_S(size, set);
    CPU_SET_S(0, size, set);
    return 0;
}
"""


def check_other_clock(folder):
    """A probe that could not have its clock: its cases have no numbers, but its own word, and the command fails."""
    if len(os.sched_getaffinity(0)) < 2:
        return
    (folder / "one.c").write_text(ONE)
    (folder / "one-cc").write_text(COMPILER)
    (folder / "one-cc").chmod(0o755)
    run = bench(folder, *SHORT, "--phase", "none,collecting,writing", "--clock", "tsc,hybrid", "--json", "--out", "other",
                CC=str(folder / "one-cc"))
    check(run.returncode == 1 and "a probe used another clock than was asked for" in run.stderr, f"{run.returncode}, {run.stderr}")
    measured = {line["case"] for line in map(json.loads, run.stdout.splitlines())}
    check(measured == {case_of(phase) for phase in ["none", "collecting", "writing"]}, f"{sorted(measured)}")
    for phase in ["collecting", "writing"]:
        check(f"{phase}/hooks/hybrid/block/d10-t1-m0: clock hybrid was asked for, and the probe used tsc: millrace: clock hybrid needs "
              "a second processor" in run.stderr, run.stderr)


def check_link(folder):
    """A slow link needs root and a kernel that has it; else it is left out with a word."""
    run = bench(folder, *SHORT, "--phase", "writing", "--sweep", "link", "--json")
    lines = results(run)
    if "no slow link" not in run.stderr:
        check(find(lines, case_of("writing", "d10-t1-m0-500mbit"), "response_ns")["lost"] == 0, "lost")
    run = bench(folder, *SHORT, "--phase", "none", "--sweep", "link", "--json")
    check(results(run) and "sweep link: nothing is sent in the phases chosen; writing and reduction do" in run.stderr, run.stderr)


def check_self_check(folder):
    """Each phase has a verdict; how well it did is not a test's affair. What the fit records besides is no loss, and hides none."""
    run = bench(folder, "--self-check", "--calls", "20000", "--loops", "3", "--json", "--out", "checked")
    check(run.returncode in (0, 1), f"ended with {run.returncode}: {run.stderr}")
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    verdicts = {}
    for line in run.stderr.splitlines():
        if "100 ns added to each root call of " in line:
            case, words = line.split("each root call of ")[1].split(" are measured as ")
            verdicts[case] = words.split("): ")[1].split(":")[0]
    check([case.split("/")[0] for case in verdicts] == PHASES, f"a verdict for each phase: {run.stderr}")
    check(set(verdicts.values()) <= {"pass", "FAIL", "too noisy"}, verdicts)
    check((run.returncode == 0) == (set(verdicts.values()) == {"pass"}), f"{run.returncode}, {verdicts}")
    for case in verdicts:
        added = find(lines, case, "added_ns")
        check(added["low"] <= added["value"] <= added["high"], added)
        check(added["lost"] == (None if case.split("/")[0] in PHASES[:2] else 0), added)
    run = bench(folder, "--self-check", *SHORT, "--phase", "none,collecting", "--door", "manual", "--json", "--out", "checked")
    cases = {line["case"] for line in map(json.loads, run.stdout.splitlines()) if line["metric"] == "added_ns"}
    check(cases == {"none/plain-self-check/none/none/d10-t1-m0", "collecting/manual-self-check/tsc/block/d10-t1-m0"}, cases)


def check_compare(folder):
    for name in ["one", "other"]:
        results(bench(folder, *SHORT, "--loops", "3", "--phase", "none", "--out", name, "--json"))
    run = bench(folder, "--compare", "one,one")
    check(run.returncode == 0 and "1 of 1 cases agree" in run.stdout, f"a run is not itself: {run.stdout}")
    run = bench(folder, "--compare", "one,other")
    check(run.returncode in (0, 1) and "of 1 cases agree" in run.stdout, f"{run.returncode}, {run.stdout}")
    for text, word in [("one", "two folders"), ("one,nowhere", "nowhere is no folder of a run")]:
        run = bench(folder, "--compare", text)
        check(run.returncode == 2 and word in run.stderr, f"{run.returncode}, {run.stderr}")
    (folder / "broken").mkdir()
    (folder / "broken" / "samples.jsonl").write_text("{\n")
    run = bench(folder, "--compare", "other,broken")
    check(run.returncode == 2 and "samples.jsonl:1: no sample" in run.stderr, f"{run.returncode}, {run.stderr}")


def check_paper(folder):
    """The published numbers beside ours."""
    script = system.SOURCE / "bench" / "papers" / "kieker-high-throughput" / "run.sh"
    environment = system.bench_environment(MILLRACE=system.MILLRACE)
    run = subprocess.run([str(script), "paper", *SHORT, "--peer", "none", "--sweep", "none"], cwd=folder, env=environment,
                         capture_output=True, text=True, timeout=250, check=False)
    check(run.returncode == 0, f"{run.returncode}: {run.stderr}")
    text = (folder / "paper" / "kieker-high-throughput.md").read_text()
    for phase, published in zip(PHASES, ["2,688.0", "770.0", "136.5", "115.8", "116.9", "112.6"]):
        rows = [line.split(" | ") for line in text.splitlines() if line.startswith(f"| {phase} | {published} K")]
        check(len(rows) == 1 and rows[0][2].endswith(" K"), text)
    check("What differs:" in text and "reached." in text, text)
    xml.etree.ElementTree.parse(folder / "paper" / "kieker-high-throughput.svg")
    environment = json.loads((folder / "paper" / "environment.json").read_text())
    check(environment["placement"] == "threads", environment)
    run = bench(folder, "--compare", "one,paper")
    check("the runs differ in: placement" in run.stdout, f"{run.stdout} {run.stderr}")


def check_bad_input(folder):
    for arguments, text in [(["--phase", "redction"], "--phase: unknown value 'redction' (did you mean 'reduction'?)"),
                            (["--door", "hoks"], "--door: unknown value 'hoks' (did you mean 'hooks'?)"),
                            (["--peer", "kiker"], "--peer: unknown value 'kiker' (did you mean 'kieker'?)"),
                            (["--sweep", "depht"], "--sweep: unknown value 'depht' (did you mean 'depth'?)"),
                            (["--calls", "0"], "--calls"), (["--loops", "0"], "--loops"), (["--depth", "0"], "--depth"),
                            (["--counters", "page-fauls"], "--counters: page-fauls: no counter is called that: is page-faults meant?"),
                            (["--self-check", "--timing", "whole"], "--self-check needs the times of single root calls"),
                            (["--raw", "--timing", "whole"], "--raw needs the times of single root calls"),
                            (["--ring-size", "100"], "--ring-size: 100 is out of range (0, or 4K to 1G)"),
                            (["reduction"], "unexpected argument 'reduction'")]:
        run = bench(folder, *arguments)
        check(run.returncode == 2 and text in run.stderr, f"{arguments}: {run.returncode}, {run.stderr}")
    run = bench(folder, "--door", "none")
    check(run.returncode == 1 and "nothing is left to measure" in run.stderr, f"{run.returncode}, {run.stderr}")
    # Deeper than any address space: a clear word, not a crash.
    run = bench(folder, *SHORT, "--phase", "none", "--depth", "100000000")
    check(run.returncode == 1 and "use a smaller --depth" in run.stderr, f"{run.returncode}, {run.stderr}")


def check_missing_peers(folder):
    """On a machine that has a compiler and nothing else: each peer is left out with a word, the rest is measured."""
    tools = folder / "tools"
    tools.mkdir()
    for name in ["gcc", "as", "ld", "pkg-config", "git"]:
        if shutil.which(name):
            (tools / name).symlink_to(shutil.which(name))
    run = bench(folder, *SHORT, "--phase", "none", "--peer", "all", "--json", PATH=str(tools))
    find(results(run), case_of("none"), "response_ns")
    for word in ["uftrace: not installed here", "lttng: not installed here", "xray-fdr: not installed here",
                 "kieker: no JDK here", "opentelemetry: no JDK here"]:
        check(word in run.stderr, run.stderr)


def check_peers(folder):
    """What is installed here; whatever it is, it has made a case or a word. The ones in Java: test_java_peers.py."""
    run = bench(folder, *SHORT, "--phase", "none", "--peer", "uftrace,lttng", "--json")
    lines = results(run)
    for name in ["uftrace", "lttng"]:
        cases = {line["case"] for line in lines if line["case"].startswith(f"writing/{name}/")}
        check(len(cases) == 1 or f"{name}: " in run.stderr or f"writing/{name}/" in run.stderr, f"{name}: {run.stderr}")
        for case in cases:
            check(find(lines, case, "response_ns")["value"] > 0, case)
            used = json.loads((folder / "millrace.bench" / "environment.json").read_text())["rivals"][name]
            check(name in used["version"] and name in used["words"] and used["cflags"], f"{name} is not described: {used}")


def check_interrupt(folder):
    out = folder / "interrupted"
    process = subprocess.Popen([system.MILLRACE, "bench", "overhead", *SHORT, "--loops", "1000", "--phase", "none,reduction",
                                "--out", str(out), "--json"], cwd=folder, env=system.bench_environment(),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        samples = out / "samples.jsonl"
        system.wait_until(lambda: samples.exists() and samples.read_text().count("\n") >= 3, 60, "three runs")
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=100)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    check(process.returncode == 130, f"ended with {process.returncode}: {errors}")
    lines = [json.loads(line) for line in output.splitlines()]
    check(lines and all(line["partial"] for line in lines), "not labelled as partial")
    check("partial: true" in (out / "results.yaml").read_text(), "results.yaml is not labelled")
    for name in ["overhead.md", "overhead.svg", "overhead-boxes.svg", "overhead-shares.svg"]:
        check("INTERRUPTED" in (out / name).read_text(), f"{name} is not labelled")
    check(json.loads((out / "environment.json").read_text())["partial"], "environment.json is not labelled")
    check(not [path for path in out.iterdir() if path.name.startswith("scratch")], "scratch is left")


def check_full_disk(folder):
    """On a file system that fills up while raw files are written; needs root to mount one."""
    disk = folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(disk)], capture_output=True, check=False)
    if mounted.returncode != 0:
        print("no tmpfs can be mounted here: a full disk is not tested")
        return
    try:
        run = bench(folder, "--calls", "60000", "--loops", "1000", "--phase", "none", "--raw", "--out", str(disk / "out"))
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    check(run.returncode == 1 and "No space left on device" in run.stderr, f"{run.returncode}, {run.stderr}")
    check("/disk/out" in run.stderr or "durations" in run.stderr, f"no place is named: {run.stderr}")


def test():
    with system.System() as place:
        check_bad_input(place.folder)
        check_phases(place.folder)
        check_other_ways(place.folder)
        check_clock(place.folder)
        check_other_clock(place.folder)
        check_link(place.folder)
        check_self_check(place.folder)
        check_compare(place.folder)
        check_paper(place.folder)
        check_missing_peers(place.folder)
        check_peers(place.folder)
        check_interrupt(place.folder)
        check_full_disk(place.folder)


if __name__ == "__main__":
    system.main(test)
