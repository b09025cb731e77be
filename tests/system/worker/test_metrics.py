# SPDX-License-Identifier: Apache-2.0
"""What a worker tells of itself over HTTP: /metrics in Prometheus' text format, held against a strict reader of it, with the
busy share of every filter and the fill of every pipe; /healthz and /readyz; and who may listen where."""
import math
import os
import re
import resource
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf"({NAME})(?:\{{((?:[a-zA-Z_][a-zA-Z0-9_]*=\"(?:[^\"\\\n]|\\[\\\"n])*\",?)*)\}})? (\S+)")
LABEL = re.compile(r"([a-zA-Z_][a-zA-Z0-9_]*)=\"((?:[^\"\\\n]|\\[\\\"n])*)\"(?:,|$)")
FILTERS = {("lane0", "decode"), ("lane0", "reconstruct"), ("lane0", "reduce"), ("trunk", "names"), ("trunk", "account"), ("trunk", "join"), ("trunk", "merge"),
           ("trunk", "forward")}


def read(text):
    """{name: {labels: value}}; Failure where the format is broken: each name has HELP and TYPE, once, before its samples, which
    stand together, no two with the same labels; counters end with _total and are finite and not negative."""
    samples, types, helped, current = {}, {}, set(), None
    check(text.endswith("\n"), "the last line has no end")
    for line in text[:-1].split("\n"):
        comment = re.fullmatch(rf"# (HELP|TYPE) ({NAME}) (.+)", line)
        if comment:
            kind, name, rest = comment.groups()
            known = helped if kind == "HELP" else types
            check(name not in known and name not in samples, f"{line!r} comes again, or late")
            if kind == "HELP":
                helped.add(name)
            else:
                check(rest in ("counter", "gauge"), f"{line!r}: type")
                check((rest == "counter") == name.endswith("_total"), f"{line!r}: name of a {rest}")
                types[name] = rest
            current = name
            continue
        sample = SAMPLE.fullmatch(line)
        check(sample, f"{line!r} is no sample")
        name, labels, value = sample.group(1), tuple(LABEL.findall(sample.group(2) or "")), float(sample.group(3))
        check(name == current and name in types and name in helped, f"{line!r} does not stand below its HELP and TYPE")
        check(labels not in samples.setdefault(name, {}), f"{line!r} comes twice")
        check(math.isfinite(value) and (types[name] == "gauge" or value >= 0), f"{line!r}: value")
        samples[name][labels] = value
    return samples


def metrics(server):
    with urllib.request.urlopen(server.url + "/metrics", timeout=system.QUERY_S) as answer:
        check(answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8", f"type {answer.headers}")
        return read(answer.read().decode())


def by_filter(samples):
    return {(dict(labels)["graph"], dict(labels)["filter"]): value for labels, value in samples.items()}


def check_worker(worker):
    all_of = metrics(worker)
    shares = by_filter(all_of["millrace_filter_busy_share"])
    check(set(shares) == FILTERS, f"busy shares of {sorted(shares)}")
    check(all(0 <= share <= 1 for share in shares.values()), f"busy shares {shares}")
    busy = by_filter(all_of["millrace_filter_busy_seconds_total"])
    check(busy["lane0", "reduce"] > 0, f"reduce was busy for {busy}")
    check(by_filter(all_of["millrace_filter_events_total"])["lane0", "reduce"] > 0, "reduce saw events")
    fills, rooms = (by_filter(all_of["millrace_" + name]) for name in ("pipe_batches", "pipe_capacity_batches"))
    check(("lane0", "reduce") in fills and fills.keys() == rooms.keys(), f"pipes before {sorted(fills)}")
    check(all(fills[key] <= rooms[key] and rooms[key] > 0 for key in fills), f"fill {fills} of {rooms}")
    check(all_of["millrace_connections"][(("event", "greeted"),)] >= 1, "a sender was greeted")
    check(all_of["millrace_forward_open"][()] == 1 and all_of["millrace_level"][()] == 1, "link and level")


def wait_busy(worker):
    """Over some second in which the program ran, reduce was busy."""
    def is_busy():
        return by_filter(metrics(worker)["millrace_filter_busy_share"])["lane0", "reduce"] > 0
    system.wait_until(is_busy, 60, "a busy share of reduce")


def refuse(*options):
    run = subprocess.run([system.MILLRACE, "worker", "--forward", "tcp://127.0.0.1:1", "--listen", "tcp://127.0.0.1:0", *options],
                         capture_output=True, text=True, timeout=60, check=False)
    check(run.returncode == 2 and "--metrics" in run.stderr, f"{options}: {run.returncode}, {run.stderr}")
    return run.stderr


def check_files(chain, master):
    """Of open files a worker takes all that it may have, and says where that is fewer than its connections want."""
    limited = chain.worker(master.endpoint, "--metrics", "127.0.0.1:0", "--lanes", "1", "--max-connections", "400",
                           prefix=["prlimit", "--nofile=100:500"])
    check(metrics(limited)["millrace_open_files_max"] == {(): 500}, "files that may be open")
    check("--max-connections 400 wants 596 open files, and there may be 500" in limited.log.read_text(), limited.log.read_text())
    chain.stop(limited)


def test():
    with system.System() as chain:
        master = chain.master()
        program = chain.folder / "program"
        system.compile_program(program, [system.SOURCE / "tests/system/worker/busy.c"])
        worker = chain.worker(master.endpoint, "--metrics", "127.0.0.1:0", "--placement", "threads", "--lanes", "1")
        system.wait_until(lambda: worker.status("/readyz") == 200, 30, "the worker is ready")
        check(worker.get("/healthz") == {"status": "alive"}, "/healthz")
        running = subprocess.Popen([program], env=chain.environment(MILLRACE_ENDPOINT=worker.endpoint), stdin=subprocess.PIPE)
        try:
            wait_busy(worker)
            check_worker(worker)
        finally:
            running.stdin.close()  # which ends it
            running.wait(60)
        check(metrics(master)["millrace_open_files_max"][()] == resource.getrlimit(resource.RLIMIT_NOFILE)[1], "the master's files")
        check_files(chain, master)
        check(worker.status("/nowhere") == 404, "/nowhere")
        request = urllib.request.Request(worker.url + "/metrics", data=b"x", method="POST")
        try:
            urllib.request.urlopen(request, timeout=system.QUERY_S)
            check(False, "POST was taken")
        except urllib.error.HTTPError as refusal:
            check(refusal.code == 405 and refusal.headers["Allow"] == "GET, HEAD", f"POST: {refusal}")
        check("--insecure" in refuse("--metrics", "0.0.0.0:0"), "outside loopback")
        refuse("--metrics", "nonsense")
        refuse("--metrics", worker.url.removeprefix("http://"))  # in use
        chain.stop(master)
        system.wait_until(lambda: worker.status("/readyz") == 503, 60, "it says that the next level is gone")
        check(worker.status("/healthz") == 200, "it is alive")


if __name__ == "__main__":
    system.main(test)
