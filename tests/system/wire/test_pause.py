# SPDX-License-Identifier: Apache-2.0
"""A worker on this host that pauses: what a program makes meanwhile waits in the probe's outbox, and nothing is lost of it, whatever
the policy, where it finds room there. (It is nearly four times what the program's ring holds, which lasts for 0.2 s of a writer
that is not run, as on a busy machine; for twice that in a sanitized build.) With `block`, a thread that waited for a part of the
pause would lose events to the time-out.
"""
import os
import signal
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import wire as lib  # pylint: disable=wrong-import-position
from wire import check, system  # pylint: disable=wrong-import-position

CALLS_PER_MS, LENGTH_MS = 150 if os.environ.get("MR_SANITIZE") else 300, 2500  # 4.8 MB/s
PAUSE_S = 0.7, 1.5  # 3.8 MB


def pause(process):
    for after, what in zip(PAUSE_S, (signal.SIGSTOP, signal.SIGCONT)):
        timer = threading.Timer(after, process.send_signal, (what,))
        timer.daemon = True
        timer.start()


def run(policy):
    with system.System() as setup:
        master = setup.master()
        worker = setup.worker(master.endpoint)
        program = lib.build(setup)
        pause(worker.process)
        done = setup.run([program, "pace", str(CALLS_PER_MS), str(LENGTH_MS)], endpoint=worker.endpoint,
                         MILLRACE_POLICY=policy, MILLRACE_BLOCK_TIMEOUT="100ms", MILLRACE_RING_SIZE="1MiB")
        print(policy, lib.link_of(done))
        setup.stop(worker)
        setup.stop(master)
        report = lib.report(master.store)
        lib.check_ledger(report["ledger"])
        functions = {row["name"]: row["ok"] for row in report["functions"]}
        check(functions["leaf"] == CALLS_PER_MS * LENGTH_MS, f"{functions}")


def test():
    run("drop")
    run("block")


if __name__ == "__main__":
    system.main(test)
