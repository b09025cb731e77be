# SPDX-License-Identifier: Apache-2.0
"""All rings stay under MILLRACE_MEMORY whatever threads do, every event is counted, and no event waits for a page."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from recorded import Subject, check, read
from system import System, main

MIB = 1 << 20
TABLES = 2 * MIB  # of the recorder: header, modules, names, places of rings


def shared_bytes(subject):
    with open(f"/proc/{subject.pid}/status", encoding="ascii") as status:
        values = dict(line.split(":", 1) for line in status)
    return sum(int(values[name].split()[0]) for name in ("RssShmem", "RssFile")) * 1024


def in_bounds(subject, sums, memory):
    check(sums["bytes"] <= memory + TABLES, f"the file takes {sums['bytes']} bytes, ceiling {memory}")
    check(shared_bytes(subject) <= memory + TABLES + 8 * MIB, f"resident: {shared_bytes(subject)}")


def ten_thousand_short_threads(system):
    subject = Subject(system, "short", 10000, 50, MILLRACE_MEMORY="8MiB")
    streams, sums = read(subject.files()[0])
    in_bounds(subject, sums, 8 * MIB)
    check(sums["events"] + sums["lost"] + sums["before"] + sums["budget"] == 10000 * 100, sums)
    check(sums["budget"] == 0 and sums["lost"] == 0, sums)
    # The last ones are whole: half of the ceiling is rings of their own.
    newest = sorted(streams, key=lambda stream: stream["stream"])[-10:]
    check([stream["stream"] for stream in newest] == list(range(9991, 10001)), newest)
    check(all(stream["ended"] and stream["events"] == 100 for stream in streams), streams)
    subject.kill()


def a_thousand_live_threads(system):
    subject = Subject(system, "live", 1000, 3000)
    streams, sums = read(subject.files()[0])
    in_bounds(subject, sums, 64 * MIB)
    check(sums["events"] + sums["lost"] + sums["budget"] == 1000 * 6000, sums)
    check(sums["before"] == 0 and len(streams) > 750, sums)
    check(sums["budget"] == (1000 - len(streams)) * 6000, sums)
    subject.kill()


def first_events_meet_no_page_fault(system):
    for variables in ({}, {"MILLRACE_POLICY": "drop", "MILLRACE_ENDPOINT": "tcp://127.0.0.1:1", "MILLRACE_EXIT_TIMEOUT": "1ms"}):
        subject = Subject(system, "faults", ready=False, **variables)
        output, _ = subject.process.communicate(timeout=60)
        faults = int(output.split()[1])
        check(faults < 30, f"{faults} page faults in a ring of 64 pages, {variables}")


def test():
    for case in (ten_thousand_short_threads, a_thousand_live_threads, first_events_meet_no_page_fault):
        with System() as system:
            case(system)
        print(case.__name__, flush=True)


if __name__ == "__main__":
    main(test)
