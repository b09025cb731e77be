# SPDX-License-Identifier: Apache-2.0
"""What does not fit together: tokens attached twice or made up, headers that cannot be read or come twice, more parts than may
wait. All of it is counted, and nothing grows past its bound."""
import os
import re
import socket
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

MAX_PARTS = 64
FLOOD = 1000


def counters(master):
    with urllib.request.urlopen(master.url + "/metrics", timeout=system.QUERY_S) as answer:
        return {name: int(value) for name, value in
                re.findall(r'millrace_chain_counter_total{name="(\w+)"} (\d+)', answer.read().decode())}


def sums(master):
    rows = master.get("/api/v1/traces")["traces"]
    return {status: sum(row[status] for row in rows) for status in ("ok", "failed", "incomplete")}


def test_tokens(chain):
    program = system.compile_program(chain.folder / "forge", [system.SOURCE / "tests/system/join/forge.c"])
    master = chain.master("--join-timeout", "1s", store=chain.folder / "tokens")
    worker = chain.worker(master.endpoint, "--outer", "main")
    run = chain.run([program], endpoint=worker.endpoint)
    check(run.returncode == 0, f"the program ended with {run.returncode}")
    chain.stop(worker)
    # A whole one. Incomplete: the second attach, the one that was made up, the token that nobody attached, the child's attach.
    system.wait_until(lambda: sums(master) == {"ok": 1, "failed": 0, "incomplete": 4}, 30, f"traces {sums(master)}")
    check(counters(master)["join_timed_out"] == 4, f"{counters(master)}")
    ledger = master.get("/api/v1/ledger")["ledger"]
    check(ledger["balanced"] and ledger["lost"] == 0, f"ledger {ledger}")
    chain.stop(master)


def send(connection, number, header):
    connection.sendall(f"{number} {header}\n".encode())
    answer = b""
    while not answer.endswith(b"\n"):
        answer += connection.recv(64)


def test_headers(chain):
    program = system.compile_program(chain.folder / "service", [system.SOURCE / "tests/system/join/service.c"])
    master = chain.master("--join-timeout", "2s", "--max-parts", str(MAX_PARTS), store=chain.folder / "headers")
    worker = chain.worker(master.endpoint, "--outer", "main,run_server", "--max-parts", "16")
    server = subprocess.Popen([program, "server", "backend"], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env=chain.environment(MILLRACE_ENDPOINT=worker.endpoint, MILLRACE_APP="backend"))
    port = int(server.stdout.readline())
    bad = ["x", "00-" + "0" * 32 + "-00f067aa0ba902b7-01", "00-" + "A" * 32 + "-00f067aa0ba902b7-01", "00" * 60,
           "ff-" + "a" * 32 + "-00f067aa0ba902b7-01"]
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for number, header in enumerate(bad):
            send(connection, number, header)
        for number in range(FLOOD):
            send(connection, number, f"00-{'ab' * 16}-{number + 1:016x}-01")
        for number in range(3):  # all of one message
            send(connection, number, f"00-{'cd' * 16}-{1:016x}-01")
    server.stdin.close()
    check(server.wait(60) == 0, f"the server ended with {server.returncode}")
    chain.stop(worker)
    check(master.get("/api/v1/traces")["parts_waiting"] <= MAX_PARTS, "more parts wait than may")
    system.wait_until(lambda: sums(master) == {"ok": 0, "failed": 0, "incomplete": FLOOD + 3}, 30, f"traces {sums(master)}")
    seen = counters(master)
    print({name: count for name, count in seen.items() if name.startswith(("join", "reduce_links"))})
    check(seen["reduce_links_malformed"] == len(bad), f"{seen}")
    check(seen["join_parts_past_limit"] + seen["join_timed_out"] == FLOOD + 3, f"{seen}")
    check(seen["join_timed_out"] <= MAX_PARTS and seen["join_passed_on_early"] > 0, f"{seen}")
    check(seen.get("join_doubles", 0) <= 2, f"{seen}")  # of three: where --max-parts has ended the others, one is none
    parts = master.get("/api/v1/ledger")["parts"]
    reasons = parts["incomplete_by_reason"]
    check(parts["balanced"] and parts["waiting"] == 0 and parts["joined"] == 0 and parts["came"] == parts["incomplete"], f"{parts}")
    check(reasons["parts"] > 0 and reasons["parts"] + reasons.get("time-out", 0) == parts["came"], f"{parts}")
    rows = master.get("/api/v1/traces")
    check(rows["parts_waiting"] == 0 and rows["total"] == 1, f"{rows['total']} joined shapes")
    check(all(row["tree"]["missing"] for row in rows["traces"]), "a root was found")
    chain.stop(master)


def same_send(worker, what):
    run = subprocess.run([system.BIN / "same_send", worker.endpoint, what], capture_output=True, text=True, timeout=60, check=False)
    check(run.returncode == 0, f"same_send {what}: {run.stderr}")


def levels(node):
    """Down the first child of each, whose siblings are edges that lead nowhere."""
    yield node
    if node["children"]:
        check(all(child["missing"] for child in node["children"][1:]), f"{node['children']}")
        yield from levels(node["children"][0])


def test_sends_of_one_id(chain):
    """As no probe makes them. They meet at the master, where what is incomplete ends: it counts them, and goes on."""
    master = chain.master("--join-timeout", "10s", store=chain.folder / "sends")
    worker = chain.worker(master.endpoint)
    same_send(worker, "deep")  # waits
    for what, waiting in (("send", 5), ("send", 6), ("receive", 5)):  # a whole trace, and the second send is alone
        same_send(worker, what)
        system.wait_until(lambda number=waiting: master.get("/api/v1/traces")["parts_waiting"] == number, 30, f"{what}: {waiting} wait")
    system.wait_until(lambda: sums(master) == {"ok": 1, "failed": 0, "incomplete": 2}, 60, f"traces {sums(master)}")
    rows = master.get("/api/v1/traces")["traces"]
    deep = max((list(levels(row["tree"])) for row in rows), key=len)
    check([node["missing"] for node in deep] == [False] * 4 + [True], f"{deep[0]}")
    check([node["edge"]["count"] for node in deep[1:4]] == [1] * 3, f"{deep[0]}")
    parts = master.get("/api/v1/ledger")["parts"]
    check(parts["balanced"] and parts["joined"] == 2 and parts["incomplete"] == 5, f"{parts}")
    # Of each of four parts all sends but one, and the second send of an id; once, though some meet at the worker and at the master.
    check(counters(master)["join_doubles"] == 4 * 63 + 1, f"{counters(master)}")
    chain.stop(worker)
    chain.stop(master)


def test_nothing_on():
    """Without a receiver the same programs do the same, and no header is made."""
    with system.System() as chain:
        program = system.compile_program(chain.folder / "forge", [system.SOURCE / "tests/system/join/forge.c"])
        check(chain.run([program]).returncode == 0, "without a receiver")
        program = system.compile_program(chain.folder / "service", [system.SOURCE / "tests/system/join/service.c"])
        with socket.create_server(("127.0.0.1", 0)) as listener:
            client = subprocess.Popen([program, "client", "1", str(listener.getsockname()[1])], env=chain.environment(),
                                      stdout=subprocess.PIPE)
            connection, _ = listener.accept()
            with connection:
                check(connection.recv(64) == b"0 -\n", "a header came")
                connection.sendall(b"ok\n")
                check(client.wait(60) == 0, "the client")
            client.stdout.close()


def test():
    with system.System() as chain:
        test_tokens(chain)
        test_headers(chain)
        test_sends_of_one_id(chain)
    test_nothing_on()


if __name__ == "__main__":
    system.main(test)
