# SPDX-License-Identifier: Apache-2.0
"""Three programs that talk over sockets, each with a probe that reports to another worker: client -> frontend -> backend. Two of
the workers forward to one of level 2, the third to the master: each sees one part of a trace, and the traces are whole at the top. A program without a probe in the middle, one that is killed, and forged headers leave traces that are incomplete, counted and
bounded."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

REQUESTS = 200
TIMEOUT = "2s"


class Service:
    def __init__(self, chain, name, endpoint, *arguments):
        environment = chain.environment(MILLRACE_APP=name, MILLRACE_POLICY="block", MILLRACE_BLOCK_TIMEOUT="60s",
                                        **({"MILLRACE_ENDPOINT": endpoint} if endpoint else {}))
        self.process = subprocess.Popen([chain.folder / "service", "server", name, *arguments], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = self.process.stdout.readline().strip()

    def end(self):
        self.process.stdin.close()
        check(self.process.wait(60) == 0, f"a service ended with {self.process.returncode}")

    def kill(self):
        self.process.kill()
        self.process.wait()


def client(chain, endpoint, count, port):
    run = chain.run([chain.folder / "service", "client", str(count), port], endpoint=endpoint, MILLRACE_APP="client")
    check(run.returncode == 0, f"the client: {run.stderr}")
    return int(run.stdout.split()[1])


def name_of(node):
    """With ~ where the part has no shape: its call tree was cut short, or it is none."""
    if node["missing"]:
        return "missing"
    return (f"{node['app']}.{node['site']['name']}" if node["site"] else "nowhere") + ("" if node["shape"] else "~")


def text_of(node):
    below = ",".join(f"{child['kind']}:{text_of(child)}" for child in node["children"])
    return f"{name_of(node)}({below})" if below else name_of(node)


def shapes(master):
    """{joined shape as text: its row}, and how many parts wait."""
    answer = master.get("/api/v1/traces")
    check(len({text_of(row["tree"]) for row in answer["traces"]}) == len(answer["traces"]), "two joined shapes look the same")
    return {text_of(row["tree"]): row for row in answer["traces"]}, answer["parts_waiting"]


def sums(master):
    rows, _ = shapes(master)
    return tuple(sum(row[status] for row in rows.values()) for status in ("ok", "failed", "incomplete"))


WHOLE = "client.request(message:frontend.answer(message:backend.answer))"


class Chain:
    """A master; below it a worker of level 2 with two of level 1, and one more of level 1."""

    def __init__(self, chain, *options):
        self.chain = chain
        self.master = chain.master("--join-timeout", TIMEOUT, *options, store=chain.folder / f"store{len(chain.servers)}")
        self.upper = chain.worker(self.master.endpoint, level=2)
        outer = ["--outer", "main,run_client,run_server"]
        self.low = [chain.worker(self.upper.endpoint, *outer), chain.worker(self.upper.endpoint, *outer)]
        self.direct = chain.worker(self.master.endpoint, *outer)

    def stop(self):
        for worker in (*self.low, self.direct, self.upper):
            self.chain.stop(worker)


def test_whole(chain):
    servers = Chain(chain)
    backend = Service(chain, "backend", servers.direct.endpoint)
    frontend = Service(chain, "frontend", servers.low[1].endpoint, backend.port)
    asked = client(chain, servers.low[0].endpoint, REQUESTS, frontend.port)
    check(asked == REQUESTS, f"only {asked} requests were answered")
    frontend.end()
    backend.end()
    servers.stop()
    rows, waiting = shapes(servers.master)
    print({name: (row["ok"], row["failed"], row["incomplete"]) for name, row in rows.items()})
    check(set(rows) == {WHOLE}, f"joined shapes {sorted(rows)}")
    row = rows[WHOLE]
    check((row["ok"], row["failed"], row["incomplete"]) == (REQUESTS - REQUESTS // 10, REQUESTS // 10, 0), f"{row}")
    check(waiting == 0 and row["slowest"], f"{waiting} parts wait, slowest {row['slowest']}")
    first = row["tree"]["children"][0]
    for child in (first, first["children"][0]):
        check(child["edge"]["count"] == REQUESTS, f"{child['edge']}")
        check(child["edge"]["max_ns"] <= row["max_ns"], "a message took longer than its trace")
    counters = {}
    ledger = servers.master.get("/api/v1/ledger")["ledger"]
    check(ledger["balanced"] and ledger["lost"] == 0, f"ledger {ledger} {counters}")
    chain.stop(servers.master)
    again = chain.master(store=servers.master.store)
    check(shapes(again)[0][WHOLE]["traces"] == REQUESTS, "what the store has")
    chain.stop(again)


def test_no_probe_in_the_middle(chain):
    """The frontend has none: it passes no header on. Client and backend make a trace each; the client's misses a part."""
    servers = Chain(chain)
    backend = Service(chain, "backend", servers.direct.endpoint)
    frontend = Service(chain, "frontend", None, backend.port)
    client(chain, servers.low[0].endpoint, 10, frontend.port)
    system.wait_until(lambda: sums(servers.master)[2] == 10, 30, "traces that time out")
    rows, _ = shapes(servers.master)
    check(set(rows) == {"client.request(message:missing)"}, f"joined shapes {sorted(rows)}")
    row = rows["client.request(message:missing)"]
    check(row["tree"]["children"][0]["edge"] is None and row["time"] is None, f"{row}")
    frontend.end()
    backend.end()
    # What waits survives the end of the master, and is counted once.
    client_only = Service(chain, "frontend", None)
    client(chain, servers.low[0].endpoint, 5, client_only.port)
    client_only.end()
    servers.stop()
    servers.master.process.kill()
    servers.master.process.wait()
    again = chain.master("--join-timeout", TIMEOUT, store=servers.master.store)
    system.wait_until(lambda: sums(again)[2] == 15, 30, "traces that time out after a restart")
    check(shapes(again)[1] == 0, "parts still wait")
    chain.stop(again)
    again = chain.master(store=servers.master.store)
    check(sums(again) == (0, 0, 15) and shapes(again)[1] == 0, f"after one more: {sums(again)}")
    chain.stop(again)


def test_killed_in_the_middle(chain):
    servers = Chain(chain)
    backend = Service(chain, "backend", servers.direct.endpoint)
    frontend = Service(chain, "frontend", servers.low[1].endpoint, backend.port)
    asking = subprocess.Popen([chain.folder / "service", "client", "1000000", frontend.port], text=True, stdout=subprocess.PIPE,
                              env=chain.environment(MILLRACE_APP="client", MILLRACE_ENDPOINT=servers.low[0].endpoint))
    system.wait_until(lambda: sums(servers.master)[0] > 100, 60, "traces")
    frontend.kill()
    asked = int(asking.stdout.readline().split()[1])
    check(asking.wait(60) == 0, "the client")
    backend.end()
    servers.stop()
    system.wait_until(lambda: shapes(servers.master)[1] == 0, 60, "nothing waits")
    rows, _ = shapes(servers.master)
    print({name: (row["ok"], row["failed"], row["incomplete"]) for name, row in rows.items()})
    roots = {name: row for name, row in rows.items() if name.startswith("client.request")}
    check(sum(row["traces"] for row in roots.values()) == asked, f"{asked} requests were sent")
    check(rows[WHOLE]["ok"] > 100 and rows[WHOLE]["incomplete"] == 0, f"{rows[WHOLE]}")
    check(sum(row["incomplete"] for row in roots.values()) >= 1, "none is incomplete")
    chain.stop(servers.master)


def test():
    with system.System() as chain:
        system.compile_program(chain.folder / "service", [system.SOURCE / "tests/system/join/service.c"])
        test_whole(chain)
        test_no_probe_in_the_middle(chain)
        test_killed_in_the_middle(chain)


if __name__ == "__main__":
    system.main(test)
