# SPDX-License-Identifier: Apache-2.0
"""A master and synthetic workers as real processes, for the tests in this folder."""
import ctypes
import http.client
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

BIN = os.environ["MR_BIN"]
SLOW = 5 if os.environ.get("MR_SANITIZE") else 1


class Master:
    def __init__(self, store, *options, expect_start=True):
        self.store = store
        self.ready = os.path.join(os.path.dirname(store), "ready-%d.json" % id(self))
        self.process = subprocess.Popen(
            [os.path.join(BIN, "test_master_main"), "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0",
             "--store", store, "--ready-file", self.ready, *options],
            stderr=subprocess.PIPE, text=True)
        if expect_start:
            self.wait_ready()

    def wait_ready(self):
        deadline = time.monotonic() + 20 * SLOW
        while not os.path.exists(self.ready):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("the master did not start: " + self.finish()[1])
            time.sleep(0.01)
        with open(self.ready) as file:
            ready = json.load(file)
        self.listen, self.http = ready["listen"], ready["http"]
        assert ready["pid"] == self.process.pid

    def finish(self):
        """Waits for the end: exit status and stderr."""
        try:
            text = self.process.communicate(timeout=30 * SLOW)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            text = self.process.communicate()[1]
        return self.process.returncode, text

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.finish()

    def kill(self):
        self.process.kill()
        self.finish()
        if os.path.exists(self.ready):
            os.unlink(self.ready)

    def request(self, method, path, body=None, headers=None):
        host, port = self.http.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=20 * SLOW)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def get(self, path):
        status, _, body = self.request("GET", path)
        assert status == 200, (path, status, body)
        return json.loads(body)

    def metric(self, name):
        for line in self.request("GET", "/metrics")[2].decode().splitlines():
            if line.startswith("millrace_" + name + " "):
                return float(line.split()[1])
        raise AssertionError("no metric " + name)

    def wait_for(self, what, seconds=20):
        deadline = time.monotonic() + seconds * SLOW
        while time.monotonic() < deadline:
            if what():
                return
            time.sleep(0.05)
        raise AssertionError("it did not come to pass in time")


def die_with_parent():
    """In a new worker, which waits for its master as long as that is away: killed when a test that failed ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def feed(listen, *options):
    return subprocess.Popen([os.path.join(BIN, "test_master_feed"), listen, *map(str, options)],
                            stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent)


def fed(process):
    out = process.communicate(timeout=200 * SLOW)[0]
    return json.loads(out)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="mr-master-")
        self.store = os.path.join(self.folder.name, "store")
        self.masters = []

    def tearDown(self):
        for master in self.masters:
            if master.process.poll() is None:
                master.kill()
            else:
                master.process.stderr.close()
        self.folder.cleanup()

    def master(self, *options, store=None, expect_start=True):
        master = Master(store or self.store, *options, expect_start=expect_start)
        self.masters.append(master)
        return master
