# SPDX-License-Identifier: Apache-2.0
"""The control socket under clients that mean no good, and requests at bad moments: start, fork, end."""
import array
import os
import random
import re
import socket
import subprocess
import threading
import time

import common
import system
from common import Program, attach, connect, own_sockets, say, status_of
from system import check, wait_until

HOSTILE = [
    (b"", b""),
    (b"GET / HTTP/1.1\n\n", b"line 1 is not 'millrace/1 NAME'"),
    (b"millrace/1 on\r\n\n", b"byte 13 is 0x0d"),
    (b"millrace/1 dance\n\n", b"no request 'dance', only status, on, off, prune, flush"),
    (b"millrace/9 status\n\n", b"version 9, this is 1"),
    (b"millrace/1 status\nonly x\n\n", b"'status' does not know 'only'"),
    (b"millrace/1 on\nonly\n\n", b"line 2 is not 'KEY VALUE'"),
    (b"millrace/1 on\nmin-size -1\n\n", b"min-size -1: expected a number"),
    (b"millrace/1 status\n\nmore", b"more behind the empty line"),
    (b"millrace/1 flush\ntimeout-ms 99999999\n\n", b"expected 0 to 60000"),
    (b"x" * 20000, b"the request is too long"),
    (b"millrace/1 on\n" + b"only a\n" * 100 + b"\n", b"more than 64 globs"),
    (bytes(range(256)) * 20 + b"\n\n", b"error"),
]


def test_what_breaks_the_rules_is_refused_with_a_reason(chain):
    with Program(chain.folder / "hooks") as server:
        for data, reason in HOSTILE:
            with connect(server.pid) as connection:
                if not data:
                    continue
                try:
                    answer = say(connection, data)
                except BrokenPipeError:  # it said so before all was sent
                    answer = connection.recv(65536)
                check(reason in answer, f"{data[:60]}: {answer}")
        shuffled = random.Random(7)
        for _ in range(200):
            with connect(server.pid) as connection:
                connection.sendall(bytes(shuffled.randrange(256) for _ in range(shuffled.randrange(1, 300))))
        check(status_of(server.pid)["state"] == "off", "it is on")
        check(server.end() == "", "stderr is not empty")


def test_a_descriptor_that_nobody_wants_is_closed(chain):
    with Program(chain.folder / "hooks") as server:
        count = len(os.listdir(f"/proc/{server.pid}/fd"))
        for _ in range(50):
            with connect(server.pid) as connection, open("/dev/null", "rb") as null:
                passed = array.array("i", [null.fileno()] * 3)
                connection.sendmsg([b"millrace/1 status\n\n"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)])
                check(b"'status' takes no descriptor" in connection.recv(65536), "a descriptor is taken")
        wait_until(lambda: len(os.listdir(f"/proc/{server.pid}/fd")) <= count, common.WAIT_S, "the descriptors' end")
        server.end()


def test_clients_that_say_nothing_hold_nobody_up_for_long(chain):
    with Program(chain.folder / "hooks") as server:
        silent = [connect(server.pid) for _ in range(5)]
        start = time.monotonic()
        check(status_of(server.pid)["pid"] == server.pid, "no answer")
        print(f"  answered behind 5 silent clients after {time.monotonic() - start:.1f} s")
        for connection in silent:
            connection.close()
        server.end()


def test_a_client_that_never_reads(chain):
    with Program(chain.folder / "hooks") as server:
        with connect(server.pid) as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            deaf.sendall(b"millrace/1 status\n\n")
            for _ in range(20):
                status_of(server.pid)
        check(server.end() == "", "stderr is not empty")


def test_a_socket_that_the_program_closes_comes_back(chain):
    if os.environ.get("MR_SANITIZE") == "thread":
        return "skipped: ThreadSanitizer forbids to close what another thread uses"
    source = chain.folder / "closer.c"
    source.write_text("#define _GNU_SOURCE\n#include <stdio.h>\n#include <unistd.h>\n"
                      "int main(void) { for (int fd = 3; fd < 1024; fd++) (void)close(fd); puts(\"ready\");"
                      " (void)fflush(stdout); for (;;) (void)pause(); }\n")
    program = system.compile_program(chain.folder / "closer", [source])
    with Program(program) as closer:
        wait_until(lambda: own_sockets(closer.pid), common.WAIT_S, "another socket")
        check(status_of(closer.pid)["state"] == "off", "no answer")
    return None


def test_every_child_has_a_socket_of_its_own(chain):
    if os.environ.get("MR_SANITIZE"):
        return "skipped: a sanitizer's runtime can be locked for ever in a child that is forked while threads run"
    with Program(chain.folder / "hooks", "children", "100", wait=False) as parent:
        pids = []
        for line in parent.process.stdout:
            if line.startswith("all"):
                break
            pids.append(int(line.split()[1]))
        names = set()
        for pid in [parent.pid, *pids]:
            # A child that has just been forked still has its parent's.
            names.update(wait_until(lambda pid=pid: [name for name in own_sockets(pid) if f"/{pid}-" in name],
                                    common.WAIT_S, f"a socket of {pid}"))
        check(len(names) == 101, f"{len(names)} sockets")
        for pid in (pids[0], pids[-1]):
            check(status_of(pid)["pid"] == pid, "another process answers")
            attach(pid, "--on", "--endpoint", "tcp://127.0.0.1:9")
            check(status_of(pid)["state"] == "on", "a child cannot be switched")
        check(status_of(parent.pid)["state"] == "off", "a child was switched, and its parent is on")
        # The children's end does not wait for the receiver that is not there.
        parent.process.terminate()
        parent.process.wait(common.WAIT_S)
    return None


def switch_for_ever(pid, stop, endpoint, faults):
    """Raw requests, as fast as they are answered."""
    while not stop.is_set():
        for name in (f"on\nendpoint {endpoint}", "off"):
            try:
                with connect_quietly(pid) as connection:
                    answer = say(connection, f"millrace/1 {name}\n\n".encode())
            except OSError:
                continue
            if answer and not answer.startswith(b"millrace/1 ok\n"):
                faults.append(answer)


def connect_quietly(pid):
    connection = socket.socket(socket.AF_UNIX)
    names = own_sockets(pid)
    if not names:
        connection.close()
        raise FileNotFoundError
    connection.connect(names[0])
    connection.settimeout(common.WAIT_S)
    return connection


def test_switches_while_it_forks_and_ends(chain):
    master = chain.master(store=chain.folder / "store-forks")
    worker = chain.worker(master.endpoint)
    for mode in ("forks", "threads"):
        with Program(chain.folder / "hooks", mode) as server:
            stop, faults = threading.Event(), []
            switcher = threading.Thread(target=switch_for_ever, args=(server.pid, stop, worker.endpoint, faults))
            switcher.start()
            try:
                time.sleep(1.5)
                errors = server.end()
            finally:
                stop.set()
                switcher.join()
            faults = [fault for fault in faults if b"the program ends" not in fault]
            check(not faults, f"{mode}: {faults[:3]}")
            check(errors == "", f"{mode}: {errors}")
    chain.stop(worker)
    ledger = master.get("/api/v1/ledger")["ledger"]
    check(ledger["balanced"] and not ledger["held"], f"ledger: {ledger}")
    chain.stop(master)


def test_requests_while_it_starts(chain):
    """From the first moment that there is a process, somebody asks."""
    for _ in range(20):
        with Program(chain.folder / "hooks", wait=False) as server:
            end = time.monotonic() + common.WAIT_S
            said = None
            while said is None and time.monotonic() < end:
                try:
                    with connect_quietly(server.pid) as connection:
                        said = say(connection, b"millrace/1 status\n\n")
                except OSError:
                    continue
            check(said and re.search(rb"^pid \d+$", said, re.M), f"an early request: {said}")
            server.process.stdout.readline()  # until then SIGTERM is not caught
            server.end()


if __name__ == "__main__":
    common.run_tests(globals())
