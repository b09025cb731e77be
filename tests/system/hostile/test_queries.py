# SPDX-License-Identifier: Apache-2.0
"""Random queries of a master's API, about a model in which everything has its greatest and oddest value: each is answered, with JSON
that is right or an error that is named, and the master goes on.

MR_TEST_SEED        which queries; else the hour decides
MR_HOSTILE_QUERIES  how many (1500)
"""
import http.client
import json
import os
import pathlib
import random as randoms
import sys
import time
import urllib.parse

sys.path[:0] = [str(pathlib.Path(os.environ["MR_SOURCE"], "tests/system/lib"))]
# pylint: disable=wrong-import-position
import chain as lib
import delta_cases
import system
from deltas import DICTIONARY, NODE_ID, OTHER_ID, PATH_ID, SCOPE_ID, SOURCE_ID
from msgpack import pack
from sender import DELTA, DICT, Ended, Sender, worker_hello
from system import check

SEED = int(os.environ.get("MR_TEST_SEED") or time.time() // 3600)
QUERIES = int(os.environ.get("MR_HOSTILE_QUERIES", "1500"))
PATHS = [f"/api/v1/{name}" for name in ("paths", "functions", "entries", "open", "shapes", "shapes/{}", "traces", "traces/{}", "exemplars",
                                        "exemplars/{}", "exemplars/wanted", "landscape", "ledger", "shares", "", "nothing", "../v1")]
PATHS += ["/", "/metrics", "/healthz", "/readyz", "/api/v1", "//", "/page.js"]
NAMES = ["entry", "scope", "depth", "limit", "form", "sort", "find", "shape", "source", "", "odd", "a,b", "Limit", "\0", "é"]
IDS = [each.hex() for each in (PATH_ID, SCOPE_ID, SOURCE_ID, NODE_ID, OTHER_ID, bytes(16), *delta_cases.ODD_SHAPES)]
VALUES = IDS + ["", "0", "1", "-1", "256", "257", "10000", "10001", "18446744073709551615", "18446744073709551616", "1e3", " 1", "0x10", "x" * 3000,
                "flat", "tree", "self", "total", "calls", "time", "count", "name", "%", "\0", "\x1b[2J", "é", "\udcff", "<script>", "a" * 31, "A" * 32]
STATUSES = {200, 400, 404, 405, 413, 414, 431}


def fill(master):
    for case in delta_cases.DELTAS + delta_cases.DICTIONARIES:
        kind, payload = (DICT, pack(case.data)) if case in delta_cases.DICTIONARIES else (DELTA, case.data)
        try:
            with Sender(master, worker_hello()) as sender:
                sender.data(DICT, pack(DICTIONARY))
                sender.data(kind, payload)
                sender.bye()
        except Ended:
            pass


def random_query(random):
    path = random.choice(PATHS).format(random.choice(VALUES)[:100])
    pairs = [(random.choice(NAMES), random.choice(VALUES)) for _ in range(random.choice((0, 1, 1, 2, 3, 40)))]
    text = "&".join("=".join(urllib.parse.quote(each, errors="surrogateescape") for each in pair) for pair in pairs)
    query = urllib.parse.quote(path, errors="surrogateescape") + ("?" + text if text else "")
    if random.randrange(10) == 0:  # an encoding that is cut, or none
        at = random.randrange(len(query))
        query = query[:at] + random.choice(("%", "%z", "%4", "&&", "==", "#", ";")) + query[at:]
    return query


def ask(connection, method, query):
    """The body; that it is what it says."""
    connection.request(method, query)
    answer = connection.getresponse()
    body = answer.read()
    check(answer.status in STATUSES, f"{method} {query}: status {answer.status}: {body[:300]}")
    kind = answer.headers["Content-Type"] or ""
    text = body.decode()
    if kind == "application/json" and method == "GET":
        told = json.loads(text)
        check(answer.status == 200 or told["error"], f"{method} {query}: {answer.status} without a word")
    return answer.will_close


def test():
    random = randoms.Random(SEED)
    print(f"MR_TEST_SEED={SEED}")
    with system.System() as chain:
        master = chain.master(*lib.QUICK)
        fill(master)
        address = master.url.removeprefix("http://")
        connection = http.client.HTTPConnection(address, timeout=system.QUERY_S)
        for _ in range(QUERIES):
            query = random_query(random)
            method = random.choice(("GET",) * 8 + ("HEAD", "DELETE"))
            try:
                if ask(connection, method, query):
                    connection.close()
            except (ValueError, OSError, http.client.HTTPException) as failure:
                lib.check_running(master)
                raise system.Failure(f"{method} {query[:2000]}: {failure!r}") from failure
        connection.close()
        lib.check_queries(master)
        chain.stop(master)
        lib.check_log(master)


if __name__ == "__main__":
    system.main(test)
