# SPDX-License-Identifier: Apache-2.0
"""--group-by and --shapes from the worker's options to the master's answers, through two levels: the same three requests (a a b,
a b, b a) of a program on two hosts, as entry points, shapes, their trees and exemplars, under each of the six settings."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

HOSTS = ["alpha", "beta"]
# Of one host: {structure: traces}; an item is a name and its repeat, None where the shape does not tell it.
SHAPES = {
    "exact": {(("a", 2), ("b", 1)): 1, (("a", 1), ("b", 1)): 1, (("b", 1), ("a", 1)): 1},
    "folded": {(("a", None), ("b", None)): 2, (("b", None), ("a", None)): 1},
    "set": {frozenset({("a", None), ("b", None)}): 3},
}
# Traces of one host whose shape says everything: the others' shape is that of more than one order or number.
WHOLE = {"exact": 3, "folded": 2, "set": 0}


def structure(tree, exactness):
    check(tree["exactness"] == exactness and tree["site"]["name"] == "request", f"tree {tree}")
    items = [(child["site"]["name"], child["repeat"]) for child in tree["children"]]
    return frozenset(items) if exactness == "set" else tuple(items)


def check_answers(master, exactness, hosts):
    """`hosts`: those that entry points are told apart by; [None]: they are not."""
    per_host = len(HOSTS) // len(hosts)
    entries = master.get("/api/v1/entries")["entries"]
    check(sorted((row["name"], row["host"], row["count"]) for row in entries) ==
          [("request", host, 3 * per_host) for host in hosts], f"entry points {entries}")
    coverage = master.get("/api/v1/entries")["coverage"]["traces"]
    check(coverage["whole"] == len(HOSTS) * WHOLE[exactness] and coverage["whole"] + coverage["folded"] == 6, f"{coverage}")
    shapes = master.get("/api/v1/shapes")["shapes"]
    check({row["host"] for row in shapes} == set(hosts) and len(shapes) == len(hosts) * len(SHAPES[exactness]), f"{shapes}")
    found = {}
    for shape_id in {row["id"] for row in shapes}:
        answer = master.get("/api/v1/shapes/" + shape_id)
        check(sorted(str(row["host"]) for row in answer["scopes"]) == [str(host) for host in hosts], f"scopes of {answer}")
        counts = {row["traces"] for row in answer["scopes"]}
        check(len(counts) == 1, f"the hosts did the same: {answer['scopes']}")
        found[structure(answer["tree"], exactness)] = counts.pop() // per_host
    check(found == SHAPES[exactness], f"shapes {found}")
    kept = master.get("/api/v1/exemplars")["exemplars"]
    check({row["shape"] for row in kept} == {row["id"] for row in shapes}, "every shape has an exemplar")
    paths = {(row["depth"], row["site"]["name"]): 0 for row in master.get("/api/v1/paths?form=list")["paths"]}
    check({(0, "request"), (1, "a"), (1, "b")} <= set(paths), f"paths {paths}")


def check_report(master, hosts):
    """The entry points of two hosts are told apart."""
    run = subprocess.run([system.MILLRACE, "report", str(master.store)], capture_output=True, text=True, check=False)
    rows = [line.split() for line in run.stdout.splitlines() if " request " in line and " program" in line]
    check(sorted(row[-1] for row in rows) == [host or "program" for host in hosts], f"report: {run.stdout}{run.stderr}")


def run_setting(exactness, group_by, hosts):
    with system.System() as chain:
        program = system.compile_program(chain.folder / "program", [system.SOURCE / "tests/system/worker/grouping.c"])
        master = chain.master()
        upper = chain.worker(master.endpoint, level=2)
        worker = chain.worker(upper.endpoint, "--shapes", exactness, "--group-by", group_by, "--root", "request")
        for host in HOSTS:
            run = chain.run([program], endpoint=worker.endpoint, HOST_NAME=host)
            check(run.returncode == 0, f"program: {run.stderr}")
        chain.stop(worker)
        chain.stop(upper)
        system.wait_until(lambda: master.get("/api/v1/ledger")["ledger"]["balanced"], 30, "a balanced ledger")
        check(sorted(row["host"] for row in master.get("/api/v1/ledger")["sources"]) == HOSTS, "the sources tell their hosts")
        check_answers(master, exactness, hosts)
        check_report(master, hosts)


def test():
    for exactness in SHAPES:
        run_setting(exactness, "signature", [None])
        run_setting(exactness, "signature,host", HOSTS)


if __name__ == "__main__":
    system.main(test)
