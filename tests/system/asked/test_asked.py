# SPDX-License-Identifier: Apache-2.0
"""Exemplars that somebody asks for, through two levels of workers while a program runs: the next traces of an entry point, a path and
a shape come whole, as many as were asked for, also where they are kept, with fewer calls, for other reasons; a request that nothing answers ends when its time is over; a worker that connects later
hears of it; wrong requests are refused by the name of what is wrong; the ledger balances, and what came outlives the master."""
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

WANTED = "/api/v1/exemplars/wanted"
DEADLINE_S = 60  # for a trace to come, also under a sanitizer on a busy machine
ROOTS = "request,start_up,export_rows"
MAX_OPEN = 64


def send(master, method, path, body=None, kind="application/json"):
    """(status, answer) of a request that changes something; `body` is sent as it is, or as JSON."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(master.url + path, data=data, method=method, headers={"Content-Type": kind} if data else {})
    try:
        with urllib.request.urlopen(request, timeout=system.QUERY_S) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        text = refusal.read()
        return refusal.code, json.loads(text) if text else {}


def ask(master, **what):
    status, answer = send(master, "POST", WANTED, what)
    check(status == 201 and answer["state"] == "open" and answer["came"] == 0, f"{what}: {status} {answer}")
    return answer


def look(master, request):
    rows = [row for row in master.get(WANTED)["requests"] if row["id"] == request["id"]]
    check(len(rows) == 1, f"request {request['id']}: {rows}")
    return rows[0]


def wait_done(master, request):
    """Its row, once all that came can be looked at."""
    def is_done():
        row = look(master, request)
        return row if row["state"] == "done" and len(row["exemplars"]) == row["count"] else None
    return system.wait_until(is_done, DEADLINE_S, f"answers to {request}")


def tree(trace):
    return [(call["depth"], trace["sites"][call["site"]]["name"]) for call in trace["tree"]]


def whole(master, ident):
    trace = master.get("/api/v1/exemplars/" + ident)
    check("asked" in trace["why"] and trace["elided_calls"] == 0 and trace["calls"] == len(trace["tree"]), f"not whole: {trace}")
    return trace


WRITING = [(0, "request"), (1, "parse"), (1, "change"), (2, "read_row"), (2, "write_row")]
READING = [(0, "request"), (1, "parse"), (1, "read_row")]


class Program:
    def __init__(self, hosts, binary, worker):
        environment = hosts.environment(MILLRACE_ENDPOINT=worker.endpoint, MILLRACE_POLICY="block", MILLRACE_BLOCK_TIMEOUT="60s")
        self.process = subprocess.Popen([binary], env=environment, stdin=subprocess.PIPE, preexec_fn=system.die_with_parent)

    def end(self):
        self.process.stdin.close()
        check(self.process.wait(system.STOP_S) == 0, "the program failed")


def paths(master):
    """Ids of paths by the names of their calls; the names come a moment after the path."""
    rows = {row["id"]: row for row in master.get("/api/v1/paths?form=list")["paths"] if "outer" not in row}
    names = {}
    for row in rows.values():
        chain, at = [], row
        while at:
            chain.append(str(at["site"]["name"]))
            at = rows.get(at["parent"])
        names["/".join(reversed(chain))] = row["id"]
    return names


def wait_paths(master):
    needed = {"request", "request/change/write_row", "request/read_row", "start_up", "export_rows"}
    return system.wait_until(lambda: (lambda found: found if needed <= set(found) else None)(paths(master)), DEADLINE_S, "paths")


def check_paths(master, ids):
    row = wait_done(master, ask(master, path=ids["request/change/write_row"], count=3, ttl_s=600))
    traces = [whole(master, ident) for ident in row["exemplars"]]
    check(row["site"]["name"] == "write_row" and all(tree(trace) == WRITING for trace in traces), f"by path: {[tree(t) for t in traces]}")
    starts = [trace["start_ns"] for trace in traces]
    check(starts == sorted(starts) and len(set(starts)) == 3, f"three traces, the first of them first: {starts}")
    row = wait_done(master, ask(master, path=ids["request"], ttl_s=600))
    check(tree(whole(master, row["exemplars"][0])) in (WRITING, READING), "by entry point")


def check_shape(master, ids):
    shapes = master.get("/api/v1/shapes?entry=" + ids["request"])["shapes"]
    reading = [row["id"] for row in shapes if row["nodes"] == len(READING)] if "nodes" in shapes[0] else None
    if reading is None:  # by what its exemplar looks like
        kept = [master.get("/api/v1/exemplars/" + row["id"]) for row in master.get("/api/v1/exemplars?entry=" + ids["request"])["exemplars"]]
        reading = [trace["shape"] for trace in kept if tree(trace) == READING]
    for wish in ({"shape": reading[0]}, {"shape": reading[0], "path": ids["request"]}):
        row = wait_done(master, ask(master, count=2, ttl_s=600, **wish))
        for ident in row["exemplars"]:
            trace = whole(master, ident)
            check(tree(trace) == READING and trace["shape"] == reading[0], f"by shape: {tree(trace)}")


def check_first(master, ids):
    """One that is the first of its shape too is there twice, and shown with all its calls."""
    def next_of_new_shape():
        row = wait_done(master, ask(master, path=ids["export_rows"], ttl_s=600))
        trace = whole(master, row["exemplars"][0])
        return trace if "first" in trace["why"] else None
    trace = system.wait_until(next_of_new_shape, DEADLINE_S, "an export of a new shape")
    check(trace["calls"] > 2 * 1000, f"calls of an export: {trace['calls']}")
    rows = [row for row in master.get("/api/v1/exemplars?limit=10000")["exemplars"] if row["id"] == trace["id"]]
    check([row["elided_calls"] for row in rows] == [0], f"it is one row: {rows}")


def check_end(master, ids):
    """Nothing takes an hour, and nothing starts up again."""
    for wish in ({"path": ids["request"], "min_ns": 3600 * 10**9}, {"path": ids["start_up"]}):
        request = ask(master, ttl_s=1, **wish)
        row = system.wait_until(lambda: (lambda row: row if row["state"] != "open" else None)(look(master, request)), DEADLINE_S, "its end")
        check(row["state"] == "expired" and row["came"] == 0 and row["ended_ns"] >= row["created_ns"] + 10**9, f"{wish}: {row}")


def check_refusals(master, ids):
    good = {"path": ids["request"]}
    for status, text, body in (
            (400, "'path' or 'shape'", {}), (400, "no JSON:", b"{"), (400, "no JSON object", b"[]"), (400, "'paht'", {"paht": 1}),
            (400, "'path': an id", {"path": "1"}), (400, "'path': an id", {"path": 7}), (400, "'path': an id", {"path": "0" * 32}),
            (404, "'path': no such", {"path": "1" * 32}), (404, "'shape': no such", {"shape": "1" * 32}),
            (400, "'count': a number from 1 to 32", {**good, "count": 0}), (400, "'count'", {**good, "count": 33}),
            (400, "'count'", {**good, "count": "2"}), (400, "'ttl_s': a number from 1 to 86400", {**good, "ttl_s": 86401}),
            (400, "'ttl_s'", {**good, "ttl_s": 1.5}), (400, "'min_ns'", {**good, "min_ns": -1}), (413, "too large", b" " * 5000)):
        got, answer = send(master, "POST", WANTED, body)
        check(got == status and text in answer["error"], f"{body}: {got} {answer}, not {status} {text}")
    got, answer = send(master, "POST", WANTED, good, kind="text/plain")
    check(got == 415 and "application/json" in answer["error"], f"a form's content type: {got} {answer}")
    for method, path, status in (("DELETE", WANTED + "/" + "1" * 32, 404), ("DELETE", WANTED + "/x", 400), ("DELETE", WANTED, 405),
                                 ("POST", "/api/v1/exemplars", 405), ("PUT", WANTED, 405)):
        check(send(master, method, path)[0] == status, f"{method} {path}")
    check(master.status(WANTED + "?limit=1") == 400, "a parameter that is not known")


def check_bound(master, ids):
    """So many are open, and no more, until one is taken out."""
    for row in master.get(WANTED)["requests"]:
        check(send(master, "DELETE", WANTED + "/" + row["id"])[0] == 200, f"removing {row}")
    requests = [ask(master, path=ids["start_up"], ttl_s=600) for _ in range(MAX_OPEN)]
    status, answer = send(master, "POST", WANTED, {"path": ids["start_up"]})
    check(status == 429 and str(MAX_OPEN) in answer["error"] and "DELETE" in answer["error"], f"one too many: {status} {answer}")
    check(len(master.get(WANTED)["requests"]) == MAX_OPEN, "all of them are listed")
    check(send(master, "DELETE", WANTED + "/" + requests[0]["id"])[0] == 200, "removing one")
    check(send(master, "DELETE", WANTED + "/" + requests[0]["id"])[0] == 404, "removing it again")
    ask(master, path=ids["start_up"], ttl_s=600)
    for row in master.get(WANTED)["requests"]:
        check(send(master, "DELETE", WANTED + "/" + row["id"])[0] == 200, f"removing {row}")
    check(master.get(WANTED)["requests"] == [], "none is left")


def test():
    with system.System() as chain:
        binary = chain.folder / "program"
        system.compile_program(binary, [system.SOURCE / "tests/system/asked/program.c"])
        master = chain.master()
        upper = chain.worker(master.endpoint, "--level", "2")
        worker = chain.worker(upper.endpoint, "--root", ROOTS)
        program = Program(chain, binary, worker)
        ids = wait_paths(master)
        for part in (check_first, check_paths, check_shape, check_end, check_refusals, check_bound):
            part(master, ids)
        program.end()
        request = ask(master, path=ids["request/change"], ttl_s=600)  # heard by who connects later
        later = chain.worker(upper.endpoint, "--root", ROOTS)
        program = Program(chain, binary, later)
        row = wait_done(master, request)
        check(tree(whole(master, row["exemplars"][0])) == WRITING, "heard later")
        program.end()
        for server in (worker, later, upper):
            chain.stop(server)
        system.wait_until(lambda: master.get("/api/v1/ledger")["ledger"]["balanced"], DEADLINE_S, "a balanced ledger")
        before = [whole(master, ident)["tree"] for ident in row["exemplars"]]
        master.process.kill()
        master.process.wait()
        again = chain.master()
        check([whole(again, ident)["tree"] for ident in row["exemplars"]] == before, "what came is there after the master was killed")
        check(again.get(WANTED)["requests"] == [], "a master that starts has no requests")


if __name__ == "__main__":
    system.main(test)
