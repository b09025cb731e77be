# SPDX-License-Identifier: Apache-2.0
"""Stores as nobody of ours has left them: in a folder that cannot be written, cut, with pages and rows that were changed. `millrace report`
reads what can be read, or says in a line what cannot; a master goes on with it, or ends with a line at its start. None of them breaks.

MR_TEST_SEED       what is changed; else the hour decides
MR_HOSTILE_STORES  how many stores (60)
"""
import ctypes
import os
import pathlib
import random as randoms
import shutil
import sqlite3
import subprocess
import sys
import time

sys.path[:0] = [str(pathlib.Path(os.environ["MR_SOURCE"], "tests/system/lib"))]
# pylint: disable=wrong-import-position
import chain as lib
import mutate
import system
from deltas import DICTIONARY
from honest import Honest
from msgpack import pack
from sender import DELTA, DICT, Sender, worker_hello
from system import check

SEED = int(os.environ.get("MR_TEST_SEED") or time.time() // 3600)
STORES = int(os.environ.get("MR_HOSTILE_STORES", "60"))
FILE = "millrace.sqlite"
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1
USAGE = 2
PAGE = 4096
CHANGES = ["NULL", "-1", "0", "1", "9223372036854775807", "-9223372036854775808", "x''", "x'ff'", "randomblob(16)", "randomblob(5000)", "'text'",
           "1.5", "zeroblob(24)"]


def obey_permissions():
    """In the child: root does so no more."""
    if os.geteuid() == 0 and ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0):
        os._exit(system.SKIP)


def report(store, *options, **more):
    return subprocess.run([system.MILLRACE, "report", str(store), *options], capture_output=True, timeout=system.QUERY_S, check=False, **more)


def ledger_of(run):
    return [line for line in run.stdout.splitlines() if line.startswith(b"Ledger")]


def make_store(chain):
    """With a row of each kind."""
    master = chain.master(*lib.QUICK)
    worker = chain.worker(master.endpoint)
    honest = Honest(worker)
    with Sender(master, worker_hello()) as sender:
        sender.data(DICT, pack(DICTIONARY))
        sender.data(DELTA, mutate.DELTA_OF_ALL)
        sender.wait_acknowledged()
        sender.bye()
    honest.finish()
    chain.stop(worker)
    return master


def copy(store, folder):
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(store, folder)
    return folder / FILE


def read_only(chain, master):
    """First with the journal of a master that was killed; then as one leaves it that was stopped."""
    killed, stopped = chain.folder / "killed", chain.folder / "stopped #1?%"
    copy(master.store, killed)
    (killed / (FILE + "-shm")).unlink()
    chain.stop(master)
    copy(master.store, stopped)
    expected = report(master.store)
    for folder in (killed, stopped):
        folder.chmod(0o555)
    run = report(killed, preexec_fn=obey_permissions)
    if run.returncode == system.SKIP:
        print("root cannot be made to obey permissions here: not tried")
        return
    check(run.returncode == 1 and b"not writable: copy it" in run.stderr, f"a journal in a folder that cannot be written: {run}")
    run = report(stopped, preexec_fn=obey_permissions)
    check(run.returncode == 0 and run.stdout == expected.stdout, f"a store in a folder that cannot be written: {run}")
    killed.chmod(0o755)
    run = report(killed)
    check(run.returncode == 0 and ledger_of(run) == ledger_of(expected), f"that journal where the folder can be written: {run}")


def cut(random, file):
    os.truncate(file, random.randrange(os.path.getsize(file)))


def turn_bits(random, file):
    data = bytearray(file.read_bytes())
    for _ in range(random.choice((1, 10, 200))):
        data[random.randrange(100, len(data))] ^= 1 << random.randrange(8)
    file.write_bytes(data)


def swap_pages(random, file):
    data = bytearray(file.read_bytes())
    pages = len(data) // PAGE
    one, other = random.randrange(1, pages) * PAGE, random.randrange(1, pages) * PAGE
    data[one:one + PAGE] = data[other:other + PAGE]
    file.write_bytes(data)


def change_rows(random, file):
    """In ways that SQLite itself does not mind."""
    with sqlite3.connect(file) as database:
        tables = [name for name, in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for _ in range(random.choice((1, 3, 30))):
            table = random.choice(tables)
            column = random.choice([row[1] for row in database.execute(f"PRAGMA table_info({table})")])
            where = random.choice(("1", "random() % 2"))
            try:
                database.execute(f"UPDATE OR IGNORE {table} SET {column} = {random.choice(CHANGES)} WHERE {where}")
            except sqlite3.IntegrityError:
                pass
    database.close()


def drop_rows(random, file):
    with sqlite3.connect(file) as database:
        tables = [name for name, in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = random.choice(tables)
        database.execute(random.choice((f"DELETE FROM {table}", f"DROP TABLE {table}", f"DELETE FROM {table} WHERE random() % 2")))
    database.close()


def check_run(what, status, text):
    """Status 0, or one line or more on stderr; and no check of ours or of a sanitizer failed."""
    check(status in (0, 1, USAGE), f"{what}: status {status}: {text[-3000:]}")
    found = lib.SANITIZER.search(text)
    check(not found, f"{what}: {text[-3000:]}")
    check(status == 0 or text.strip(), f"{what}: status {status} without a word")


def run_master(chain, store, what):
    """Until it ends by itself, or answers all queries."""
    try:
        master = chain.master(*lib.QUICK, store=store)
    except system.Failure as failure:
        check(f"ended with {USAGE}" in str(failure), f"{what}: {failure}")
        check_run(what, USAGE, str(failure))
        return
    lib.check_queries(master)
    lib.check_running(master)
    master.process.terminate()
    check_run(what, master.process.wait(system.STOP_S), master.log.read_text(errors="replace"))


def damaged(chain, store):
    random = randoms.Random(SEED)
    folder = chain.folder / "damaged"
    counts = {}
    for number in range(STORES):
        damage = random.choice((cut, turn_bits, swap_pages, drop_rows, change_rows, change_rows, change_rows))
        what = f"store {number} of seed {SEED}, {damage.__name__}"
        damage(random, copy(store, folder))
        for options in ([], ["--json"]):
            run = report(folder, *options)
            check_run(f"{what}: report {options}", run.returncode, run.stderr.decode(errors="replace"))
        counts[run.returncode] = counts.get(run.returncode, 0) + 1
        if number % 3 == 0:
            run_master(chain, folder, f"{what}: master")
    print(f"MR_TEST_SEED={SEED}: {STORES} damaged stores: status of report {counts}")


def test():
    with system.System() as chain:
        master = make_store(chain)
        read_only(chain, master)
        damaged(chain, master.store)


if __name__ == "__main__":
    system.main(test)
