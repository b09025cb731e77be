# SPDX-License-Identifier: Apache-2.0
"""Whoever breaks the format is told why in one ERROR frame and one log line, and is cut off; a sender that keeps to it,
on the same worker at the same time, loses nothing."""
import json
import os
import re
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

EVENTS = 5_000_000
SEED = int(os.environ.get("MR_TEST_SEED", "1"))

# way, argument: what comes back
ANSWERS = [
    (["good"], ["WELCOME", "closed"]),
    (["close"], []),
    (["worker", "1"], ["ERROR 9"]),
    (["version"], ["ERROR 2", "closed"]),
    (["oversized"], ["WELCOME", "ERROR 3", "closed"]),
    (["checksum"], ["WELCOME", "ERROR 4", "closed"]),
    (["skip"], ["WELCOME", "ERROR", "closed"]),
    (["early"], ["ERROR 7", "closed"]),
    (["hello"], ["ERROR 1", "closed"]),
    (["dict"], ["WELCOME", "ERROR 1", "closed"]),
]


def raw(worker, *way):
    host, port = worker.ready["listen"].rsplit(":", 1)
    done = subprocess.run([system.BIN / "cli_raw", host, port, *way], capture_output=True, text=True, timeout=60,
                          check=False)
    check(done.returncode == 0, f"cli_raw {way}: {done}")
    return done.stdout.splitlines()


def answers(worker):
    for way, expected in ANSWERS:
        got = [line for line in raw(worker, *way) if line != "HEARTBEAT"]
        fits = len(got) >= len(expected) and all(line.startswith(part) for line, part in zip(got, expected))
        check(fits, f"{way}: {got}, not {expected}")


def storm(worker, stop):
    """Noise of all kinds until told to stop; counts in stop.count."""
    seed = SEED * 1000
    while not stop.is_set() or seed < SEED * 1000 + 60:
        seed += 1
        raw(worker, ["random", "noise", "truncated"][seed % 3], str(seed))
        raw(worker, ["checksum", "dict", "skip", "oversized", "hello"][seed % 5])


def stats_of(path):
    return json.loads(path.read_text())


def token(chain, master):
    secret = chain.folder / "token"
    secret.write_text("open sesame\n")
    worker = chain.worker(master.endpoint, "--token-file", str(secret), "--log-level", "info")
    check(raw(worker, "good")[0].startswith("ERROR 5"), "no token")
    check(raw(worker, "good", "open sesam")[0].startswith("ERROR 5"), "a wrong token")
    check(raw(worker, "good", "open sesame") == ["WELCOME", "closed"], "the right token")
    log = worker.log.read_text()
    check(log.count("cut off: ") == 2 and "token" in log, f"one line for each: {log}")
    chain.stop(worker)


def test():
    with system.System() as chain:
        print(f"MR_TEST_SEED={SEED}")
        master = chain.master()
        stats = chain.folder / "stats.json"
        worker = chain.worker(master.endpoint, "--stats-file", str(stats))
        answers(worker)
        stop = threading.Event()
        noise = threading.Thread(target=storm, args=(worker, stop))
        noise.start()
        sender = subprocess.run([system.BIN / "rss_sender", worker.endpoint, "0", str(EVENTS)], input="\n", text=True,
                                capture_output=True, timeout=120, check=False)
        stop.set()
        noise.join()
        check(sender.returncode == 0, f"the good sender: {sender}")
        events = int(sender.stdout.splitlines()[-1].split()[0])
        chain.stop(worker)
        told = stats_of(stats)
        reduced = told["counters"]["reduced"]
        check(reduced == events, f"the good sender sent {events}, reduced were {reduced}")
        check(told["connections"]["health_checks"] == 1, f"one health check: {told['connections']}")
        check(told["connections"]["refused"] >= 100, f"the others were refused: {told['connections']}")
        check(told["connections"]["open"] == 0, f"none is left: {told['connections']}")
        log = worker.log.read_text()
        lines = log.count("cut off: ") + sum(int(more) for more in re.findall(r"\(and (\d+) more like it\)", log))
        check(100 <= lines <= told["connections"]["refused"], f"{lines} lines for {told['connections']}")
        token(chain, master)
        ledger = master.get("/api/v1/ledger")
        chain.stop(master)
        print(f"{events:,} events through {told['connections']['refused']} refusals; ledger {json.dumps(ledger)[:200]}")


if __name__ == "__main__":
    system.main(test)
