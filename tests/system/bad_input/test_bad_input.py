# SPDX-License-Identifier: Apache-2.0
"""What is wrong from outside, end to end: one clear line, status 2 at the start of a server, and nothing else harmed. Above
all not the traced program: its output and its exit status stay its own."""
import os
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

OUTPUT, STATUS = "100000 roots\n", 7  # of program.c
EVENTS = 2 * (1 + 3 * 100000)
SECONDS = 60
GARBAGE = [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + bytes(64), bytes(range(256)), b"MLRC" + bytes(300)]


def closed_port():
    """A port of 127.0.0.1 on which nothing listens: bound, so nobody else gets it, but not listening."""
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    return held, held.getsockname()[1]


def check_lines(what, text, *words):
    lines = text.splitlines()
    print(f"{what}: {text.strip()}")
    check(len(lines) == 1, f"{what}: {len(lines)} lines on stderr, not one: {text}")
    check(all(word in lines[0] for word in words), f"{what}: does not say {words}: {lines[0]}")


def check_program(what, run):
    check(run.returncode == STATUS, f"{what}: the program's status became {run.returncode}: {run.stderr}")
    check(run.stdout == OUTPUT, f"{what}: the program's output became {run.stdout!r}")


def refused_at_start(chain, what, command, *words):
    run = subprocess.run([system.MILLRACE, *command], env=chain.environment(), capture_output=True, text=True,
                         timeout=SECONDS, stdin=subprocess.DEVNULL, check=False)
    check(run.returncode == 2, f"{what}: status {run.returncode}, not 2: {run.stderr}")
    check(run.stdout == "", f"{what}: stdout is not empty: {run.stdout}")
    check_lines(what, run.stderr, *words)


def no_worker(chain, program):
    for policy in ("drop", "block"):
        held, port = closed_port()
        with held:
            run = chain.run([program], endpoint=f"tcp://127.0.0.1:{port}", seconds=SECONDS, MILLRACE_POLICY=policy,
                            MILLRACE_BLOCK_TIMEOUT="10ms", MILLRACE_EXIT_TIMEOUT="1s")
        check_program(f"no worker, policy {policy}", run)
        check_lines(f"no worker, policy {policy}", run.stderr, "millrace", str(port))


def endpoint_is_no_endpoint(chain, program):
    for endpoint in ("tcp://", "127.0.0.1", "tcp://127.0.0.1:99999", "http://127.0.0.1:80"):
        run = chain.run([program], endpoint=endpoint, seconds=SECONDS)
        check_program(f"endpoint {endpoint}", run)
        check_lines(f"endpoint {endpoint}", run.stderr, "millrace")


def nobody_drives_the_terminal(chain, program):
    """What the program is called, and what a receiver says, goes to the stderr of the traced program."""
    held, port = closed_port()
    with held:
        run = chain.run([program], endpoint=f"tcp://127.0.0.1:{port}", seconds=SECONDS, MILLRACE_EXIT_TIMEOUT="100ms",
                        MILLRACE_APP="a\x1b[31mb\nc")
    check_program("a name that drives the terminal", run)
    check_lines("a name that drives the terminal", run.stderr, "a?[31mb?c")
    run = chain.run([program], endpoint="tcp://127.0.0.1:1\n\x1b[31m", seconds=SECONDS)
    check_program("an endpoint that drives the terminal", run)
    check_lines("an endpoint that drives the terminal", run.stderr, "1??[31m")
    run = chain.run([program], endpoint=f"tcp://127.0.0.1:{port}", seconds=SECONDS, MILLRACE_EXIT_TIMEOUT="100ms",
                    MILLRACE_APP="n" * 2000)
    check(run.stderr.endswith("\n"), "a line that is cut has no end")


def store_not_writable(chain):
    file = chain.folder / "file"
    file.write_text("not a folder\n")
    refused_at_start(chain, "store below a file", ["master", "--listen", "tcp://127.0.0.1:0", "--http",
                                                   "127.0.0.1:0", "--store", str(file / "store")], str(file))
    refused_at_start(chain, "store is a file", ["master", "--listen", "tcp://127.0.0.1:0", "--http",
                                                "tcp://127.0.0.1:0", "--store", str(file)], str(file))
    check(file.read_text() == "not a folder\n", "the file was changed")


def store_in_use(chain, master):
    refused_at_start(chain, "store in use", ["master", "--listen", "tcp://127.0.0.1:0", "--http", "tcp://127.0.0.1:0",
                                             "--store", str(master.store)], str(master.store))


def port_in_use(chain, master):
    port = master.ready["listen"].split(":")[-1]
    refused_at_start(chain, "port in use", ["master", "--listen", f"tcp://127.0.0.1:{port}", "--http",
                                            "tcp://127.0.0.1:0", "--store", str(chain.folder / "other")], port)


def options_that_name_no_place(chain, master):
    """Each line names the option that it is about."""
    port = master.ready["listen"].split(":")[-1]
    worker = ["worker", "--forward", master.endpoint, "--listen", "tcp://127.0.0.1:0", "--spool", "none"]
    for option, value in (("--listen", f"tcp://127.0.0.1:{port}"), ("--metrics", f"127.0.0.1:{port}"),
                          ("--agent", f"tcp://127.0.0.1:{port}")):
        refused_at_start(chain, f"{option} in use", [*worker, option, value], f"{option}: ", port, "port 0")
    refused_at_start(chain, "forward to port 0", [*worker, "--forward", "tcp://127.0.0.1:0"], "--forward: ", "port 0")
    refused_at_start(chain, "another scheme", [*worker, "--listen", "udp://127.0.0.1:0"], "--listen: ", "tcp://")
    command = ["master", "--listen", "tcp://127.0.0.1:0", "--store", str(chain.folder / "other")]
    refused_at_start(chain, "page for everybody", [*command, "--http", "0.0.0.0:0"], "--http: ", "--insecure")
    folder = chain.folder / "a-folder"
    folder.mkdir()
    refused_at_start(chain, "ready file is a folder", [*command, "--http", "127.0.0.1:0", "--ready-file", str(folder)],
                     "--ready-file", "no regular file")


def wait_for_end(connection):
    """The ERROR frame, then the end; or a reset, if bytes came that nobody read any more."""
    with connection:
        try:
            while connection.recv(4096):
                pass
        except ConnectionResetError:
            pass


def garbage_harms_nobody_else(chain, master, program):
    """Bytes that are no frames are cut off; a program that is traced meanwhile comes through whole."""
    worker = chain.worker(master.endpoint)
    host, port = worker.ready["listen"].rsplit(":", 1)
    connections = [socket.create_connection((host, int(port)), timeout=SECONDS) for _ in range(20)]
    for index, connection in enumerate(connections):
        connection.sendall(GARBAGE[index % len(GARBAGE)])
    run = chain.run([program], endpoint=worker.endpoint, seconds=SECONDS)
    check_program("garbage beside it", run)
    check(run.stderr == "", f"garbage beside it: the program's stderr is {run.stderr}")
    for connection in connections:
        wait_for_end(connection)
    chain.stop(worker)
    ledger = master.get("/api/v1/ledger")["ledger"]
    print(f"garbage on 20 connections: cut off; the program's {EVENTS} events: reduced {ledger['reduced']}, "
          f"lost {ledger['lost']}")
    check(ledger["reduced"] == EVENTS and ledger["lost"] == 0, "the program's events are not all there")


def test():
    with system.System() as chain:
        program = system.compile_program(chain.folder / "program", [system.SOURCE / "tests/system/bad_input/program.c"])
        no_worker(chain, program)
        endpoint_is_no_endpoint(chain, program)
        nobody_drives_the_terminal(chain, program)
        store_not_writable(chain)
        master = chain.master()
        store_in_use(chain, master)
        port_in_use(chain, master)
        options_that_name_no_place(chain, master)
        garbage_harms_nobody_else(chain, master, program)
        chain.stop(master)


if __name__ == "__main__":
    system.main(test)
