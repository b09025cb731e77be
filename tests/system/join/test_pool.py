# SPDX-License-Identifier: Apache-2.0
"""A thread pool behind a queue: every request becomes one trace of known structure, whichever lane its threads are on, and the
time in the queue is an edge of its own. What was seen is in the store, and in `millrace report`."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

REQUESTS = 300
FAN_OUT = 2
DELAY_US = 2000


def names(node):
    """name(kind:child...), with * for runs."""
    text = node["site"]["name"] if node["site"] else "?"
    below = ",".join(f"{child['kind']}:{names(child)}{'*' if child['run'] else ''}" for child in node["children"])
    return f"{text}({below})"


def edges(node):
    for child in node["children"]:
        yield child
        yield from edges(child)


def check_edge(row, child):
    edge, per_trace = child["edge"], FAN_OUT  # each job of a run hands on a notify of its own
    check(edge["count"] == row["traces"] * per_trace, f"{child['site']['name']}: {edge['count']} of {row['traces']} traces")
    check(edge["min_ns"] >= DELAY_US * 1000, f"{child['site']['name']}: waited {edge['min_ns']} ns only")
    check(edge["clamped"] == 0, f"clamped {edge['clamped']}")
    check(edge["time"]["p50"]["value_ns"] <= edge["max_ns"], "p50 past the maximum")


def check_traces(traces):
    rows = {names(row["tree"]): row for row in traces["traces"]}
    print({name: row["traces"] for name, row in rows.items()})
    plain = "accept_request(hand-off:render()*)"
    notified = "accept_request(hand-off:render(hand-off:notify())*)"
    third = (REQUESTS + 2) // 3
    check(set(rows) == {plain, notified}, f"joined shapes {sorted(rows)}")
    check(rows[notified]["ok"] == third and rows[plain]["ok"] == REQUESTS - third, "counts")
    check(all(row["failed"] + row["incomplete"] == 0 for row in rows.values()), "some failed")
    check(traces["parts_waiting"] == 0, f"{traces['parts_waiting']} parts wait")
    for row in rows.values():
        check(row["min_ns"] >= DELAY_US * 1000, f"a trace took {row['min_ns']} ns")
        for child in edges(row["tree"]):
            check_edge(row, child)
    return rows


def check_report(store):
    run = subprocess.run([system.MILLRACE, "report", store], capture_output=True, text=True, check=True)
    print(run.stdout)
    check(f"Joined traces: {REQUESTS} ok, 0 failed, 0 incomplete" in run.stdout, "report's totals")
    check("hand-off > render *" in run.stdout and "hand-off > notify" in run.stdout, "report's tree")
    run = subprocess.run([system.MILLRACE, "report", store, "--json"], capture_output=True, text=True, check=True)
    joined = json.loads(run.stdout)["joined"]
    check(joined["ok"] == REQUESTS and joined["shapes"] == 2, f"report --json: {joined}")


def check_one(master, rows):
    for row in rows.values():
        one = master.get("/api/v1/traces/" + row["id"])
        counted = sum(count for _, _, count in one["histogram"]["buckets"]) + one["histogram"]["zero"]
        check(counted == one["traces"] and one["tree"] == row["tree"], f"/traces/{row['id']}: {one}")


def spans(row):
    """All that was timed in a trace, with quantiles."""
    yield row
    for child in edges(row["tree"]):
        yield child["edge"]


def test_seconds(chain):
    """What takes longer than a second is told to the ns, and no quantile is past the extremes."""
    master = chain.master(store=chain.folder / "seconds")
    worker = chain.worker(master.endpoint, "--outer", "main,serve")
    run = chain.run([chain.folder / "pool", "9", "1", "1100000"], endpoint=worker.endpoint)
    check(run.returncode == 0, f"the program ended with {run.returncode}: {run.stderr}")
    chain.stop(worker)
    for row in master.get("/api/v1/traces")["traces"]:
        for span in spans(row):
            for name, quantile in span["time"].items():
                told = [span["min_ns"], quantile["low_ns"], quantile["value_ns"], quantile["high_ns"], span["max_ns"]]
                check(told == sorted(told), f"{name}: min, low, value, high, max: {told}")
    chain.stop(master)


def run_program(chain, endpoint, **more):
    run = chain.run([chain.folder / "pool", str(REQUESTS), str(FAN_OUT), str(DELAY_US)], endpoint=endpoint, **more)
    check(run.returncode == 0, f"the program ended with {run.returncode}: {run.stderr}")


def test():
    with system.System() as chain:
        system.compile_program(chain.folder / "pool", [system.SOURCE / "tests/system/join/pool.c"])
        master = chain.master()
        # By name: a sanitizer's runtime stands between a thread's beginning and its start function.
        worker = chain.worker(master.endpoint, "--lanes", "2", "--outer", "main,serve")
        run_program(chain, worker.endpoint)
        chain.stop(worker)
        rows = check_traces(master.get("/api/v1/traces"))
        check_one(master, rows)
        ledger = master.get("/api/v1/ledger")["ledger"]
        check(ledger["balanced"] and ledger["lost"] == 0, f"ledger {ledger}")
        chain.stop(master)
        check_report(master.store)
        master = chain.master(store=master.store)  # what the store says is what was there
        check_traces(master.get("/api/v1/traces"))
        # Other ways of the same events over the wire.
        for number, encoding in enumerate(["compact", "compact+zstd"]):
            again = chain.master(store=chain.folder / f"again{number}")
            worker = chain.worker(again.endpoint, "--outer", "main,serve")
            run_program(chain, worker.endpoint, MILLRACE_ENCODING=encoding)
            chain.stop(worker)
            check_traces(again.get("/api/v1/traces"))
            chain.stop(again)
        test_seconds(chain)


if __name__ == "__main__":
    system.main(test)
