# SPDX-License-Identifier: Apache-2.0
"""A thread that calls several functions under one attach: they stand beside each other below who handed over, and however many equal
ones there are, the trace is of one joined shape; at the API and in the report."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

ITEMS_MAX, ROUNDS = 30, 3
ONE = ("open_job", "item", "close_job")


def children(row):
    """(name, kind, whether a run) of each part below the root, which are no deeper."""
    check(row["tree"]["site"]["name"] == "hand_over" and not any(child["children"] for child in row["tree"]["children"]), f"{row}")
    return tuple((child["site"]["name"], child["kind"], child["run"]) for child in row["tree"]["children"])


def test():
    with system.System() as chain:
        program = system.compile_program(chain.folder / "batch", [system.SOURCE / "tests/system/join/batch.c"])
        master = chain.master()
        worker = chain.worker(master.endpoint, "--outer", "main")
        check(chain.run([program], endpoint=worker.endpoint).returncode == 0, "the program")
        chain.stop(worker)
        rows = {children(row): row for row in master.get("/api/v1/traces")["traces"]}
        expected = {tuple(zip(ONE, ("hand-off", "next", "next"), (False, is_run, False))): count
                    for is_run, count in ((False, ROUNDS), (True, ROUNDS * (ITEMS_MAX - 1)))}
        check({parts: row["ok"] for parts, row in rows.items()} == expected, f"{list(rows)}")
        for parts, row in rows.items():
            items = ROUNDS * (sum(range(2, ITEMS_MAX + 1)) if parts[1][2] else 1)
            check([child["edge"]["count"] for child in row["tree"]["children"]] == [row["ok"], items, row["ok"]], f"{row}")
            check(all(child["edge"]["clamped"] == 0 for child in row["tree"]["children"]), f"{row}")
        chain.stop(master)
        text = subprocess.run([system.MILLRACE, "report", master.store], capture_output=True, text=True, check=True).stdout
        check("  hand-off > open_job" in text and "  next > item *" in text and "  next > close_job" in text, f"{text}")


if __name__ == "__main__":
    system.main(test)
