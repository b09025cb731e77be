# SPDX-License-Identifier: Apache-2.0
"""Single traces of a real program, through two levels of workers: the first and the slowest trace of each shape are kept with
their calls, a trace larger than the budget with its longest calls and the rest counted; shapes that recur have statistics per
path; failed traces and calls say so; and all of it is there after the master was killed."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

LOOKUPS, ORDERS, EXPORT_CALLS, BUDGET = 200, 20, 3 * 100_000 + 2, 24 * 1024 // 48
ROOTS = "lookup,place_order,export_rows"


def exemplars(master, query=""):
    return master.get("/api/v1/exemplars" + query)["exemplars"]


def of_entry(master, name):
    return [row for row in exemplars(master) if row["site"]["name"] == name]


def names(trace):
    """Its calls as (depth, name)."""
    return [(call["depth"], trace["sites"][call["site"]]["name"]) for call in trace["tree"]]


def check_nesting(trace):
    """Each call lies in the one around it, behind the one before it; with what was left out, no longer than it."""
    stack = []
    for call in trace["tree"]:
        del stack[call["depth"]:]
        end = call["start_ns"] + call["total_ns"]
        if stack:
            outer = stack[-1]
            check(outer["from"] <= call["start_ns"] and end <= outer["end"], f"{trace['id']}: {call} is not in its caller")
            outer["from"] = end
            outer["left"] -= call["total_ns"]
            check(outer["left"] >= 0, f"{trace['id']}: calls in one took longer than it")
        stack.append({"from": call["start_ns"], "end": end, "left": call["total_ns"] - call.get("elided_ns", 0)})


def check_whole(master, row, tree):
    trace = master.get("/api/v1/exemplars/" + row["id"])
    check(names(trace) == tree, f"{row['site']['name']}: calls {names(trace)}")
    check(row["elided_calls"] == 0 and row["calls"] == len(tree), f"calls of {row}")
    check(trace["tree"][0]["total_ns"] == row["total_ns"], "the root takes as long as the trace")
    check_nesting(trace)
    return trace


def check_lookups(master):
    rows = of_entry(master, "lookup")
    tree = [(0, "lookup"), (1, "read_index"), (1, "wait_for_lock"), (1, "read_row")]
    check(len(rows) == 2 and rows[0]["why"] == ["slowest"] and rows[1]["why"] == ["first"], f"lookups: {rows}")
    slowest = check_whole(master, rows[0], tree)
    first = check_whole(master, rows[1], tree)
    check(slowest["tree"][2]["total_ns"] >= 40e6, f"the slowest waits for the lock: {slowest['tree']}")
    check(first["start_ns"] < slowest["start_ns"] and first["shape"] == slowest["shape"], "first and slowest")
    check(all(row["status"] == "ok" for row in rows), "lookups are ok")
    by_shape = {row["id"] for row in exemplars(master, "?shape=" + rows[0]["shape"])}
    check(by_shape == {row["id"] for row in rows}, f"by shape: {by_shape}")


def check_orders(master):
    rows = of_entry(master, "place_order")
    failed = [row for row in rows if row["status"] == "failed"]
    check(len(failed) == 1 and failed[0]["why"] == ["first", "slowest"], f"failed orders: {rows}")
    trace = check_whole(master, failed[0], [(0, "place_order"), (1, "check_stock"), (2, "read_index")])
    check([call["status"] for call in trace["tree"]] == ["failed", "ok", "ok"], f"statuses of {trace['tree']}")


def check_export(master):
    rows = of_entry(master, "export_rows")
    check(len(rows) == 1 and rows[0]["why"] == ["first", "slowest"], f"export: {rows}")
    trace = master.get("/api/v1/exemplars/" + rows[0]["id"])
    kept = len(trace["tree"])
    check(kept == BUDGET, f"{kept} calls are kept")
    check(trace["calls"] == EXPORT_CALLS and trace["elided_calls"] == EXPORT_CALLS - kept, f"calls of {rows[0]}")
    check(sum(1 + call.get("elided_calls", 0) for call in trace["tree"]) == EXPORT_CALLS, "all calls are told or counted")
    check(trace["elided_ns"] > 0, "the time of what was left out is told")
    waits = [call for call in trace["tree"] if trace["sites"][call["site"]]["name"] == "wait_for_lock"]
    check(len(waits) == 1 and waits[0]["total_ns"] >= 20e6, f"the longest call is there: {waits}")
    check_nesting(trace)


def check_shapes(master):
    """Of each shape all traces but the first are counted by path: the credit is large enough."""
    shapes = {(row["site"]["name"], row["traces"]): row for row in master.get("/api/v1/shapes")["shapes"]}
    lookup = master.get("/api/v1/shapes/" + shapes["lookup", LOOKUPS]["id"])["scopes"][0]
    check(lookup["counted_traces"] == LOOKUPS - 1, f"counted: {lookup['counted_traces']}")
    paths = {(path["depth"], path["site"]["name"]): path for path in lookup["paths"]}
    check(set(paths) == {(0, "lookup"), (1, "read_index"), (1, "wait_for_lock"), (1, "read_row")}, f"paths {list(paths)}")
    check(all(path["ok"] == LOOKUPS - 1 and path["failed"] == 0 for path in paths.values()), "each is called once per trace")
    wait = paths[1, "wait_for_lock"]
    check(wait["total_max_ns"] >= 40e6 > wait["total_min_ns"], f"the one that waited is among them: {wait}")
    check(paths[0, "lookup"]["self_ns"] + sum(path["total_ns"] for key, path in paths.items() if key[0] == 1) ==
          paths[0, "lookup"]["total_ns"], "self and children make the total")
    order = master.get("/api/v1/shapes/" + shapes["place_order", ORDERS - 1]["id"])["scopes"][0]
    check({path["site"]["name"]: path["ok"] for path in order["paths"]}["read_row"] == ORDERS - 2, "orders that are ok")


def check_status(master):
    entries = {row["name"]: row for row in master.get("/api/v1/entries")["entries"]}
    check(entries["place_order"]["failed"] == 1 and entries["lookup"]["failed"] == 0, f"failed traces: {entries}")
    functions = {row["name"]: row for row in master.get("/api/v1/functions")["functions"]}
    check(functions["place_order"]["failed"] == 1 and functions["check_stock"]["failed"] == 0, "failed calls")
    paths = {row["site"]["name"]: row for row in master.get("/api/v1/paths?form=list")["paths"] if row["depth"] == 0}
    check(paths["place_order"]["failed"] == 1 and paths["place_order"]["ok"] == ORDERS - 1, f"failed of a path: {paths}")
    failed = [row for row in master.get("/api/v1/shapes")["shapes"] if row["failed"]]
    check(len(failed) == 1 and failed[0]["site"]["name"] == "place_order" and failed[0]["ok"] == 0, f"failed shapes {failed}")


def check_report(master):
    run = subprocess.run([system.MILLRACE, "report", str(master.store), "--json"], capture_output=True, text=True, check=False)
    check(run.returncode == 0, f"report: {run.stderr}")
    slowest = json.loads(run.stdout)["slowest"]
    kept = exemplars(master)[0]
    check(slowest["id"] == kept["id"] and slowest["time_ns"] == kept["total_ns"], f"the slowest of the report: {slowest}")
    longest = {call["name"]: call["self_ns"] for call in slowest["longest"]}  # a busy machine makes others longer still
    check(longest.get("wait_for_lock", 0) >= 20_000_000, f"what took longest in it: {slowest}")
    run = subprocess.run([system.MILLRACE, "report", str(master.store)], capture_output=True, text=True, check=False)
    check(f"Slowest   {slowest['name']}, " in run.stdout, f"report: {run.stdout}")


def check_bad_questions(master):
    for path, code in (("/api/v1/exemplars/" + "0" * 32, 404), ("/api/v1/exemplars/xyz", 400),
                       ("/api/v1/exemplars?shape=1", 400), ("/api/v1/exemplars?colour=red", 400)):
        check(master.status(path) == code, f"{path} is answered with {master.status(path)}, not {code}")


def test():
    with system.System() as chain:
        program = chain.folder / "program"
        system.compile_program(program, [system.SOURCE / "tests/system/exemplars/program.c"])
        master = chain.master()
        upper = chain.worker(master.endpoint, "--level", "2")
        worker = chain.worker(upper.endpoint, "--root", ROOTS, "--shape-calls", "1000000000")
        run = chain.run([program], endpoint=worker.endpoint)
        check(run.returncode == 0, f"program: {run.stderr}")
        chain.stop(worker)
        chain.stop(upper)
        system.wait_until(lambda: master.get("/api/v1/ledger")["ledger"]["balanced"], 30, "a balanced ledger")
        for part in (check_lookups, check_orders, check_export, check_shapes, check_status, check_bad_questions):
            part(master)
        check_report(master)
        before = exemplars(master)
        master.process.kill()
        master.process.wait()
        again = chain.master()
        check(exemplars(again) == before, "the same exemplars after the master was killed")
        check_export(again)
        check_shapes(again)


if __name__ == "__main__":
    system.main(test)
