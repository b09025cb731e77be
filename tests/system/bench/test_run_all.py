# SPDX-License-Identifier: Apache-2.0
"""`bench/run_all.sh`: two cheap parts are really run; with a command that was made up, what fails, is in doubt, is interrupted,
and what is told of it; mistakes get one clear line. No time is asserted."""
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))
import system  # noqa: E402
from system import check  # noqa: E402

SCRIPT = str(system.SOURCE / "bench" / "run_all.sh")
# A command that fails in `pipeline`, cannot tell in the self-check of `overhead`, measures wrong in that of `probe`, and rests in
# `chain` until it is interrupted (by itself alone: a shell goes on when its child outlives the interrupt, as touch would).
FAKE = """#!/bin/bash
echo "ran: $*"
case "$*" in
*pipeline*) echo "no such luck" >&2; exit 3 ;;
*probe*--self-check*) echo "100 ns ...: FAIL: more than 5 % off" >&2; exit 1 ;;
*--self-check*) echo "100 ns ...: too noisy" >&2; exit 1 ;;
*chain*) : >chain-runs; exec sleep 100 ;;
esac
"""


def run_all(folder, *arguments, millrace=system.MILLRACE):
    return subprocess.run([SCRIPT, *arguments], cwd=folder, env=system.bench_environment(MILLRACE=str(millrace)), capture_output=True,
                          stdin=subprocess.DEVNULL, text=True, timeout=250, check=False)


def parts_of(run):
    """The parts that were begun, in order; each line also tells of what is left."""
    return re.findall(r"^\[\d+/\d+\] ([a-z-]+): .*; about \d+ (?:s|min) left$", run.stdout, re.MULTILINE)


def check_list(folder):
    run = run_all(folder, "--list", millrace="/nowhere")
    names = [line.split()[0] for line in run.stdout.splitlines()[1:]]
    check(run.returncode == 0 and len(names) == len(set(names)) and {"probe", "overhead", "agreement", "paper"} <= set(names), run.stdout)
    check(all(re.match(r"[a-z-]+ +\d+ +\d+  \S", line) for line in run.stdout.splitlines()[1:]), run.stdout)
    check(not (folder / "millrace.bench").exists(), "a list leaves files")
    return names


def check_mistakes(folder):
    for arguments, text in [(["--only", "chain,prob"], "--only: there is no part 'prob' (there are: self-check "),
                            (["--only", "probe-self"], "--only: there is no part 'probe-self'"),
                            (["--only=chain, probe"], "--only: there is no part ' probe'"),
                            (["--only", "chain,,probe"], "--only: there is no part ''"),
                            (["--only", "@"], "there is no part '@'"),
                            (["--only", ""], "--only: name at least one part"), (["--only"], "--only wants NAME,..."),
                            (["--quik"], "unknown option '--quik'"), (["a", "b"], "one folder only, not 'b' too")]:
        run = run_all(folder, *arguments)
        check(run.returncode == 2 and text in run.stderr and run.stdout == "", f"{arguments}: {run.returncode}, {run.stderr}")
        check("usage: bench/run_all.sh" in run.stderr, run.stderr)
    check(list(folder.iterdir()) == [], "a mistake leaves files")
    run = run_all(folder, "--only", "chain", millrace="/nowhere/millrace")
    check(run.returncode == 1 and "no /nowhere/millrace: cmake --preset release" in run.stderr, run.stderr)


def check_failures(folder, names):
    """What fails is told at its place and at the end, and all that follows is done nevertheless."""
    fake = folder / "fake"
    fake.write_text(FAKE)
    fake.chmod(0o755)
    # Named in another order, and twice: each once, in the order of the list.
    run = run_all(folder, "--only", "probe,pipeline,self-check,pipeline,overhead-hybrid", "--quick", "out", millrace=fake)
    check(parts_of(run) == [name for name in names if name in ["probe", "pipeline", "self-check", "overhead-hybrid"]], run.stdout)
    check(run.returncode == 1 and "pipeline: FAILED with 3" in run.stdout and "see out/pipeline.err" in run.stdout, run.stdout)
    check("4 parts in" in run.stdout and "2 done, 1 in doubt, 1 failed" in run.stdout, run.stdout)
    check(run.stdout.endswith("in doubt (too noisy, or --quick): self-check\nfailed: pipeline\n"), run.stdout)
    check((folder / "out" / "pipeline.err").read_text() == "no such luck\n" and "no such luck" in run.stderr, "what it said is lost")
    ran = (folder / "out" / "overhead-hybrid.log").read_text()
    check(ran == "ran: bench overhead --quick --out out/overhead-hybrid --clock hybrid\n", ran)
    # Noise is a doubt, however long the run was; what is measured wrong is one only where the run was short.
    run = run_all(folder, "--only=probe-self-check", "--quick", "short", millrace=fake)
    check(run.returncode == 0 and "0 done, 1 in doubt, 0 failed" in run.stdout, run.stdout)
    run = run_all(folder, "--only=probe-self-check,self-check", "whole", millrace=fake)
    check(run.returncode == 1 and "0 done, 1 in doubt, 1 failed" in run.stdout, run.stdout)
    check(run.stdout.endswith("in doubt (too noisy, or --quick): self-check\nfailed: probe-self-check\n"), run.stdout)
    # What is left out is not run.
    check("--quick" not in (folder / "whole" / "self-check.log").read_text(), "--quick was not asked for")
    check(not (folder / "whole" / "probe.log").exists(), "what was not chosen was run")
    run = run_all(folder, "--only", "probe,overhead-whole", "good", millrace=fake)
    check(run.returncode == 0 and run.stdout.endswith("all of it is in good\n"), run.stdout)


def check_interrupt(folder):
    process = subprocess.Popen([SCRIPT, "--only", "chain,paper", "--quick", "interrupted"], cwd=folder, text=True, start_new_session=True,
                               env=system.bench_environment(MILLRACE=str(folder / "fake")), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        system.wait_until((folder / "chain-runs").exists, 60, "the part to be interrupted")
        os.killpg(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    check(process.returncode == 130 and "interrupted; what was measured is in interrupted" in errors, f"{process.returncode}: {errors}")
    check("paper" not in output, f"it went on: {output}")


def check_real(folder):
    """Two cheap parts, with the real command."""
    run = run_all(folder, "--quick", "--only", "overhead-whole,probe-self-check", "real")
    check(run.returncode == 0 and parts_of(run) == ["probe-self-check", "overhead-whole"], f"{run.returncode}: {run.stdout} {run.stderr}")
    check("0 failed" in run.stdout and "all of it is in real" in run.stdout, run.stdout)
    check("traces per second" in (folder / "real" / "overhead-whole.log").read_text(), "no table")
    check((folder / "real" / "overhead-whole" / "overhead.jsonl").exists(), "no results")
    check("100 ns added to each call are measured as" in (folder / "real" / "probe-self-check.err").read_text(), "no verdict")


def test():
    with system.System() as place:
        check_mistakes(place.folder)
        names = check_list(place.folder)
        check_failures(place.folder, names)
        check_interrupt(place.folder)
        check_real(place.folder)


if __name__ == "__main__":
    system.main(test)
