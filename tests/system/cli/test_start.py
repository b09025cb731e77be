# SPDX-License-Identifier: Apache-2.0
"""What is wrong at the start is told in one clear line, with status 2; help and version go to stdout."""
import contextlib
import os
import socket
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

COMMANDS = ["record", "report", "worker", "master"]


def run(chain, *arguments):
    return subprocess.run([system.MILLRACE, *arguments], env=chain.environment(), cwd=chain.folder, timeout=30,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def refused(chain, arguments, *parts):
    """One line on stderr that holds all the parts, nothing on stdout, status 2."""
    done = run(chain, *arguments)
    told = f"millrace {' '.join(arguments)}: status {done.returncode}, stdout '{done.stdout}', stderr '{done.stderr}'"
    check(done.returncode == 2, told)
    check(done.stdout == "", told)
    check(done.stderr.count("\n") == 1, f"not one line: {told}")
    for part in parts:
        check(part in done.stderr, f"'{part}' is not in it: {told}")


def helps(chain):
    for command in COMMANDS:
        done = run(chain, command, "--help")
        check(done.returncode == 0 and done.stderr == "", f"{command} --help: {done}")
        check(f"millrace {command}" in done.stdout and "--help" in done.stdout, f"{command} --help: {done.stdout}")
        check(max(map(len, done.stdout.splitlines())) <= 90, f"{command} --help is wider than 90 columns")
    done = run(chain, "--help")
    check(done.returncode == 0, f"--help: {done}")
    check(all(command in done.stdout for command in COMMANDS), f"--help names all commands: {done.stdout}")
    done = run(chain, "--version")
    check(done.returncode == 0 and done.stdout.startswith("millrace "), f"--version: {done}")
    check(run(chain).returncode == 2, "no command at all")


def usage(chain):
    refused(chain, ["wroker"], "unknown command", "did you mean 'worker'?")
    refused(chain, ["frobnicate"], "unknown command", "--help")
    refused(chain, ["--versoin"], "unknown option", "--version")
    refused(chain, ["worker", "--lisen", "x"], "unknown option '--lisen'", "did you mean '--listen'?")
    refused(chain, ["master", "--stroe", "x"], "unknown option '--stroe'", "did you mean '--store'?")
    refused(chain, ["record", "--ouptut=x", "true"], "unknown option", "did you mean '--output'?")
    refused(chain, ["report", "--jsno"], "unknown option", "did you mean '--json'?")
    refused(chain, ["worker", "--forward", "127.0.0.1:1", "--lanes", "many"], "--lanes")
    refused(chain, ["worker", "--forward", "127.0.0.1:1", "--placement", "fusde"], "--placement", "fused")
    for option in ["--max-nodes", "--max-frame", "--commit-interval", "--store-sync", "--token-file", "--listen", "--store"]:
        refused(chain, ["master", option, ""], option)
        refused(chain, ["master", f"{option}="], option)
    refused(chain, ["attach", "1", "--only", ""], "--only", "needs a value")
    refused(chain, ["report", "one", "two"], "one directory")
    refused(chain, ["record"], "name a program")
    for command, option in (("record", "--drain-timeout"), ("scale", "--command-timeout")):
        refused(chain, [command, option, "18446744073s"], option, "100000h")


def odd_bytes(chain):
    """What is quoted drives no terminal, ends no line, and does not crowd out what is allowed."""
    odd = "\x1b[2J\nodd"
    for arguments in ([odd], ["--" + odd], ["bench", odd], ["record", "--" + odd], ["record", "--depth", odd], ["record", "--clock", odd],
                      ["report", odd, "two"], ["attach", odd], ["attach", "--prune", odd, "1"], ["attach", "--min-size", odd, "1"],
                      ["scale", "--interval", odd], ["scale", odd], ["bench", "chain", "--loops", odd], ["bench", "probe", "--door", odd]):
        done = run(chain, *arguments)
        check(done.returncode == 2 and done.stderr.count("\n") == 1 and "\x1b" not in done.stderr, f"{done}")
    for option, allowed in (("--depth", "0 to 4096"), ("--clock", "hybrid"), ("--drain-timeout", "such as")):
        refused(chain, ["record", option, "9" * 5000], option, allowed)
    done = run(chain, "report", odd)
    check(done.returncode == 1 and done.stderr == "millrace report: no store in ?[2J?odd: No such file or directory\n", f"{done}")
    refused(chain, ["report", ""], "no name")
    refused(chain, ["record", ""], "name a program")


def addresses(chain):
    refused(chain, ["worker"], "--forward", "needed")
    refused(chain, ["worker", "--forward", "no-port-here"], "--forward")
    refused(chain, ["worker", "--forward", "tcp://does-not-exist.invalid:1"], "--forward", "does-not-exist.invalid")
    refused(chain, ["worker", "--forward", "127.0.0.1:1", "--listen", "127.0.0.1:0,127.0.0.1:0"], "--listen", "one")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused(chain, ["worker", "--forward", "127.0.0.1:1", "--listen", f"tcp://127.0.0.1:{port}"], str(port), "in use")
    for listen in ["tcp://0.0.0.0:0", "tcp://[::]:0"]:
        refused(chain, ["worker", "--forward", "127.0.0.1:1", "--listen", listen], "token", "--insecure")
    missing = str(chain.folder / "no-such-token")
    refused(chain, ["worker", "--forward", "127.0.0.1:1", "--token-file", missing], "--token-file", missing)
    refused(chain, ["worker", "--forward", "127.0.0.1:1", "--outbox", "1M"], "--outbox", "--max-frame")


def nobody_above(chain):
    """A worker whose next level is not there keeps trying; when it is stopped, it says what it gave up."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        worker = chain.worker(f"tcp://127.0.0.1:{unused.getsockname()[1]}", "--drain-timeout", "200ms")
        system.wait_until(lambda: "nobody listens there" in worker.log.read_text(), 10, "the log tells")
        chain.stop(worker, status=1)
        check("gave up" in worker.log.read_text(), worker.log.read_text())


def a_store_of_more_than_the_defaults(chain):
    """A report tells all of a store, whatever the limits of its master were."""
    store = chain.folder / "large"
    chain.stop(chain.master(store=store))
    with contextlib.closing(sqlite3.connect(store / "millrace.sqlite")) as database:
        rows = [(i, i.to_bytes(16, "little"), f"a{i}") for i in range(17_000)]  # of 16,384
        database.executemany("INSERT INTO scope VALUES(?, ?, 1, ?, '', '')", rows)
        database.commit()
    done = run(chain, "report", str(store))
    check(done.returncode == 0 and "Ledger    balanced" in done.stdout, f"{done}")
    chain.stop(chain.master("--max-scopes", "17000", store=store))


def test():
    with system.System() as chain:
        helps(chain)
        usage(chain)
        odd_bytes(chain)
        addresses(chain)
        nobody_above(chain)
        a_store_of_more_than_the_defaults(chain)


if __name__ == "__main__":
    system.main(test)
