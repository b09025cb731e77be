# SPDX-License-Identifier: Apache-2.0
"""Random payloads, in frames that are right, at workers and at a master: whatever they are, all go on, the ledger of each sender
balances, and an honest one beside them loses nothing.

MR_TEST_SEED     what is sent; else the hour decides
MR_HOSTILE_RUNS  how many connections (400); of 10,000 sources at most the ledger is looked at
"""
import os
import pathlib
import random as randoms
import socket
import sys
import time

sys.path[:0] = [str(pathlib.Path(os.environ["MR_SOURCE"], "tests/system/lib"))]
# pylint: disable=wrong-import-position
import chain as lib
import mutate
import system
from deltas import DICTIONARY
from handover_cases import KNOWN_SITE, OPEN_ROOT, of_stream
from honest import Honest
from msgpack import pack
from sender import (CHUNKS, DELTA, DICT, FINISHED, HELLO, MOVING, OFFER, RESUME, Connection, Ended, Sender, bye, custody_of, frame,
                    probe_hello, worker_hello)
from system import check

SEED = int(os.environ.get("MR_TEST_SEED") or time.time() // 3600)
RUNS = int(os.environ.get("MR_HOSTILE_RUNS", "400"))
APP, NOISE = "mutant", "noise"
NEWCOMER = "newcomer"  # of which events are missing: the worker that it says it comes from never was
GRACE = ["--source-grace", "1s"]  # how long a worker waits for one that went without a word
ACCEPTED, LISTEN_S = 2, 0.01


def as_worker(random, server):
    kept = {"custody": custody_of()} if random.randrange(2) else {}
    with Sender(server, worker_hello(**kept)) as sender:
        sender.data(DICT, pack(DICTIONARY))
        sender.data(DICT, mutate.mutated(random, pack(DICTIONARY)))
        for _ in range(3):
            sender.data(DELTA, mutate.mutated(random, mutate.DELTA_OF_ALL))
        leave(random, sender)


def as_probe(random, worker):
    kept = {"custody": custody_of(), "offers": 1 << 20} if random.randrange(2) else {}
    with Sender(worker, probe_hello(APP, **kept)) as sender:
        sender.data(DICT, pack(mutate.DICTIONARY))
        send_mutants(random, sender)


def as_newcomer(random, worker):
    """From another worker, with what was open there."""
    says = probe_hello(NEWCOMER, custody=custody_of(custodian=random.randbytes(16), epoch=3, acked=4, sent=4, attempt=2), offers=1 << 20, oldest=5)
    with Sender(worker, says) as sender:
        resume = (4).to_bytes(8, "little") + mutate.mutated(random, KNOWN_SITE + of_stream(**OPEN_ROOT))
        sender.send(frame(RESUME, resume) + frame(DICT, pack(mutate.DICTIONARY)))
        send_mutants(random, sender)


def send_mutants(random, sender):
    if random.randrange(3) == 0:
        sender.data(DICT, mutate.mutated(random, pack(mutate.MORE_ITEMS)))
    first = 0
    for _ in range(random.randrange(1, 6)):
        chunk, events = mutate.random_chunk(random, first)
        if random.randrange(2):
            chunk = mutate.mutated(random, chunk)
        sender.data(CHUNKS, chunk, packed=random.randrange(4) == 0)
        first += events
    leave(random, sender)


def as_noise(random, server):
    """A conversation that is cut, or of which bytes are not as they were sent."""
    data = (frame(HELLO, pack(probe_hello(NOISE))) + frame(DICT, pack(mutate.DICTIONARY), 1)
            + frame(CHUNKS, mutate.random_chunk(random, 0)[0], 2) + bye())
    data = mutate.mutated(random, data) if random.randrange(2) else data[:random.randrange(len(data))]
    with Connection(server) as connection:
        connection.send(data)
        connection.socket.shutdown(socket.SHUT_WR)
        connection.wait_end()


def leave(random, sender):
    """Without a word; or with BYE, and then it takes what it is offered, or waits for the end."""
    reason = random.choice((None, FINISHED, FINISHED, MOVING))
    if reason is None:
        sender.next(LISTEN_S)
        return
    sender.send(bye(reason))
    if reason == MOVING:
        sender.next(LISTEN_S)
        sender.send(frame(OFFER, ACCEPTED.to_bytes(8, "little")))
        sender.next(LISTEN_S)
    else:
        sender.wait_end()
        if sender.error:
            raise Ended


def attack(random, worker, upper, master):
    """How many were seen to be cut off."""
    cut = 0
    for run in range(RUNS):
        try:
            if run % 3 == 0:
                as_worker(random, random.choice((upper, master)))
            elif run % 10 == 1:
                as_newcomer(random, worker)
            elif run % 10 == 2:
                as_noise(random, random.choice((worker, master)))
            else:
                as_probe(random, worker)
        except Ended:
            cut += 1
        if run % 50 == 0:
            lib.check_running(worker, upper, master)
    return cut


def check_ledgers(master):
    """Every event is reduced or lost, also of those that were cut off."""
    mutants = [source for source in master.get("/api/v1/ledger?limit=10000")["sources"] if source["app"] == APP]
    check(mutants, "no mutant is in the ledger")
    for source in mutants:
        ledger = source["ledger"]
        check(ledger["streams"] == ledger["streams_balanced"] and ledger["held"] == 0, f"{source['app']} {source['id']}: {ledger}")


def test():
    print(f"MR_TEST_SEED={SEED}")
    random = randoms.Random(SEED)
    with system.System() as chain:
        master = chain.master(*lib.QUICK)
        worker = chain.worker(master.endpoint, *GRACE)
        upper = chain.worker(master.endpoint, *GRACE, level=2)
        honest = Honest(worker)
        cut = attack(random, worker, upper, master)
        lib.check_running(worker, upper, master)
        honest.finish()
        for server in (worker, upper):
            chain.stop(server)
            lib.check_log(server)
        honest.check(master)
        check_ledgers(master)
        lib.check_queries(master)
        chain.stop(master)
        lib.check_log(master)
        print(f"{RUNS} connections, {cut} cut off; the honest sender's {honest.rounds} rounds are all there")
        check(RUNS // 10 < cut < RUNS, f"of {RUNS} connections {cut} were cut off: are they mutated at all?")


if __name__ == "__main__":
    system.main(test)
