# SPDX-License-Identifier: Apache-2.0
"""What was received ends with its detach, and with the next request, though no call tree was called for it: later call trees are not
taken into its trace."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

REQUESTS = 30


def children(row):
    return [(child["kind"], child["site"]["name"], child["call_tree"]) for child in row["tree"]["children"]]


def test():
    with system.System() as chain:
        program = system.compile_program(chain.folder / "received", [system.SOURCE / "tests/system/join/received.c"])
        master = chain.master("--join-timeout", "1s")
        worker = chain.worker(master.endpoint, "--outer", "main")
        check(chain.run([program], endpoint=worker.endpoint).returncode == 0, "the program")
        chain.stop(worker)
        rows = master.get("/api/v1/traces")["traces"]
        check([children(row) for row in rows] == [[("message", "main", False)]], f"{[children(row) for row in rows]}")
        check(rows[0]["ok"] == REQUESTS, f"{rows}")
        metrics = master.get_text("/metrics")
        check("reduce_links_unmatched" not in metrics, "a detach without an attach was counted")
        ledger = master.get("/api/v1/ledger")["ledger"]
        check(ledger["balanced"] and ledger["lost"] == 0, f"{ledger}")
        chain.stop(master)


if __name__ == "__main__":
    system.main(test)
