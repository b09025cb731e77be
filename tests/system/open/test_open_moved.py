# SPDX-License-Identifier: Apache-2.0
"""A worker is stopped, and another one takes its place, as in a rolling update. A transaction that is open all the while stays so, with its
stack; it is whole at last, its calls counted once, with all of their time; and so is what goes on beside it, at both workers. The same with spools, and
with a kill of the second worker behind it, after which the transaction is incomplete, and its calls are right."""
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

STACK = ["transaction", "wait_for_word"]
OPTIONS = ("--outer", "main,work", "--metrics", "127.0.0.1:0")


def transaction(master, longer_than_ns=0):
    """What is told of it, once it is, and has taken so long."""
    for row in master.get("/api/v1/open")["open"]:
        if row["site"]["name"] == "transaction" and row["oldest_for_ns"] > longer_than_ns:
            check([site["name"] for site in row["stack"]] == STACK, f"stack {row['stack']}")
            return row
    return None


def handovers(worker, kind):
    return int(re.search(rf'^millrace_connections\{{event="handovers_{kind}"\}} (\d+)$', worker.get_text("/metrics"), re.M).group(1))


def handovers_in_log(worker):
    return worker.log.read_text().count("it ends incomplete")


def answered(master):
    return sum(row["ok"] for row in master.get("/api/v1/entries")["entries"] if row["name"] == "answer")


def check_calls(master, at_least_ns, is_whole):
    rows = master.get("/api/v1/paths?form=list&limit=1000")["paths"]
    for name in ("main", "work", "transaction", "wait_for_word", "commit"):
        found = [row for row in rows if row["site"]["name"] == name]
        check(len(found) == 1, f"{name}: {len(found)} paths, of {rows}")
        row = found[0]
        check((row["ok"], row["incomplete"]) == (1, 0), f"{name}: {row}")
        check(name == "commit" or row["total_ns"] > at_least_ns, f"{name} took less than {at_least_ns} ns: {row}")
    entries = {row["name"]: row for row in master.get("/api/v1/entries")["entries"]}
    check(set(entries) == {"transaction", "answer"}, f"entry points {sorted(entries)}")
    check(entries["transaction"]["traces"]["whole"] == is_whole, f"{entries['transaction']}")
    check(entries["answer"]["traces"]["incomplete"] <= (not is_whole), f"{entries['answer']}")  # one that was open at the kill
    ledger = master.get("/api/v1/ledger")["ledger"]
    check(ledger["balanced"] and ledger["held"] == 0 and ledger["lost"] == 0, f"{ledger}")


def replace(chain, master, worker, *options):
    """Another worker in its place, once that has ended."""
    chain.stop(worker)
    check(handovers_in_log(worker) == 0, "the sender took along what it had open")
    before = answered(master)
    second = chain.worker(master.endpoint, *OPTIONS, *options, listen=worker.ready["listen"])
    return second, before


def kill(chain, master, worker, *options):
    """And starts it again on its spool: it goes on with what it took over."""
    worker.process.kill()
    worker.process.wait()
    answers = answered(master)
    again = chain.worker(master.endpoint, *OPTIONS, *options, listen=worker.ready["listen"])
    system.wait_until(lambda: answered(master) >= answers + 100, 20, "100 answers behind the kill")
    return again


def run(spools):
    with system.System() as chain:
        program = chain.folder / "program"
        system.compile_program(program, [system.SOURCE / "tests/system/open/moved.c"])
        master = chain.master()
        options = [("--spool", str(chain.folder / f"spool{i}")) if spools else () for i in range(2)]
        first = chain.worker(master.endpoint, *OPTIONS, *options[0])
        traced = subprocess.Popen([program], env=chain.environment(MILLRACE_ENDPOINT=first.endpoint))
        try:
            system.wait_until(lambda: transaction(master), 20, "the transaction is open")
            system.wait_until(lambda: answered(master) >= 100, 20, "100 answers")
            before = transaction(master)["oldest_for_ns"]
            second, answers = replace(chain, master, first, *options[1])
            system.wait_until(lambda: transaction(master, before), 20, "the transaction is open, as the second worker tells")
            check(handovers(second, "taken") == 1, "the second worker was told where the streams stood")
            system.wait_until(lambda: answered(master) >= answers + 100, 20, "100 answers more")
            if spools:
                second = kill(chain, master, second, *options[1])
            traced.send_signal(signal.SIGUSR1)
            check(traced.wait(20) == 0, f"the program ended with {traced.returncode}")
        finally:
            traced.kill()
            traced.wait()
        chain.stop(second)
        check_calls(master, before, is_whole=not spools)  # which calls of it had ended a spool does not say


def test():
    run(spools=False)
    run(spools=True)


if __name__ == "__main__":
    system.main(test)
