# SPDX-License-Identifier: Apache-2.0
"""Ten thousand threads that wait cost a worker at most 64 MiB, all of its memory together: what is open of each is kept and told,
nothing is lost, and it is given back when they end. What has no room (--max-streams)
is lost for budget, once, and others have the room when it is free. At the master, what has no room is in the sums. (idle.c is a probe without a program.)"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

STREAMS, DEPTH = 10_000, 12
LIMIT_KIB = 64 * 1024


FEW, ROOM = 20, 5  # streams, and places for them


def past_the_limit():
    with system.System() as chain:
        master = chain.master()
        above = chain.worker(master.endpoint, level=2)
        worker = chain.worker(above.endpoint, "--lanes", "3", "--max-streams", str(ROOM))
        source = subprocess.run([system.BIN / "idle_streams", worker.endpoint, str(FEW), str(DEPTH)], text=True, check=True,
                                env=chain.environment(), input="\n", capture_output=True, timeout=60)
        sent = int(source.stdout.split()[-1])
        chain.stop(worker)
        chain.stop(above)
        told = master.get("/api/v1/ledger")
        ledger = told["ledger"]
        print(f"{FEW} streams in {ROOM} places: {ledger}")
        check(ledger["written"] == sent and ledger["reduced"] + ledger["lost"] == sent and ledger["held"] == 0, ledger)
        check(ledger["balanced"] and ledger["lost_by_reason"] == {"budget": ledger["lost"]}, ledger)
        check(told["stages"]["received"] == sent, told["stages"])
        begun = 2 * 20 + DEPTH  # events of each before it waits
        check(ledger["lost"] == begun * (FEW - ROOM), "the last part of each stream that waited finds room")


ROWS = 16  # the fewest that a master may have


def past_the_masters_limit():
    """The streams that have no row are in the sums of their source, and a master that comes back knows."""
    with system.System() as chain:
        store = chain.folder / "store"
        master = chain.master("--max-streams", str(ROWS), store=store)
        worker = chain.worker(master.endpoint)
        source = subprocess.run([system.BIN / "idle_streams", worker.endpoint, str(FEW), str(DEPTH)], text=True, check=True,
                                env=chain.environment(), input="\n", capture_output=True, timeout=60)
        sent = int(source.stdout.split()[-1])
        chain.stop(worker)
        told = master.get("/api/v1/ledger")
        ledger = told["ledger"]
        print(f"{FEW} streams in {ROWS} rows: {ledger}")
        check(ledger["written"] == sent and ledger["reduced"] == sent and ledger["held"] == 0, ledger)
        check(ledger["balanced"] and ledger["missing"] == 0 and ledger["streams"] == ROWS, ledger)
        check(ledger["past_limit"] == sent // FEW * (FEW - ROWS), ledger)
        check(told["events_past_limit"] == ledger["past_limit"] and told["source_events_past_limit"] == 0, told)
        check(told["stages"]["in_custody"] == 0, told["stages"])
        rows = master.get(f"/api/v1/ledger?source={told['sources'][0]['id']}")["streams"]
        rest = [row for row in rows if row["stream"] is None]
        check(len(rows) == ROWS + 1 and len(rest) == 1 and rest[0]["reduced"] == ledger["past_limit"], rest)
        chain.stop(master)
        report = subprocess.run([system.MILLRACE, "report", store], text=True, check=True, capture_output=True, timeout=60).stdout
        check(f"Not kept  rows of streams past the master's --max-streams: their {ledger['past_limit']:,} events" in report, report)
        check("Ledger    balanced" in report and "Missing" not in report, report)
        master = chain.master("--max-streams", str(ROWS), store=store)
        check(master.get("/api/v1/ledger")["ledger"] == ledger, "as it was")


DEEP = 4_500  # calls, each of another function: with all that is above the last ones they fit no frame of 64K


def go_deep(chain, worker):
    """One thread, DEEP calls below each other, all of other functions; gives the number of its events."""
    source = subprocess.run([system.BIN / "idle_streams", worker.endpoint, "1", str(DEEP)], text=True, check=True,
                            env=chain.environment(), input="\n", capture_output=True, timeout=60)
    return int(source.stdout.split()[-1])


def a_path_too_deep_for_a_frame():
    """Calls below the deepest path that fits stand beside it: all of them arrive."""
    with system.System() as chain:
        master = chain.master()
        above = chain.worker(master.endpoint, "--max-frame", "64K", level=2)
        worker = chain.worker(above.endpoint, "--max-frame", "64K")
        sent = go_deep(chain, worker)
        chain.stop(worker)
        chain.stop(above)
        told = master.get("/api/v1/functions?limit=10000")
        ledger = master.get("/api/v1/ledger")
        print(f"{DEEP:,} calls deep: {told['total']:,} functions, {told['calls']:,} calls of {sent:,} events")
        check(told["total"] == DEEP and 2 * told["calls"] == sent, f"{told['total']} functions")
        check(ledger["ledger"]["balanced"] and ledger["ledger"]["reduced"] == sent, ledger["ledger"])
        check("rows_too_large" not in ledger["stages"]["levels"]["1"], ledger["stages"])


def a_receiver_that_takes_less():
    """Of a worker that makes larger frames than its receiver takes: what fits none is left out alone, and the master hears of it."""
    with system.System() as chain:
        store = chain.folder / "store"
        master = chain.master("--max-frame", "64K", store=store)
        worker = chain.worker(master.endpoint)
        sent = go_deep(chain, worker)
        chain.stop(worker)
        told = master.get("/api/v1/functions?limit=10000")
        ledger = master.get("/api/v1/ledger")
        level = ledger["stages"]["levels"]["1"]
        print(f"{DEEP:,} calls deep, above 64K: {told['total']:,} functions, {told['calls']:,} calls of {sent:,} events; {level}")
        check(2000 < told["total"] < DEEP, f"{told['total']} functions")
        check(level["rows_too_large"] >= DEEP - told["total"], level)
        check("frames_too_large" not in level, level)
        check(ledger["ledger"]["balanced"] and ledger["ledger"]["reduced"] == sent, ledger["ledger"])
        chain.stop(master)
        report = subprocess.run([system.MILLRACE, "report", store], text=True, check=True, capture_output=True, timeout=60).stdout
        check(f"Not kept  {level['rows_too_large']:,} rows and 0 frames of deltas, larger than the --max-frame" in report, report)


def idle_streams():
    with system.System() as chain:
        master = chain.master()
        stats = chain.folder / "worker.json"
        worker = chain.worker(master.endpoint, "--stats-file", str(stats))
        before = worker.rss_kib()
        source = subprocess.Popen([system.BIN / "idle_streams", worker.endpoint, str(STREAMS), str(DEPTH)], text=True,
                                  env=chain.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            sent = int(source.stdout.readline())
            system.wait_until(lambda: master.get("/api/v1/open")["total"] == 1, 60, "one entry point is open")
            system.wait_until(lambda: master.get("/api/v1/open")["open"][0]["open"] == STREAMS, 60, "all traces are open")

            def counted():
                told = json.loads(stats.read_text())["counters"]
                return told if told["reduced"] + told["held"] == sent else None

            told = system.wait_until(counted, 30, "all events are accounted for")
            check(told["held"] == STREAMS * DEPTH and told["lost"] == 0, told)
            kib = worker.rss_kib()
            print(f"RSS of the worker: {before:,} KiB at its start, {kib:,} KiB with {STREAMS:,} idle streams of depth {DEPTH}")
            check(kib <= LIMIT_KIB, f"more than {LIMIT_KIB:,} KiB")
            source.stdin.write("\n")
            source.stdin.flush()
            sent = int(source.stdout.readline())
            check(source.wait(60) == 0, f"idle_streams ended with {source.returncode}")
            system.wait_until(lambda: master.get("/api/v1/open")["total"] == 0, 60, "nothing is open")
        finally:
            source.kill()
            source.wait()
        chain.stop(worker)
        counters = json.loads(stats.read_text())["counters"]
        check(counters["reduced"] == sent and counters["held"] == 0 and counters["lost"] == 0, counters)


def test():
    idle_streams()
    past_the_limit()
    past_the_masters_limit()
    a_path_too_deep_for_a_frame()
    a_receiver_that_takes_less()


if __name__ == "__main__":
    system.main(test)
