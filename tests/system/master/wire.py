# SPDX-License-Identifier: Apache-2.0
"""Workers that behave badly: each costs its own connection and nothing else."""
import os
import select
import socket
import struct
import threading
import time
import unittest

from common import Case, SLOW, fed, feed

HEADER = struct.Struct("<IBBHIIQ")
HELLO, ACK, ERROR, DATA = 1, 3, 4, range(16, 19)


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

    def frames(self, data):
        """(type, sequence, bytes) of each whole frame."""
        while len(data) >= HEADER.size and len(data) >= HEADER.size + HEADER.unpack_from(data)[4]:
            _, _, kind, _, length, _, sequence = HEADER.unpack_from(data)
            yield kind, sequence, data[:HEADER.size + length]
            data = data[HEADER.size + length:]

    def recorded(self):
        """The frames that a worker sends a master in a good connection."""
        master, seen = self.master(), []
        with socket.create_server(("127.0.0.1", 0)) as listener:
            def relay():
                worker, _ = listener.accept()
                receiver = self.connect(master)
                while True:
                    ready, _, _ = select.select([worker, receiver], [], [])
                    data = ready[0].recv(65536)
                    if not data:
                        worker.close()
                        return
                    (receiver if ready[0] is worker else worker).sendall(data)
                    if ready[0] is worker:
                        seen.append(data)
            thread = threading.Thread(target=relay)
            thread.start()
            fed(feed("127.0.0.1:%d" % listener.getsockname()[1], "--deltas", 5))
            thread.join()
        master.stop()
        return list(self.frames(b"".join(seen)))

    def acked(self, peer, sequence):
        """Reads until the frame is acknowledged; the bytes read. Fails when the connection ends before."""
        data = b""
        while not any(kind == ACK and struct.unpack_from("<Q", frame, HEADER.size)[0] >= sequence
                      for kind, _, frame in self.frames(data)):
            more = peer.recv(65536)
            self.assertTrue(more, "the connection ended before frame %d was acknowledged" % sequence)
            data += more

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

    def test_a_worker_that_comes_again_while_its_frames_are_committed(self):
        frames = self.recorded()
        hello = next(frame for kind, _, frame in frames if kind == HELLO)
        data = [(sequence, frame) for kind, sequence, frame in frames if kind in DATA and sequence]
        master = self.master("--commit-interval", "2s", store=self.store + "-2")
        first = self.connect(master)
        first.sendall(hello + b"".join(frame for _, frame in data))
        master.wait_for(lambda: master.metric("ingest_frames_total") == len(data))
        second = self.connect(master)
        second.sendall(hello)
        self.assertIn("connected again", self.error_of(first))
        master.wait_for(lambda: master.metric("store_commits_total") > 0)
        second.sendall(b"".join(frame for _, frame in data))
        self.acked(second, data[-1][0])
        self.assertEqual(master.metric("ingest_duplicates_total"), len(data))
        self.assertEqual(master.metric("ingest_frames_total"), len(data))
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
