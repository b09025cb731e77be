# SPDX-License-Identifier: Apache-2.0
"""Senders that break the format, or come near it: each is told why, in words that say which rule it broke, or is taken; what it sent is
accounted for; and an honest sender beside them loses nothing."""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(os.environ["MR_SOURCE"], "tests/system/lib"))]
# pylint: disable=wrong-import-position
import chain as lib
import delta_cases
import event_cases
import frame_cases
import system
from deltas import (BEGINNING, DICTIONARY, ENTRY_STAT, MOST, NOW_S, OTHER_ID, PATH, PATH_STAT, SHAPE, SITE, item, one_bucket, shape_stat)
from events import FIRST, LAST, call, chunk, module, stream
from handover_cases import RESUMES
from honest import Honest
from msgpack import pack
from sender import (ANSWER, ASK, BUSY, CHUNKS, DELTA, DICT, FORMAT, HELLO, LOOP, RESUME, STATE, TOKEN, WELCOME, Connection, Ended, Sender,
                    bye, custody_of, frame, probe_hello, worker_hello)
from system import check

TOGETHER = 8  # connections at a time
ASKS = 5000


def check_answer(case, where, error):
    """The code, and the words; None where it was taken."""
    if case.error and error:
        code, words = case.error
        check(error[0] == code and words in error[1], f"{where}, {case.name}: {error}, not {case.error}")
    else:
        check(case.error is error is None, f"{where}, {case.name}: it is told {error}, not {case.error}")


def answer_to(server, data):
    """The error that comes of these bytes, with BYE behind them."""
    with Connection(server) as connection:
        try:
            connection.send(data)
            connection.send(bye())
        except Ended:  # before it had read all
            pass
        connection.wait_end()
        return connection.error


def in_turn(cases, attempt):
    with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
        for _ in pool.map(attempt, cases):
            pass


def without_missing(says):
    return {key: value for key, value in says.items() if value is not None}


def try_frames(server, make_hello):
    """`make_hello`: what is welcome here."""
    def at_first(case):
        check_answer(case, server.name, answer_to(server, case.data(make_hello())))

    def later(case):
        check_answer(case, server.name, answer_to(server, frame(HELLO, pack(make_hello())) + case.data))

    def keys(case):
        says = without_missing(make_hello() | case.data)
        check_answer(case, server.name, answer_to(server, frame(HELLO, pack(says))))

    in_turn(frame_cases.FIRST_FRAMES, at_first)
    in_turn(frame_cases.LATER_FRAMES, later)
    in_turn(frame_cases.HELLO_KEYS, keys)


def try_sources(worker):
    def attempt(case):
        says = probe_hello("keys")
        source = says["source"]
        changed = dict(case.data)
        if changed.get("clock"):
            changed["clock"] = source["clock"] | changed["clock"]
        says["source"] = without_missing(source | changed)
        check_answer(case, worker.name, answer_to(worker, frame(HELLO, pack(says))))

    in_turn(frame_cases.SOURCE_KEYS, attempt)


def send_all(server, says, frames):
    """Frames of (kind, payload), then BYE: the error that comes."""
    sender = None
    try:
        with Sender(server, says) as sender:
            for kind, payload in frames:
                sender.data(kind, payload)
            sender.bye()
    except Ended:  # while it was sending, or waiting for WELCOME
        sender.wait_end()
    return sender.error


def app_of(case, kept):
    return f"{case.name}, {'kept' if kept else 'used as it comes'}"


def try_events(worker):
    """Each with custody and without: there a frame is looked at when it is settled."""
    both = (False, True)
    calls = [(CHUNKS, chunk(call()))]
    begun = [(DICT, pack([module(), stream()]))]

    def attempt(row):
        case, frames, kept = row
        says = probe_hello(app_of(case, kept), **({"custody": custody_of()} if kept else {}))
        check_answer(case, worker.name, send_all(worker, says, frames))

    in_turn([(case, [(DICT, pack(case.data))] + calls, kept) for case in event_cases.DICTIONARIES for kept in both], attempt)
    in_turn([(case, begun + [(CHUNKS, case.data)], kept) for case in event_cases.CHUNKS_OF_ALL for kept in both], attempt)


def check_ledgers(master):
    """Of each source that the worker knew."""
    sources = {source["app"]: source["ledger"] for source in master.get("/api/v1/ledger")["sources"]}
    for case in event_cases.DICTIONARIES + event_cases.CHUNKS_OF_ALL:
        for kept in (False, True):
            ledger = sources.get(app_of(case, kept))
            if case.written is None:
                continue
            check(ledger and ledger["balanced"] and ledger["held"] == 0, f"{app_of(case, kept)}: {ledger}")
            told = ledger["written"], ledger["lost_by_reason"]
            check(told == (case.written, case.lost or {}), f"{app_of(case, kept)}: {told}, not {case.written} and {case.lost or 'none'}")


def try_deltas(server):
    def attempt(row):
        case, frames = row
        check_answer(case, server.name, send_all(server, worker_hello(), frames))

    known = [(DICT, pack(DICTIONARY))]
    in_turn([(case, known + [(DELTA, case.data)]) for case in delta_cases.DELTAS], attempt)
    in_turn([(case, known + [(DICT, pack(case.data))]) for case in delta_cases.DICTIONARIES], attempt)


def try_probe_items(upper, master):
    frames = [(DICT, pack(delta_cases.PROBE_ITEMS))]
    error = send_all(upper, worker_hello(), frames)
    check(error == (FORMAT, "DICT frame: item 1 is not a worker's"), f"{upper.name} was told what probes tell: {error}")
    error = send_all(master, worker_hello(), frames)
    check(error is None, f"{master.name} was told what probes tell: {error}")


def try_odd_shapes(master):
    odd = b"".join(item(SHAPE, 0, 0, node) + shape_stat(5, shape=place + 1) for place, node in enumerate(delta_cases.ODD_SHAPES))
    check(send_all(master, worker_hello(), [(DELTA, BEGINNING + odd)]) is None, "shapes of odd nodes were refused")
    for node in delta_cases.ODD_SHAPES:
        master.get(f"/api/v1/shapes/{node.hex()}")


def try_resumes(worker):
    def attempt(case):
        custody = custody_of(custodian=os.urandom(16), epoch=3, acked=4, sent=4, attempt=2)
        says = probe_hello(f"resume: {case.name}", custody=custody, offers=1 << 20, oldest=5)
        sender = None
        try:
            with Sender(worker, says) as sender:
                sender.send(frame(RESUME, (4).to_bytes(8, "little") + case.data))
                sender.send(frame(DICT, pack([module(), stream()])))
                sender.data(CHUNKS, chunk(call(), first=10, flags=FIRST | LAST))
                sender.bye()
        except Ended:
            sender.wait_end()
        check_answer(case, worker.name, sender.error)

    in_turn(RESUMES, attempt)


def ask(number):
    """About a sender that nobody knows."""
    return frame(ASK, number.to_bytes(16, "little") + (1).to_bytes(8, "little") + (5).to_bytes(8, "little") + bytes(8))


def try_asks(worker, upper, master):
    """Only workers ask; who asks without end is held up or refused, and others are answered meanwhile and after it."""
    error = answer_to(worker, frame(HELLO, pack(probe_hello("asks"))) + ask(1))
    check(error and error[0] == STATE, f"a probe asked, and was told {error}")
    error = answer_to(upper, frame(HELLO, pack(worker_hello())) + b"".join(ask(each) for each in range(1, ASKS)))
    check(error and error[0] == BUSY, f"who asked {ASKS} times was told {error}")
    for server in (upper, master):
        with Sender(server, worker_hello()) as sender:
            sender.send(ask(ASKS + 1))
            sender.wait(lambda: ANSWER in sender.kinds, "ANSWER")  # pylint: disable=cell-var-from-loop
            check(sender.kinds == [WELCOME, ANSWER], f"{server.name}: {sender.kinds}")
            sender.bye()


def try_loop(worker):
    error = answer_to(worker, frame(HELLO, pack(worker_hello(level=1))))
    check(error and error[0] == LOOP, f"a worker of the same level was told {error}")


def try_token(chain, master):
    """What white space stands behind it in the file is no part of it."""
    secret = chain.folder / "token"
    secret.write_text("open sesame \t\nnot this\n")
    worker = chain.worker(master.endpoint, "--token-file", str(secret))
    for token, words in ((None, "a token is needed"), ("open sesam", "the token is wrong"), ("open sesame ", "the token is wrong")):
        error = answer_to(worker, frame(HELLO, pack(without_missing(probe_hello("guest", token=token)))))
        check(error and error[0] == TOKEN and words in error[1], f"token {token}: {error}")
    with Sender(worker, probe_hello("guest", token="open sesame")) as sender:
        sender.bye()
    log = worker.log.read_text()
    check(log.count("cut off: ") == 3 and "sesam" not in log, f"a line for each, and no secret: {log}")
    chain.stop(worker)


def try_sums(chain):
    """Of calls of two functions, each as many as there are numbers: a sum does not begin at 0 again."""
    master = chain.master(*lib.QUICK, store=chain.folder / "sums")
    most = item(PATH_STAT, 0, NOW_S, MOST, 1, 1, MOST, 1, MOST, MOST, 1, MOST, one_bucket(MOST))
    other = item(PATH_STAT, 1, NOW_S, MOST, 1, 1, MOST, 1, MOST, MOST, 1, MOST, one_bucket(MOST))
    delta = BEGINNING + item(SITE, OTHER_ID) + item(PATH, 0, 0, 1, 0) + most + other + item(ENTRY_STAT, 0, NOW_S, *[MOST] * 12)
    check(send_all(master, worker_hello(), [(DICT, pack(DICTIONARY)), (DELTA, delta)]) is None, "the greatest sums were refused")
    calls = re.search(r"^millrace_calls_total (\d+)$", master.get_text("/metrics"), re.M)
    check(int(calls[1]) == MOST, f"{calls[1]} calls")
    chain.stop(master)
    summary = json.loads(report(master.store, "--json"))
    for sums in (summary, *summary["functions"]):
        check(sums["calls"] == MOST >> 1, f"{sums['calls']} calls in the report, where numbers are signed: {sums}")


def check_connections(worker, stats):
    """None is left; a health check is none that was refused; and no refusal has more than one line."""
    told = json.loads(stats.read_text())["connections"]
    check(told["open"] == 0 and told["health_checks"] == 1, f"{told}")
    log = worker.log.read_text()
    lines = log.count("cut off: ") + sum(map(int, re.findall(r"\(and (\d+) more like it\)", log)))
    check(0 < lines <= told["refused"], f"{lines} lines in the log of {told}")


def report(store, *options):
    run = subprocess.run([system.MILLRACE, "report", str(store), *options], capture_output=True, timeout=system.QUERY_S, check=False)
    check(run.returncode == 0, f"millrace report: {run.stderr}")
    return run.stdout.decode()


def check_report(store):
    found = lib.CONTROL.search(report(store))
    check(not found, f"a control character in the report: {found}")


def test():
    with system.System() as chain:
        master = chain.master(*lib.QUICK)
        stats = chain.folder / "stats.json"
        worker = chain.worker(master.endpoint, "--stats-file", str(stats))
        upper = chain.worker(master.endpoint, level=2)
        honest = Honest(worker)
        Connection(worker).socket.close()  # a health check
        try_frames(worker, lambda: probe_hello("frames"))
        try_sources(worker)
        try_frames(master, worker_hello)
        try_events(worker)
        try_deltas(upper)
        try_deltas(master)
        try_probe_items(upper, master)
        try_odd_shapes(master)
        try_resumes(worker)
        try_asks(worker, upper, master)
        try_loop(worker)
        try_token(chain, master)
        try_sums(chain)
        lib.check_running(worker, upper, master)
        honest.finish()
        for server in (worker, upper):
            chain.stop(server)
            lib.check_log(server)
        check_connections(worker, stats)
        check_ledgers(master)
        honest.check(master)
        lib.check_queries(master)
        chain.stop(master)
        lib.check_log(master)
        check_report(master.store)
        print(f"the honest sender's {honest.rounds} rounds are all there")


if __name__ == "__main__":
    system.main(test)
