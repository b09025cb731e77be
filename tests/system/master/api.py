# SPDX-License-Identifier: Apache-2.0
"""HTTP: what is asked for in good faith and what is not."""
import json
import re
import socket
import unittest

from common import Case, SLOW, fed, feed


class Api(Case):
    def setUp(self):
        super().setUp()
        self.server = self.master()

    def fill(self):
        fed(feed(self.server.listen, "--deltas", 10, "--paths", 100))
        self.server.wait_for(lambda: self.server.get("/api/v1/entries")["traces"] >= 90)

    def test_an_empty_model(self):
        self.assertEqual(self.server.get("/api/v1/functions")["functions"], [])
        self.assertEqual(self.server.get("/api/v1/paths")["paths"], [])
        self.assertEqual(self.server.get("/api/v1/landscape")["hosts"], {})
        self.assertTrue(self.server.get("/api/v1/ledger")["ledger"]["balanced"])

    def test_health(self):
        self.assertEqual(self.server.get("/healthz"), {"status": "alive"})
        self.assertEqual(self.server.get("/readyz"), {"status": "ready"})

    def test_the_answers_agree(self):
        self.fill()
        functions = self.server.get("/api/v1/functions?limit=10000")
        entries = self.server.get("/api/v1/entries")
        paths = self.server.get("/api/v1/paths?form=list&limit=10000")["paths"]
        self.assertEqual(sum(row["calls"] for row in functions["functions"]), functions["calls"])
        self.assertEqual(sum(row["calls"] for row in paths), functions["calls"])
        self.assertEqual(sum(row["self_ns"] for row in paths), functions["self_ns"])
        self.assertEqual(sum(row["count"] for row in entries["entries"]), entries["traces"])
        selfs = [row["self_ns"] for row in functions["functions"]]
        self.assertEqual(selfs, sorted(selfs, reverse=True))
        for row in entries["entries"]:
            self.assertLessEqual(row["p50"]["low_ns"], row["p50"]["high_ns"])
            self.assertLessEqual(row["p99"]["value_ns"], row["max_ns"])

    def test_functions_are_found_among_all(self):
        self.fill()
        every = self.server.get("/api/v1/functions?limit=10000")
        self.assertEqual((every["total"], every["found"]), (len(every["functions"]),) * 2)
        last = every["functions"][-1]["name"]
        first = self.server.get("/api/v1/functions?limit=1&find=%s" % last.upper())
        self.assertEqual((first["total"], first["calls"]), (every["total"], every["calls"]))
        expected = [row for row in every["functions"] if last in row["name"]]
        self.assertEqual((first["functions"], first["found"]), (expected[:1], len(expected)))
        by_calls = self.server.get("/api/v1/functions?sort=calls&find=%s" % last)
        self.assertEqual({row["site"] for row in by_calls["functions"]}, {row["site"] for row in expected})
        module = every["functions"][0]["module"]
        self.assertEqual(self.server.get("/api/v1/functions?find=%s" % module)["found"],
                         sum(module in (row["module"] or "") for row in every["functions"]))
        self.assertEqual(self.server.get("/api/v1/functions?find=no-such-name")["functions"], [])

    def test_trees_and_limits(self):
        self.fill()
        entry = self.server.get("/api/v1/entries?limit=1")["entries"][0]
        whole = self.server.get("/api/v1/paths?entry=%s" % entry["id"])

        def count(nodes):
            return sum(1 + count(node.get("children", [])) for node in nodes)

        self.assertEqual(count(whole["paths"]), entry["paths"])
        cut = self.server.get("/api/v1/paths?entry=%s&limit=7" % entry["id"])
        self.assertEqual((count(cut["paths"]), cut["shown"]), (7, 7))
        flat = self.server.get("/api/v1/paths?entry=%s&depth=0" % entry["id"])["paths"][0]
        self.assertEqual((flat["children"], flat["more"]), ([], 3))
        shape = self.server.get("/api/v1/shapes?entry=%s" % entry["id"])["shapes"][0]
        one = self.server.get("/api/v1/shapes/" + shape["id"])
        self.assertEqual(one["tree"]["site"]["name"], entry["name"])
        buckets = one["scopes"][0]["histogram"]["buckets"]
        self.assertEqual(sum(bucket[2] for bucket in buckets), one["scopes"][0]["traces"])
        source = self.server.get("/api/v1/ledger")["sources"][0]["id"]
        self.assertEqual(self.server.get("/api/v1/ledger?source=" + source)["total"], 1)

    def test_bad_requests_are_named(self):
        self.fill()
        for path, status, word in (
                ("/api/v1/nothing", 404, "no such path"), ("/api/v1/paths/x", 404, "no such path"),
                ("/api/v1/paths?limit=0", 400, "limit"), ("/api/v1/paths?limit=99999999999999999999", 400, "limit"),
                ("/api/v1/paths?limit=-1", 400, "limit"), ("/api/v1/paths?limit=", 400, "limit"),
                ("/api/v1/paths?depth=257", 400, "depth"), ("/api/v1/paths?form=round", 400, "form"),
                ("/api/v1/paths?entry=12", 400, "entry"), ("/api/v1/paths?entry=" + "0" * 32, 404, "entry"),
                ("/api/v1/functions?sort=luck", 400, "sort"), ("/api/v1/functions?Limit=3", 400, "Limit"),
                ("/api/v1/functions?a,b=3", 400, "a,b"), ("/api/v1/shapes/" + "f" * 32, 404, "shape"),
                ("/api/v1/shapes/" + "g" * 32, 400, "hexadecimal"), ("/api/v1/ledger?source=x", 400, "source"),
                ("/api/v1/functions?" + "&".join("p%d=1" % i for i in range(40)), 400, "parameters"),
                ("/..%2f..%2fetc/passwd", 404, "no such path"),
                ("/api/v1/functions?limit=1&limit=2", 400, "'limit' is given twice"),
                ("/api/v1/functions?limit=1&find=%00a", 400, "byte"), ("/api/v1/functions?fi%00nd=a", 400, "byte"),
                ("/metrics?x=%3Cscript%3E", 400, "'x'")):
            answer, headers, body = self.server.request("GET", path)
            self.assertEqual(answer, status, path)
            self.assertEqual(headers["Content-Type"], "application/json")
            self.assertIn(word, json.loads(body)["error"], path)

    def test_only_get_and_head(self):
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            status, headers, _ = self.server.request(method, "/api/v1/functions", body=b"x" * 1000)
            self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"), method)
        status, headers, body = self.server.request("HEAD", "/api/v1/functions")
        self.assertEqual((status, body), (200, b""))
        self.assertGreater(int(headers["Content-Length"]), 10)

    def test_the_page_is_served_under_a_policy(self):
        for path, kind in (("/", "text/html"), ("/style.css", "text/css"), ("/page.js", "text/javascript")):
            status, headers, body = self.server.request("GET", path)
            self.assertEqual(status, 200)
            self.assertTrue(headers["Content-Type"].startswith(kind))
            self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertNotIn(b"<script>", body)
            self.assertIsNone(re.search(rb"(src|href)=\"https?:", body))

    def test_metrics_are_well_formed(self):
        self.fill()
        body = self.server.request("GET", "/metrics")[2].decode()
        for line in body.splitlines():
            self.assertRegex(line, r"^(# (HELP|TYPE) millrace_\w+ .+|millrace_\w+(\{[^}]*\})? -?[0-9.e+-]+)$")
        names = re.findall(r"^# TYPE (\w+)", body, re.M)
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(self.server.metric("deltas_total"), 10)
        self.assertEqual(self.server.metric("events_written_total"), 10 * 600)
        self.assertEqual(self.server.metric("streams_unbalanced"), 0)

    def raw(self, data):
        host, port = self.server.http.rsplit(":", 1)
        peer = socket.create_connection((host, int(port)), timeout=10 * SLOW)
        self.addCleanup(peer.close)
        try:
            peer.sendall(data)
            return peer.recv(65536)
        except OSError:
            return b""

    def test_hostile_bytes_harm_nobody(self):
        for data in (b"\0" * 1000, b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
                     b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 50000,
                     b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
                     b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
            answer = self.raw(data)
            self.assertFalse(answer.startswith(b"HTTP/1.1 200"), data[:40])
        self.assertEqual(self.server.get("/healthz"), {"status": "alive"})

    def test_many_connections_that_say_nothing(self):
        host, port = self.server.http.rsplit(":", 1)
        idle = [socket.create_connection((host, int(port)), timeout=5) for _ in range(100)]
        self.assertEqual(self.server.get("/healthz"), {"status": "alive"})
        for peer in idle:
            peer.close()

    def test_slow_clients_do_not_keep_others_out(self):
        host, port = self.server.http.rsplit(":", 1)
        for _ in range(300):  # more than there are places
            peer = socket.create_connection((host, int(port)), timeout=10 * SLOW)
            self.addCleanup(peer.close)
            peer.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: a")
        self.assertEqual(self.server.get("/healthz"), {"status": "alive"})
        self.assertGreaterEqual(self.server.metric("http_gave_way_total"), 300 - 256)
        # The last one is among those that stayed; its request is answered once it is whole.
        peer.sendall(b"\r\n\r\n")
        self.assertTrue(peer.recv(100).startswith(b"HTTP/1.1 200"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
