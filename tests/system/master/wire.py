# SPDX-License-Identifier: Apache-2.0
"""Workers that behave badly: each costs its own connection and nothing else."""
import os
import socket
import struct
import time
import unittest

from common import Case, SLOW, fed, feed

ERROR = 4


class Wire(Case):
    def connect(self, master):
        host, port = master.listen.rsplit(":", 1)
        peer = socket.create_connection((host, int(port)), timeout=10 * SLOW)
        self.addCleanup(peer.close)
        return peer

    def error_of(self, peer):
        """The text of the ERROR frame that comes before the end."""
        data = b""
        while True:
            try:
                more = peer.recv(65536)
            except ConnectionResetError:
                break
            if not more:
                break
            data += more
        while data:
            _, _, kind, _, length, _, _ = struct.unpack_from("<IBBHIIQ", data)
            payload, data = data[24:24 + length], data[24 + length:]
            if kind == ERROR:
                return payload[4:].decode()
        return None

    def check_unharmed(self, master):
        report = fed(feed(master.listen, "--deltas", 3))
        self.assertEqual((report["acked"], report["drained"]), (4, True))

    def test_noise(self):
        master = self.master()
        for noise in (b"\0" * 200, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 4, os.urandom(500)):
            peer = self.connect(master)
            peer.sendall(noise)
            self.assertIsNotNone(self.error_of(peer))
        self.assertEqual(master.metric("connections_refused_total"), 3)
        self.check_unharmed(master)

    def test_a_delta_that_is_cut(self):
        master = self.master()
        report = fed(feed(master.listen, "--deltas", 3, "--bad"))
        self.assertTrue(report["refused"], report)
        self.assertIn("delta", report["error"])
        self.assertGreaterEqual(master.metric("ingest_bad_frames_total"), 1)
        master.wait_for(lambda: master.metric("deltas_total") > 0)
        self.assertEqual(master.metric("deltas_total"), 3)
        self.check_unharmed(master)

    def test_a_token(self):
        path = os.path.join(self.folder.name, "token")
        with open(path, "w") as file:
            file.write("sesame\n")
        master = self.master("--token-file", path)
        self.assertTrue(fed(feed(master.listen, "--token", "sesame"))["drained"])
        for wrong in ("sesamf", "", "sesame2"):
            report = fed(feed(master.listen, "--token", wrong))
            self.assertEqual((report["refused"], report["acked"]), (True, 0))
            self.assertIn("token", report["error"])

    def test_too_many_connections(self):
        master = self.master("--max-connections", "2")
        held = [self.connect(master) for _ in range(2)]
        master.wait_for(lambda: master.metric("connections") == 2)
        self.assertIn("--max-connections", self.error_of(self.connect(master)))
        for peer in held:
            peer.close()
        master.wait_for(lambda: master.metric("connections") == 0)
        self.check_unharmed(master)

    def test_a_frame_past_the_limit(self):
        master = self.master("--max-frame", "65536")
        peer = self.connect(master)
        peer.sendall(struct.pack("<IBBHIIQ", 0x43524C4D, 1, 1, 0, 65537, 0, 0))
        self.assertIsNotNone(self.error_of(peer))
        self.check_unharmed(master)

    def test_silence(self):
        master = self.master()
        peer = self.connect(master)
        start = time.monotonic()
        self.assertIsNotNone(self.error_of(peer))
        self.assertLess(time.monotonic() - start, 9 * SLOW)


if __name__ == "__main__":
    unittest.main(verbosity=2)
