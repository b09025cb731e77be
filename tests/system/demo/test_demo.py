# SPDX-License-Identifier: Apache-2.0
"""./demo.sh, smaller: its JSON has every key that it promises, and the numbers agree with each other; it works from another
folder, and twice; the page is there; and whether it ends by itself or is ended, nothing of it is left, neither process
nor file."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

DEMO = system.SOURCE / "demo.sh"
SIZE = "2"
PROGRAMS = "2"
SECONDS = 400
PROMISED = ["events_written", "events_dropped", "traces", "shapes", "paths", "ledger_balanced", "seconds"]


def start(chain, *options):
    """In a folder of its own, with a private TMPDIR, by which its processes are recognised."""
    return subprocess.Popen([DEMO, "--build", system.BUILD, "--size", SIZE, "--programs", PROGRAMS, *options],
                            cwd=chain.folder, env=chain.environment(TMPDIR=chain.folder), stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check_nothing_left(chain, what):
    files = list(chain.folder.iterdir())
    check(not files, f"{what} left {files}")
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue  # ended meanwhile, or not ours
        check(str(chain.folder).encode() not in command, f"{what} left process {process.name} running: {command[:200]}")


def check_numbers(result):
    for key in PROMISED:
        check(key in result, f"{key} is missing")
    check(result["ledger_balanced"] is True, "the ledger does not balance")
    check(result["events_dropped"] == 0, f"{result['events_dropped']} events were dropped")
    check(result["events_written"] == result["events_reduced"], "not everything written was reduced")
    check(result["events_written"] == 2 * result["calls"], "a call is not two events")
    check(result["events_written"] > (10_000_000 if result["workload"] == "sqlite" else 10_000), "too few events")
    check(0 < result["shapes"] <= result["traces"] <= result["calls"], "shapes, traces and calls do not fit")
    check(result["paths"] >= result["functions"] > 0, "paths and functions do not fit")
    check(result["seconds"] > 0 and result["plain_seconds"] > 0, "no times")


def run_to_the_end(chain):
    demo = start(chain, "--once", "--json")
    out, words = demo.communicate(timeout=SECONDS)
    check(demo.returncode == 0, f"demo.sh ended with {demo.returncode}: {words[-3000:]}")
    check(len(out.splitlines()) == 1, f"not exactly one line on stdout: {out}")
    result = json.loads(out)
    check_numbers(result)
    check("balanced" in words and "coverage" in words, "the words on stderr lack the ledger or the coverage")
    check_nothing_left(chain, "the demo")
    print(out.strip())
    return result


def end_by_signal(chain, number, at, status, delay_ms=0):
    """The signal comes when the demo has said `at`, or a little later."""
    demo, page = start(chain), None
    try:
        for line in demo.stdout:
            if line.startswith("page: "):
                page = line.split()[1]
            if line.startswith(at):
                break
        with urllib.request.urlopen(page, timeout=30) as answer:
            check(answer.status == 200 and b"<html" in answer.read().lower(), f"{page} is no page")
        time.sleep(delay_ms / 1000) # at another step of its start: what is tested is that none of them loses a signal
        demo.send_signal(number)
        out, words = demo.communicate(timeout=SECONDS)
        check(demo.returncode == status, f"ended by signal {number} with {demo.returncode}: {out}{words}")
    finally:
        if demo.poll() is None:
            demo.terminate()
            demo.wait()
    check_nothing_left(chain, f"the demo ended by signal {number}")
    print(f"signal {number} after '{at}': status {demo.returncode}, nothing left")


def test():
    with system.System() as chain:
        first, second = run_to_the_end(chain), run_to_the_end(chain)
        if first["workload"] == "sqlite": # the bookstore's threads share their queue as they come
            for key in ("events_written", "traces", "calls", "functions"):
                check(first[key] == second[key], f"{key} differs between two runs: {first[key]}, {second[key]}")
        for delay_ms in range(0, 6, 2):
            for number in (signal.SIGINT, signal.SIGTERM):
                end_by_signal(chain, number, "traced: ", 128 + number, delay_ms)
        end_by_signal(chain, signal.SIGINT, "the page stays up", 0)


if __name__ == "__main__":
    system.main(test)
