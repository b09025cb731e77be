# SPDX-License-Identifier: Apache-2.0
"""Sites are switched without pause under 8 threads and a signal of 20 kHz (stress.c), and every event is checked.

Firm functions stay on: each of their calls arrives, with enter and exit, nested as they ran. Loose ones are switched: an
exit may be missing, or an enter, at most one per open call and switch. Nothing else arrives. PATCH_STRESS_SECONDS makes it
longer."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "probe"))
import test_programs as probe  # pylint: disable=wrong-import-position
from test_programs import check  # pylint: disable=wrong-import-position

PROGRAM = probe.BIN / "patch_stress"
SECONDS = int(os.environ.get("PATCH_STRESS_SECONDS", "8"))
FIRST_MODULE = 0x1000000  # docs/FORMAT.md section 6.2
DEPTH = 7  # of one loose function on a stack
PER_ROUND = {"firm_round": 1, "firm_leaf": 5, "firm_node": 2, "firm_all": 2}


def symbols():
    """Site number -> name, of the functions of stress_calls.c."""
    run = subprocess.run(["nm", PROGRAM], capture_output=True, text=True, check=True)
    base = None
    names = {}
    for line in run.stdout.splitlines():
        words = line.split()
        if len(words) == 3 and words[2] == "__ehdr_start":
            base = int(words[0], 16)
        if len(words) == 3 and words[1] in "tT" and words[2].startswith(("firm_", "loose_")):
            names[int(words[0], 16)] = words[2]
    check(names, "nm shows no functions")
    base = base or 0
    return {FIRST_MODULE + address - base: name for address, name in names.items()}


def account(text):
    calls = {}
    for call in probe.lines_of(text, "call"):
        calls[call["site"]] = call
    return calls


def check_calls(names, calls, made):
    for site, call in calls.items():
        check(site in names, f"events of a site that is none: {call}")
    threads, switches = made["threads"], made["switches"]
    for site, name in names.items():
        call = calls.get(site, {"enters": 0, "exits": 0, "open": 0, "no_exit": 0, "no_enter": 0})
        print(f"{name}: {call['enters']} enters, {call['exits']} exits, {call['no_exit']} + {call['open']} without exit, "
              f"{call['no_enter']} without enter")
        if name.startswith("firm_"):
            expected = made["signals"] if name == "firm_signal" else PER_ROUND[name] * made["rounds"]
            check(call["enters"] == call["exits"] == expected and not call["open"] and not call["no_exit"] and
                  not call["no_enter"], f"{name}: {expected} calls, arrived: {call}")
            continue
        limit = (threads + 1) * DEPTH * switches
        check(call["no_exit"] + call["open"] <= limit and call["no_enter"] <= limit, f"{name}: {call}, {made}")
        check(call["enters"] > 0 and call["exits"] > 0, f"{name} was never on")


def test(clock):
    print(f"clock {clock}")
    names = symbols()
    loose = ",".join(hex(site) for site, name in names.items() if name.startswith("loose_"))
    with probe.Sink("--calls", loose) as sink:
        run = subprocess.run([PROGRAM, str(SECONDS)], capture_output=True, text=True, timeout=SECONDS + 300, check=False,
                             env=dict(os.environ, MILLRACE_ENDPOINT=sink.endpoint, MILLRACE_POLICY="block",
                                      MILLRACE_BLOCK_TIMEOUT="60s", MILLRACE_RING_SIZE="1MiB", MILLRACE_CLOCK=clock))
        print(run.stdout + run.stderr)
        check(run.returncode == 0 and not run.stderr, f"patch_stress ended with {run.returncode}")
        sources = sink.finish()
    made = probe.lines_of(run.stdout, "stress")[0]
    check(made["foreign"] == 0 and made["unclear"] == 0 and made["sites"] == len(names), f"sites: {made}, {names}")
    check(made["switches"] > 10 and made["signals"] > 0, f"too little was done: {made}")
    check(sum(sources[0][reason] for reason in probe.LOSSES) == 0, f"lost: {sources[0]}")
    check_calls(names, account(sink.account), made)


if __name__ == "__main__":
    try:
        test("tsc")
        if len(os.sched_getaffinity(0)) > 1:
            test("hybrid")
    except probe.Failure as failure:
        print("FAILED:", failure)
        sys.exit(1)
