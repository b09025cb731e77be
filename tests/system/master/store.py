# SPDX-License-Identifier: Apache-2.0
"""What the store promises: acknowledged is kept, once, through kill -9 and restarts; one master per store."""
import os
import random
import socket
import sqlite3
import stat
import time
import unittest

from common import Case, SLOW, fed, feed

PATHS = 100


# What feed.c puts into each delta: entry e has 1 + e % 3 calls of each of its paths / 5 paths.
def calls_per_delta(paths):
    return sum(1 + entry % 3 for entry in range(5)) * paths // 5


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Restart(Case):
    def ok_calls(self, master):
        return sum(row["ok"] for row in master.get("/api/v1/functions?limit=10000")["functions"])

    def check_sums(self, master, deltas, paths=PATHS):
        """Every delta counted once, in every table that counts it."""
        self.assertEqual(self.ok_calls(master), deltas * calls_per_delta(paths))
        ledger = master.get("/api/v1/ledger")["ledger"]
        self.assertEqual(ledger["written"], deltas * 3 * 2 * paths)
        self.assertEqual(ledger["reduced"] + ledger["lost"], ledger["written"])
        self.assertTrue(ledger["balanced"])
        entries = master.get("/api/v1/entries")
        self.assertEqual(sum(entries["coverage"]["calls"].values()), deltas * calls_per_delta(paths))
        shapes = master.get("/api/v1/shapes")["shapes"]
        self.assertEqual(sum(row["traces"] for row in shapes), deltas * 9)

    def answers(self, master):
        """All that a restart must not change."""
        paths = ["/api/v1/functions?limit=10000", "/api/v1/entries", "/api/v1/shapes", "/api/v1/landscape",
                 "/api/v1/paths?limit=10000", "/api/v1/ledger"]
        found = [master.get(path) for path in paths]
        for answer in found:
            answer.pop("generation")
        for entry in found[1]["entries"]:
            entry.pop("last_10s")
        found[5]["stages"].pop("master")  # counted by the process
        return found

    def test_a_stopped_master_comes_back_as_it_was(self):
        first = self.master()
        self.assertEqual(fed(feed(first.listen, "--deltas", 20, "--paths", PATHS))["acked"], 21)
        first.wait_for(lambda: first.get("/api/v1/entries")["traces"] >= 20 * 9)
        before = self.answers(first)
        self.assertEqual(first.stop()[0], 0)
        second = self.master()
        self.check_sums(second, 20)
        self.assertEqual(self.answers(second), before)

    def test_a_killed_master_keeps_all_that_it_acknowledged(self):
        first = self.master()
        self.assertEqual(fed(feed(first.listen, "--deltas", 20, "--paths", PATHS))["acked"], 21)
        first.kill()
        self.check_sums(self.master(), 20)

    def test_kill_9_in_mid_run_loses_nothing_and_counts_nothing_twice(self):
        """A worker keeps sending while its master dies and comes back, again and again."""
        seed = random.randrange(1 << 30)
        print("seed", seed)
        rng = random.Random(seed)
        port = free_port()
        options = ["--checkpoint-interval", "60ms", "--commit-interval", "20ms"]
        deltas, address = 400, "127.0.0.1:%d" % port
        master = self.master("--listen", address, *options)
        workers = [feed(address, "--deltas", deltas, "--paths", PATHS, "--rate", 60, "--seed", i)
                   for i in range(2)]
        for _ in range(5):
            time.sleep(rng.uniform(0.2, 0.9))
            master.kill()
            master = self.master("--listen", address, *options)
        done = [fed(worker) for worker in workers]
        for report in done:
            self.assertTrue(report["drained"], report)
            self.assertEqual(report["acked"], deltas + 1)
            self.assertGreater(report["connects"], 1)
        master.kill()  # once more: what was acknowledged last
        self.check_sums(self.master(), 2 * deltas)

    def test_a_worker_that_sends_again_is_not_counted_again(self):
        sender = "--sender", "00112233445566778899aabbccddeeff"
        first = self.master()
        fed(feed(first.listen, "--deltas", 5, "--paths", PATHS, *sender))
        self.assertEqual(first.stop()[0], 0)
        second = self.master()
        fed(feed(second.listen, "--deltas", 5, "--paths", PATHS, *sender))
        self.check_sums(second, 5)

    def test_a_store_that_cannot_be_written_for_a_while(self):
        """Nothing is acknowledged meanwhile, reading stops before memory is full, and then all goes on."""
        deltas, paths = 150, 5000
        master = self.master("--credit", "64M")
        fed(feed(master.listen, "--deltas", 1, "--paths", PATHS))
        other = sqlite3.connect(os.path.join(self.store, "millrace.sqlite"), isolation_level=None)
        master.wait_for(lambda: self.lock(other))
        workers = [feed(master.listen, "--deltas", deltas, "--paths", paths, "--seed", i) for i in range(3)]
        master.wait_for(lambda: master.request("GET", "/readyz")[0] == 503, 30)
        master.wait_for(lambda: master.metric("ingest_pauses_total") > 0, 60)
        self.assertLess(master.metric("store_pending_bytes"), 64 << 20)
        self.assertEqual(master.get("/healthz"), {"status": "alive"})
        time.sleep(6)  # longer than a peer may be silent
        self.assertEqual([worker.poll() for worker in workers], [None] * 3)
        other.execute("ROLLBACK")
        other.close()
        for report in [fed(worker) for worker in workers]:
            self.assertEqual((report["drained"], report["acked"]), (True, deltas + 1), report)
            self.assertEqual(report["connects"], 1)
        master.wait_for(lambda: master.request("GET", "/readyz")[0] == 200)
        status, text = master.stop()
        self.assertEqual(status, 0, text)
        again = self.master()
        self.assertEqual(self.ok_calls(again), calls_per_delta(PATHS) + 3 * deltas * calls_per_delta(paths))

    def test_a_store_that_is_given_up(self):
        """--store-patience: the master ends, with what is kept as it was acknowledged."""
        master = self.master("--store-patience", "1s")
        fed(feed(master.listen, "--deltas", 2, "--paths", PATHS))
        other = sqlite3.connect(os.path.join(self.store, "millrace.sqlite"), isolation_level=None)
        master.wait_for(lambda: self.lock(other))
        worker = feed(master.listen, "--deltas", 1, "--paths", PATHS, "--seed", 7)
        status, text = master.finish()
        self.assertEqual(status, 1, text)
        self.assertIn("--store-patience", text)
        worker.kill()
        worker.communicate()
        other.execute("ROLLBACK")
        other.close()
        self.check_sums(self.master(), 2)

    def fill_with_old_windows(self, rows):
        """As a master leaves them that ran for days: of 10 paths and shapes each, in windows before all others."""
        with sqlite3.connect(os.path.join(self.store, "millrace.sqlite")) as store:
            for table, seconds in ("path_stat", 60), ("shape_stat", 1):
                count = len(store.execute("PRAGMA table_info(%s)" % table).fetchall())
                values = ", ".join(["1"] * (count - 3) + ["randomblob(200)"])
                store.execute("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ? - 1) INSERT INTO %s "
                              "SELECT 1600000000 / 60 * 60 + i / 10 * %d, i %% 10, %s FROM n" % (table, seconds, values), (rows,))
        store.close()

    def test_a_store_of_days_gets_below_its_limit(self):
        """--store-max: the oldest windows go, in a store of a master without a limit; no answer changes."""
        first = self.master("--store-max", "0")
        fed(feed(first.listen, "--deltas", 20, "--paths", PATHS))
        first.wait_for(lambda: first.get("/api/v1/entries")["traces"] >= 20 * 9)
        before = self.answers(first)
        self.assertEqual(first.metric("store_max_bytes"), 0)
        self.assertEqual(first.stop()[0], 0)
        self.fill_with_old_windows(60000)
        size = os.path.getsize(os.path.join(self.store, "millrace.sqlite"))
        self.assertGreater(size, 24 << 20)
        second = self.master("--store-max", "16M")
        second.wait_for(lambda: 0 < second.metric("store_used_bytes") < 0.9 * (16 << 20))
        self.assertEqual(second.metric("store_max_bytes"), 16 << 20)
        self.assertGreater(second.metric("store_trimmed_rows_total"), 20000)
        self.assertEqual(second.metric("store_over_max"), 0)
        self.assertEqual(second.metric("store_failures_total"), 0)
        self.assertEqual(self.answers(second), before)
        fed(feed(second.listen, "--deltas", 5, "--paths", PATHS, "--seed", 2))
        self.check_sums(second, 25)
        self.assertEqual(second.stop()[0], 0)
        self.check_sums(self.master(), 25)
        self.assertLessEqual(os.path.getsize(os.path.join(self.store, "millrace.sqlite")), size)  # it does not shrink

    def lock(self, other):
        try:
            other.execute("BEGIN IMMEDIATE")
            return True
        except sqlite3.OperationalError:
            return False


class Refusal(Case):
    def check_refused(self, master, *words):
        status, text = master.finish()
        self.assertEqual(status, 2, text)
        self.assertEqual(len(text.strip().splitlines()), 1, text)
        for word in words:
            self.assertIn(word, text)

    def test_two_masters_on_one_store(self):
        first = self.master()
        self.check_refused(self.master(expect_start=False), "in use by another master", self.store)
        self.assertEqual(first.get("/readyz"), {"status": "ready"})

    def test_a_store_that_cannot_be_made(self):
        store = os.path.join(self.folder.name, "missing", "store")
        self.check_refused(self.master(store=store, expect_start=False), store, "No such file")

    def test_a_store_that_is_a_file(self):
        with open(self.store, "w"):
            pass
        self.check_refused(self.master(expect_start=False), self.store)

    def test_a_store_that_is_not_writable(self):
        os.mkdir(self.store)
        os.mkdir(os.path.join(self.store, "lock"))  # also root cannot write that
        self.check_refused(self.master(expect_start=False), self.store, "not writable")

    def test_a_store_that_is_no_database(self):
        os.mkdir(self.store)
        with open(os.path.join(self.store, "millrace.sqlite"), "wb") as file:
            file.write(b"this is no database at all, whatever its name says" * 200)
        self.check_refused(self.master(expect_start=False), "not a database")

    def test_a_port_in_use(self):
        first = self.master()
        other = os.path.join(self.folder.name, "other")
        self.check_refused(self.master("--listen", first.listen, store=other, expect_start=False),
                           "in use", "--listen")
        self.check_refused(self.master("--http", first.http, store=other, expect_start=False),
                           "in use", "--http")

    def test_addresses_outside_loopback(self):
        self.check_refused(self.master("--listen", "0.0.0.0:0", expect_start=False), "--listen", "token")
        self.check_refused(self.master("--http", "0.0.0.0:0", expect_start=False), "--http", "insecure")

    def test_options(self):
        self.check_refused(self.master("--comit-interval", "1s", expect_start=False), "--commit-interval")
        self.check_refused(self.master("--listen", "nonsense", expect_start=False), "--listen")
        self.check_refused(self.master("--token-file", "/does/not/exist", expect_start=False), "--token-file")
        self.check_refused(self.master("--store-max", "1M", expect_start=False), "--store-max", "16M", "0")
        self.check_refused(self.master("surplus", expect_start=False), "surplus")

    def test_the_page_and_the_store_survive_a_ready_file_that_cannot_be_written(self):
        self.check_refused(self.master("--ready-file", "/does/not/exist/ready", expect_start=False),
                           "--ready-file")
        master = self.master()
        self.assertTrue(stat.S_ISDIR(os.stat(self.store).st_mode))
        self.assertEqual(master.stop()[0], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
