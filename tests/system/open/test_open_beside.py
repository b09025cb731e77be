# SPDX-License-Identifier: Apache-2.0
"""A request that hangs is seen all the time while others are answered beside it: by a program in another lane of its worker, and by one of
another worker below the same one. What is open in each is told each second; what the busy one tells comes ten times as often."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

OPEN = {"handle_order": 2, "handle_search": 1}
IN_A_ROW = 50


def hanging(master):
    rows = master.get("/api/v1/open")["open"]
    return {row["site"]["name"]: row["open"] for row in rows if row["site"]["name"] in OPEN}


def begun(master):
    names = {row["name"] for row in master.get("/api/v1/entries")["entries"] if row["count"] > 0}
    return {"handle_ping", *OPEN} <= names


class Watch:
    """So many answers in a row that tell of all that hangs."""

    def __init__(self, master):
        self.master = master
        self.row = 0

    def look(self):
        self.row = self.row + 1 if hanging(self.master) == OPEN else 0
        return self.row == IN_A_ROW


def watch(chain, master, hung_at, busy_at):
    hung = subprocess.Popen([chain.folder / "program"], env=chain.environment(MILLRACE_ENDPOINT=hung_at.endpoint))
    busy = subprocess.Popen([chain.folder / "busy"], env=chain.environment(MILLRACE_ENDPOINT=busy_at.endpoint), stdin=subprocess.PIPE)
    try:
        system.wait_until(lambda: begun(master), 30, "both programs' requests")
        answers = Watch(master)
        system.wait_until(answers.look, 60, f"{IN_A_ROW} answers in a row with all that hangs")
        hung.kill()
        hung.wait()
        if hung_at is not busy_at:  # it knows of no open trace any more, and the one above hears so, while the other goes on
            chain.stop(hung_at)
            system.wait_until(lambda: hanging(master) == {}, 30, "nothing hangs")
        check(busy.poll() is None, f"the busy program ended with {busy.returncode}")
    finally:
        hung.kill()
        hung.wait()
        busy.stdin.close()
        busy.wait(60)


def test():
    for is_two_workers in (False, True):
        with system.System() as chain:
            for name in ("program", "busy"):
                system.compile_program(chain.folder / name, [system.SOURCE / "tests/system/open" / f"{name}.c"])
            master = chain.master()
            options = ("--outer", "main,serve")
            if is_two_workers:
                upper = chain.worker(master.endpoint, level=2)
                watch(chain, master, chain.worker(upper.endpoint, *options), chain.worker(upper.endpoint, *options))
            else:
                worker = chain.worker(master.endpoint, "--lanes", "2", *options)
                watch(chain, master, worker, worker)


if __name__ == "__main__":
    system.main(test)
