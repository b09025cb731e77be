# SPDX-License-Identifier: Apache-2.0
"""What was received ends with its detach, and with the next request, though no call tree was called for it: later call trees are not
taken into its trace. So it is where an attach of before has no detach."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

REQUESTS = 30


def children(row):
    return [(child["kind"], child["site"]["name"], child["call_tree"]) for child in row["tree"]["children"]]


def edges(node):
    """Of all below the node: (kind, whether a call tree is at its end, how many)."""
    for child in node["children"]:
        yield child["kind"], child["call_tree"], child["edge"]["count"]
        yield from edges(child)


def run(chain, program, *arguments):
    """Its traces, and the unmatched detaches."""
    master = chain.master("--join-timeout", "1s", store=chain.folder / "-".join(["store", *arguments]))
    worker = chain.worker(master.endpoint, "--outer", "main")
    check(chain.run([program, *arguments], endpoint=worker.endpoint).returncode == 0, "the program")
    chain.stop(worker)
    rows = master.get("/api/v1/traces")["traces"]
    ledger = master.get("/api/v1/ledger")["ledger"]
    check(ledger["balanced"] and ledger["lost"] == 0, f"{ledger}")
    metrics = master.get_text("/metrics")
    chain.stop(master)
    return rows, metrics


def test():
    with system.System() as chain:
        program = system.compile_program(chain.folder / "received", [system.SOURCE / "tests/system/join/received.c"])
        rows, metrics = run(chain, program)
        check([children(row) for row in rows] == [[("message", "main", False)]], f"{[children(row) for row in rows]}")
        check(rows[0]["ok"] == REQUESTS, f"{rows}")
        check("reduce_links_unmatched" not in metrics, "a detach without an attach was counted")
        rows, metrics = run(chain, program, "undetached")
        ends = [edge for row in rows for edge in edges(row["tree"])]
        check(sum(count for kind, _, count in ends if kind == "message") == REQUESTS, f"{ends}")
        check(not any(is_call_tree for _, is_call_tree, _ in ends), f"later call trees are in these traces: {ends}")
        check("reduce_links_unmatched" in metrics, "no detach without an attach was counted")


if __name__ == "__main__":
    system.main(test)
