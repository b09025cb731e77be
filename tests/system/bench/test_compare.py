# SPDX-License-Identifier: Apache-2.0
"""`millrace bench overhead --compare` on runs that were made up: what agrees, what differs, what is too noisy to tell."""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))
import system  # noqa: E402
from system import check  # noqa: E402

CASE = "reduction/hooks/tsc/block/d10-t1-m0"
QUIET = [1000, 1004, 996, 1002, 998, 1001, 999, 1003, 997, 1000]
WILD = [1000, 1500, 700, 1300, 800, 1600, 600, 1400, 900, 1100]


def leave(folder, series, others=0.01, **environment):
    """A run's folder; `series`: a case's rates by loop, or lines of samples.jsonl."""
    folder.mkdir()
    lines = []
    for case, rates in series.items():
        lines += [{"case": case, "loop": loop, "calls": 1000, **({} if rate is None else {"traces_per_second": rate})}
                  for loop, rate in enumerate(rates)]
    (folder / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "environment.json").write_text(json.dumps({"others": others, "calls": 1000, **environment}))


def compare(folder, one, other):
    return subprocess.run([system.MILLRACE, "bench", "overhead", "--compare", f"{one},{other}"], cwd=folder, capture_output=True,
                          stdin=subprocess.DEVNULL, text=True, timeout=60, check=False)


def expect(folder, name, one, other, verdict, others=0.01):
    """One case in both runs: its verdict, the counts below, the exit status."""
    leave(folder / f"{name}-1", {CASE: one})
    leave(folder / f"{name}-2", {CASE: other}, others=others)
    run = compare(folder, f"{name}-1", f"{name}-2")
    rows = [line for line in run.stdout.splitlines() if line.startswith(CASE)]
    check(len(rows) == 1 and verdict in rows[0], f"{name}: wanted '{verdict}': {run.stdout} {run.stderr}")
    counts = {"agrees": "1 of 1 cases agree", "DIFFERS": "0 of 1 cases agree", "too noisy": "1 are too noisy to tell"}
    check(counts[verdict.split(":")[0]] in run.stdout, f"{name}: {run.stdout}")
    check(run.returncode == (0 if verdict == "agrees" else 1), f"{name}: {run.returncode}")
    return run.stdout


def scaled(rates, factor):
    return [rate * factor for rate in rates]


def check_verdicts(folder):
    expect(folder, "same", QUIET, QUIET[::-1], "agrees")
    # The interval excludes 1, but 2 % are near enough.
    expect(folder, "near", QUIET, scaled(QUIET, 1.02), "agrees")
    expect(folder, "slower", QUIET, scaled(QUIET, 1.1), "DIFFERS")
    expect(folder, "faster", QUIET, scaled(QUIET, 0.9), "DIFFERS")
    # Far apart, but one run's loops are, too.
    expect(folder, "wild", scaled(QUIET, 2), WILD, "too noisy")
    # 1 is in the interval only because nearly everything is.
    expect(folder, "wide", QUIET, WILD, "too noisy")
    # The machine was shared: a difference may be the others'. What agrees nevertheless agrees.
    text = expect(folder, "shared", QUIET, scaled(QUIET, 1.1), "too noisy", others=0.4)
    check("shared-2: the machine was too noisy: others took 40 % of the processors" in text, text)
    expect(folder, "shared-same", QUIET, QUIET[::-1], "agrees", others=0.4)


def check_drift(folder):
    """On one machine: what differs as much as none does, in which nothing is traced, says nothing of the tracer."""
    none = "none/plain/none/none/d10-t1-m0"
    for name, drift, verdict in [("drift", 1.1, "too noisy: none, where nothing is traced, differs as much"), ("still", 1, "DIFFERS"),
                                 ("back", 1 / 1.1, "DIFFERS")]:
        leave(folder / f"{name}-1", {none: QUIET, CASE: QUIET})
        leave(folder / f"{name}-2", {none: scaled(QUIET, drift), CASE: scaled(QUIET, 1.1)})
        run = compare(folder, f"{name}-1", f"{name}-2")
        row, = [line for line in run.stdout.splitlines() if line.startswith(CASE)]
        check(row.endswith(verdict), f"{name}: wanted '{verdict}': {run.stdout}")
        check(run.returncode == 1, f"{name}: {run.returncode}")


def check_loops(folder):
    expect(folder, "few", QUIET[:2], scaled(QUIET[:2], 1.1), "too noisy: too few loops")
    expect(folder, "three", QUIET[:3], scaled(QUIET[:3], 1.1), "DIFFERS")
    # Loops that failed are no loops; what is left is compared.
    expect(folder, "failed", QUIET, [None] * 10, "too noisy: too few loops")
    expect(folder, "holes", [None] + QUIET[1:], scaled(QUIET[:9], 1.1) + [None], "DIFFERS")


def check_discarded(folder):
    """A loop that was made again has two lines; the first was disturbed."""
    leave(folder / "again-1", {CASE: QUIET})
    leave(folder / "again-2", {CASE: QUIET})
    text = (folder / "again-2" / "samples.jsonl").read_text()
    disturbed = [json.dumps({**json.loads(line), "traces_per_second": 1}) for line in text.splitlines()]
    (folder / "again-2" / "samples.jsonl").write_text("".join(f"{a}\n{b}\n" for a, b in zip(disturbed, text.splitlines())))
    run = compare(folder, "again-1", "again-2")
    check(run.returncode == 0 and "10 loops)  agrees" in run.stdout, run.stdout)


def check_several(folder):
    """All cases must agree; what is in one run alone, and what was run otherwise, is told."""
    leave(folder / "several-1", {"a": QUIET, "b": QUIET, "c": QUIET, "old": QUIET}, policy="block")
    leave(folder / "several-2", {"new": QUIET, "c": scaled(QUIET, 1.2), "b": WILD, "a": QUIET}, policy="drop")
    run = compare(folder, "several-1", "several-2")
    check(run.returncode == 1 and "1 of 3 cases agree" in run.stdout, run.stdout)
    check("1 differ, 1 are too noisy to tell: use a quieter machine, or more loops" in run.stdout, run.stdout)
    told = [line.split() for line in run.stdout.splitlines() if "only in the" in line]
    check(told == [["old", "only", "in", "the", "first"], ["new", "only", "in", "the", "second"]], run.stdout)
    check("the runs differ in: policy\n" in run.stdout and "the runs differ in: calls" not in run.stdout, run.stdout)
    leave(folder / "other", {"d": QUIET})
    run = compare(folder, "several-1", "other")
    check(run.returncode == 1 and "no case is in both" in run.stdout, run.stdout)


def check_machine(folder):
    """On another processor or kernel all is slower or faster: what is compared is what each case is of none in its own run."""
    none, clang, java = [f"none/{system}/none/none/d10-t1-m0" for system in ["plain", "plain-clang", "java"]]
    ring, kieker = CASE + "-r64k", "writing/kieker/monotonic/block/d10-t1-m0"
    xray = "writing/xray-fdr/tsc/none/d10-t1-m0"
    base = {none: scaled(QUIET, 10), clang: scaled(QUIET, 20), java: scaled(QUIET, 5)}
    here = {"processor": "A", "processor_model": "family 25, model 1, stepping 1", "kernel": "Linux 6", "governor": "x"}
    leave(folder / "here", {**base, CASE: QUIET, ring: QUIET, xray: QUIET, kieker: QUIET}, machine=here)
    # Twice as fast, each by its own program; what is slower than that differs.
    fast = {**{case: scaled(rates, 2) for case, rates in base.items()}, CASE: scaled(QUIET, 2), ring: scaled(QUIET, 1.6),
            xray: scaled(QUIET, 2), kieker: scaled(QUIET, 2)}
    for name, there in [("processor", {**here, "processor": "B"}), ("kernel", {**here, "kernel": "Linux 7"}),
                        ("processor_model", {**here, "processor_model": "family 25, model 17, stepping 1"})]:
        leave(folder / name, fast, machine=there)
        run = compare(folder, "here", name)
        verdicts = {line.split()[0]: line for line in run.stdout.splitlines() if "loops)" in line}
        check(sorted(verdicts) == sorted([CASE, ring, xray, kieker]), f"none itself is compared: {run.stdout}")
        for case, line in verdicts.items():
            check(("DIFFERS" if case == ring else "agrees") in line and line.split()[1] == ("1.250" if case == ring else "1.000"), line)
        check(f"the machines differ: {name} " in run.stdout and "so no absolute values are compared" in run.stdout, run.stdout)
        check(run.returncode == 1 and "3 of 4 cases agree" in run.stdout, run.stdout)
    # By its own run's none: one that was slow there made the loops slow as well.
    slow = [1, 0.5, 1, 0.8, 1, 1, 0.7, 1, 1, 0.6]
    leave(folder / "uneven", {none: [20 * a * b for a, b in zip(QUIET, slow)], CASE: [2 * a * b for a, b in zip(QUIET, slow)]},
          machine={**here, "processor": "B"})
    run = compare(folder, "here", "uneven")
    check(run.returncode == 0 and "1 of 1 cases agree" in run.stdout, run.stdout)
    # What has no none of its own cannot be compared, and that is told; with nothing left there is no agreement.
    leave(folder / "bare", {CASE: scaled(QUIET, 2)}, machine={**here, "processor": "B"})
    run = compare(folder, "here", "bare")
    check(run.returncode == 1 and f"not compared: no {none} in the second" in run.stdout, run.stdout)
    check("no case is in both that can be compared" in run.stdout, run.stdout)
    # The same processor and kernel: as they are, whatever else of the machine is another.
    leave(folder / "governor", {case: scaled(rates, 2) for case, rates in base.items()}, machine={**here, "governor": "y"})
    run = compare(folder, "here", "governor")
    check("the machines differ" not in run.stdout and "the runs differ in: machine" in run.stdout, run.stdout)
    check(run.stdout.count("DIFFERS") == 3, run.stdout)


def check_bad_input(folder):
    leave(folder / "good", {CASE: QUIET})
    for name, text, word in [("no-json", "{\n", "samples.jsonl:1: no sample"), ("empty", "", "holds no sample"),
                             ("no-loop", '{"case":"a","traces_per_second":1}\n', "samples.jsonl:1: no sample"),
                             ("far", '{"case":"a","loop":1000000,"traces_per_second":1}\n', "samples.jsonl:1: no sample"),
                             ("below", '{"case":"a","loop":-1,"traces_per_second":1}\n', "samples.jsonl:1: no sample")]:
        (folder / name).mkdir()
        (folder / name / "samples.jsonl").write_text(text)
        run = compare(folder, "good", name)
        check(run.returncode == 2 and word in run.stderr, f"{name}: {run.returncode}, {run.stderr}")


def test():
    with system.System() as place:
        check_verdicts(place.folder)
        check_drift(place.folder)
        check_loops(place.folder)
        check_discarded(place.folder)
        check_several(place.folder)
        check_machine(place.folder)
        check_bad_input(place.folder)


if __name__ == "__main__":
    system.main(test)
