# SPDX-License-Identifier: Apache-2.0
"""A host that does not come back: what its worker had acknowledged, and the master never got, is told to the event.

The master stands still, so that a worker of level 1 keeps what it takes; then it is killed and its spool is taken away. The program
goes on at another worker and ends there. What is missing is in doubt first, then lost with a host that is gone; with the
calls that are there it makes up what the program counted itself. When the spool is put back after all, and a worker is
started on it, nothing is missing any more, and nothing is there twice. Another program is killed with its worker: it is silent.
"""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "chain"))
import chain as lib  # pylint: disable=wrong-import-position
from chain import check, system  # pylint: disable=wrong-import-position

BATCHES = lib.BATCHES // 8
GONE_AFTER_S = 3
SILENT_S = 30  # docs/why/2026-11-22-account.md
DEPTH = 6  # calls that a thread of the program has open at most
THREADS = 3


def metric(server, name):
    """Of a name, with its labels where it has some."""
    lines = server.get_text("/metrics").splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith(f"millrace_{name} "))


def happened(worker, event):
    return metric(worker, f'connections{{event="{event}"}}')


class Host:
    """A worker of level 1 and where its spool is."""

    def __init__(self, chain, master, name):
        self.chain, self.master, self.spool = chain, master, chain.folder / name
        self.worker = None
        self.start()

    def start(self, listen="127.0.0.1:0"):
        self.worker = self.chain.worker(self.master.endpoint, "--spool", str(self.spool), "--metrics", "127.0.0.1:0",
                                        "--source-grace", "500ms", listen=listen)

    def die(self):
        """Its disk goes with it; where that is put is told."""
        self.worker.process.kill()
        self.worker.process.wait()
        return self.spool.rename(self.spool.with_name(self.spool.name + "-away"))


def row(master, number=0):
    """The source that came `number` sources before the newest."""
    return master.get("/api/v1/ledger")["sources"][number]


def is_told(master, events):
    """The probe's account is here, and all that living workers have."""
    ledger = row(master)["ledger"]
    return row(master)["state"] == "finished" and ledger["sent"] == events and ledger


def lose_a_program(chain, master):
    """Its worker dies with it; when, and what the master has of it."""
    host = Host(chain, master, "third")
    program = lib.Program(chain, host.worker.endpoint, BATCHES // 8)
    try:
        program.wait_mark(1)
        system.wait_until(lambda: any(source["ledger"]["reduced"] and source["ledger"]["sent"] is not None
                                      for source in master.get("/api/v1/ledger")["sources"]), 60,
                          "events of the program that dies, and what it told at its connection")
        system.wait_until(lambda: lib.NAMES - {"main", "phase", "work"} <= set(lib.calls(master.store)), 60,
                          "its functions' names, by which its calls are told from those of the next")
    finally:
        program.end()
    host.die()
    system.wait_until(lambda: metric(master, "connections") == 0 == metric(master, "store_pending_bytes"), 60, "all that the worker sent")
    return time.monotonic(), lib.calls(master.store)


def lose_a_worker(chain, master, first, second):
    """The program's own counts, when it has ended at `second`; where the spool of `first` went."""
    program = lib.Program(chain, f"{first.worker.endpoint},{second.worker.endpoint}", BATCHES)
    try:
        program.wait_mark(1)
        holder, other = (first, second) if happened(first.worker, "greeted") else (second, first)
        before = happened(holder.worker, "frames")
        os.kill(master.pid, signal.SIGSTOP)
        try:
            program.go_on()
            program.wait_mark(2)
            system.wait_until(lambda: happened(holder.worker, "frames") > before + 20, 60, "frames that the master does not get")
            check(happened(holder.worker, "stalls") == 0, "a spool that holds three times as much was full")
            away = holder.die()
        finally:
            os.kill(master.pid, signal.SIGCONT)
        program.go_on()
        program.wait_mark(3)
        program.go_on()
        return program.own_counts(), holder, other, away
    finally:
        program.end()


def calls_beyond(master, other):
    return {name: count - other.get(name, 0) for name, count in lib.calls(master.store).items()}


def check_gone(chain, master, own, other, events):
    """Told as in doubt, then as gone; to the event what the program counted and nobody brought."""
    ledger = system.wait_until(lambda: is_told(master, events), 60, "the program's own account")
    print(f"told by the program {events}; soon after its end: {ledger}")
    gone = system.wait_until(lambda: (now := row(master)["ledger"])["host_gone"] == now["missing"] > 0 and now, 60, "events told as gone")
    stages = master.get("/api/v1/ledger")["stages"]
    print(f"after {GONE_AFTER_S} s: {gone}\n{stages}")
    check(gone["missing_since_ns"] is not None and not gone["balanced"], "what is missing has no time, or the ledger says that it balances")
    check(gone["reduced"] + gone["lost"] + gone["host_gone"] == events, "the parts do not make up what was sent")
    check(gone["excess"] == 0 and gone["lost"] == 0, "events are there twice, or lost for another reason")
    check(stages["host_gone"] == gone["host_gone"], "the stages tell another number")
    check(metric(master, "events_host_gone") == gone["host_gone"], "the metrics tell another number")
    chain.stop(master)
    found = calls_beyond(master, other)
    missing = sum(own.values()) - sum(found.values())
    print(f"own {own}\nfound {found}: {missing} calls are missing")
    check(all(found.get(name, 0) <= count for name, count in own.items()), "calls are there twice")
    check(abs(2 * missing - gone["host_gone"]) <= 2 * DEPTH * THREADS, f"{missing} calls and {gone['host_gone']} events do not go together")
    check(lib.report(master.store)["ledger"]["missing"] >= gone["missing"], "the report tells less")


def test():
    with system.System() as chain:
        options = ("--host-gone-after", f"{GONE_AFTER_S}s")
        master = chain.master(*options)
        silent_s, other_calls = lose_a_program(chain, master)
        first, second = (Host(chain, master, name) for name in ("first", "second"))
        own, holder, other, away = lose_a_worker(chain, master, first, second)
        check_gone(chain, master, own, other_calls, 2 * sum(own.values()))
        master = chain.master(*options, listen=master.ready["listen"], store=master.store)
        away.rename(holder.spool)
        holder.start()
        ledger = system.wait_until(lambda: (now := row(master)["ledger"])["missing"] == 0 and now, 60, "what the spool has")
        print(f"with the spool: {ledger}")
        check(ledger["balanced"] and ledger["excess"] == 0 and ledger["reduced"] == 2 * sum(own.values()), "it does not balance")
        time.sleep(max(0.0, silent_s + SILENT_S - time.monotonic()))
        lost = system.wait_until(lambda: (now := row(master, 1)["ledger"])["silent_since_ns"] and now, 120, "a silent source")
        print(f"the one that died with its worker: {lost}")
        check(row(master, 1)["state"] == "live" and lost["sent"] is not None, "its state, or what it told at its connection")
        check(master.get("/api/v1/ledger")["stages"]["sources_silent"] == 1, "one source is silent")
        for host in (holder, other):
            chain.stop(host.worker)
        levels = master.get("/api/v1/ledger")["stages"]["levels"]
        print(f"levels: {levels}")
        check(list(levels) == ["1"] and levels["1"]["frames"] > 0 and levels["1"]["claims"] > 0, f"levels: {levels}")
        chain.stop(master)
        found = calls_beyond(master, other_calls)
        check(found == own, f"{found}, not {own}")


if __name__ == "__main__":
    system.main(test)
