# SPDX-License-Identifier: Apache-2.0
"""A call with very many different children, and limits that allow more than a frame holds: what cannot be told whole is told by path,
and with a part of its calls. No frame is lost for its size, and the worker goes on. (wide.c is a probe without a program.)"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

SECONDS = 120
SMALL = ("--max-frame", "64K")
CASES = {  # children, options, coverage of the trace
    "whole in a small frame": (3000, SMALL, "whole"),
    "calls past a small frame": (3000, (*SMALL, "--exemplar-bytes", "3M"), "whole"),
    "children past a small frame": (6000, SMALL, "paths"),
    "children past an item": (128000, ("--max-trace", "1000000"), "paths"),
}


def trace(children, options, coverage):
    with system.System() as chain:
        master = chain.master()
        stats = chain.folder / "worker.json"
        # A sanitizer's build is busy with the last frame for longer than its sender waits for the answer to its BYE.
        worker = chain.worker(master.endpoint, "--stats-file", str(stats), "--drain-timeout", "60s", *options)
        source = subprocess.run([system.BIN / "wide", worker.endpoint, str(children)], text=True, check=True,
                                env=chain.environment(), capture_output=True, timeout=SECONDS)
        sent = int(source.stdout)
        chain.stop(worker)
        counters = json.loads(stats.read_text())["counters"]
        check(counters["forward_too_large"] == 0, f"a frame was too large: {worker.log.read_text()}")
        check(counters["merge_unwritten"] == 0, counters)
        ledger = master.get("/api/v1/ledger")["ledger"]
        check(ledger["reduced"] == sent and ledger["balanced"] and ledger["lost"] == 0, ledger)
        entry = master.get("/api/v1/entries")["entries"][0]
        check(entry["traces"][coverage] == 1 and entry["count"] == 1, f"not in {coverage}: {entry}")
        check(entry["paths"] == 1 + children, entry)
        exemplar = master.get("/api/v1/exemplars")["exemplars"][0]
        check(exemplar["calls"] == 1 + children, exemplar)


def test():
    for name, case in CASES.items():
        print(name, *case)
        trace(*case)


if __name__ == "__main__":
    system.main(test)
