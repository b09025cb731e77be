# SPDX-License-Identifier: Apache-2.0
"""A relay between senders and receivers that breaks connections, and knows what was in doubt when it did.

Each connection goes to one of the receivers, drawn anew, and is cut after a number of bytes, drawn anew. Some hear nothing of their
receiver for a while before (acknowledgements are lost), and of some the receiver still gets, after the cut, what was on its way.
"""
import random
import select
import socket
import struct
import threading

HEADER = struct.Struct("<IBBHIIQ")
DATA, ACK = range(16, 19), 3
LISTEN_BACKLOG = 64
QUIET_S = 0.1
DOUBLINGS_MAX = 10  # a frame that is larger than what connections pass would never arrive


class Watch:
    """Follows the frames of one direction."""

    def __init__(self):
        self.rest = b""
        self.sent = self.acked = 0

    def see(self, data):
        self.rest += data
        while len(self.rest) >= HEADER.size:
            _, _, kind, _, length, _, sequence = HEADER.unpack_from(self.rest)
            if len(self.rest) < HEADER.size + length:
                return
            if kind in DATA:
                self.sent = max(self.sent, sequence)
            elif kind == ACK:
                self.acked, = struct.unpack_from("<Q", self.rest, HEADER.size)
            self.rest = self.rest[HEADER.size + length:]


class Cutter:
    def __init__(self, targets, seed, cut_after=1 << 20):
        self.targets = targets
        self.random = random.Random(seed)
        self.cut_after = cut_after
        self.is_calm = False  # from now on nothing is cut
        self.cuts = self.cuts_in_doubt = 0  # of connections that had passed a whole frame
        self.doublings = 0  # of cut_after: one more for a connection that had not, one fewer for one that had
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=LISTEN_BACKLOG)
        self.endpoint = "tcp://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            sender, _ = self.listener.accept()
            threading.Thread(target=self.relay, args=(sender,), daemon=True).start()

    def draw(self):
        """Where a connection goes, after how many bytes it is cut, after how many it becomes deaf, and whether the rest arrives."""
        with self.lock:
            target = self.random.choice(self.targets)
            cut = int(self.random.expovariate(1 / (self.cut_after << self.doublings)))
            deaf = self.random.randrange(cut + 1) if self.random.random() < 0.7 else cut
            return target, cut, deaf, self.random.random() < 0.5

    def relay(self, sender):
        target, cut, deaf, arrives = self.draw()
        try:
            receiver = socket.create_connection(target)
        except OSError:
            sender.close()
            return
        up, down, total, pending, has_gap = Watch(), Watch(), 0, [], False
        with sender, receiver:
            try:
                # One that has missed something is cut when it becomes calm, too: no connection goes on with a gap.
                while (total < cut or self.is_calm) and not (self.is_calm and has_gap):
                    ready, _, _ = select.select([sender, receiver], [], [], QUIET_S)
                    if not ready and total >= deaf and not self.is_calm:
                        total = cut  # it waits for what it will not hear
                    if sender in ready:
                        data = sender.recv(1 << 18)
                        if not data:
                            break
                        up.see(data)
                        total += len(data)
                        if arrives and total >= cut and not self.is_calm:
                            pending.append(data)
                            has_gap = True
                        else:
                            receiver.sendall(data)
                    if receiver in ready:
                        data = receiver.recv(1 << 16)
                        if not data:
                            break
                        has_gap |= total >= deaf and not self.is_calm
                        if not has_gap:
                            down.see(data)
                            sender.sendall(data)
                if total >= cut and not self.is_calm:
                    with self.lock:
                        self.cuts += up.sent > 0
                        self.cuts_in_doubt += up.sent > down.acked
                        self.doublings = max(self.doublings - 1, 0) if up.sent else min(self.doublings + 1, DOUBLINGS_MAX)
                    sender.close()
                    for data in pending:  # late, but it arrives
                        receiver.sendall(data)
            except OSError:
                return


def address_of(server):
    host, port = server.ready["listen"].rsplit(":", 1)
    return host, int(port)
