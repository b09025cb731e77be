# SPDX-License-Identifier: Apache-2.0
"""A detach that is left out, as on a way out by error: each job is still in the trace of its own request, however often that happens."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

JOBS = 120


def children(row):
    return [(child["kind"], child["site"]["name"], child["call_tree"]) for child in row["tree"]["children"]]


def test():
    with system.System() as chain:
        program = system.compile_program(chain.folder / "missing", [system.SOURCE / "tests/system/join/missing.c"])
        master = chain.master("--join-timeout", "1s")
        worker = chain.worker(master.endpoint, "--outer", "main")
        check(chain.run([program], endpoint=worker.endpoint).returncode == 0, "the program")
        chain.stop(worker)
        rows = master.get("/api/v1/traces")
        check(rows["parts_waiting"] == 0, f"{rows['parts_waiting']} parts wait")
        check([children(row) for row in rows["traces"]] == [[("hand-off", "work", True)]], f"{[children(row) for row in rows['traces']]}")
        check(rows["traces"][0]["ok"] == JOBS, f"{rows['traces']}")
        ledger = master.get("/api/v1/ledger")["ledger"]
        check(ledger["balanced"] and ledger["lost"] == 0, f"{ledger}")
        chain.stop(master)


if __name__ == "__main__":
    system.main(test)
