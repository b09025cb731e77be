# SPDX-License-Identifier: Apache-2.0
"""Answers that a worker in the middle had are lost with it, as it is killed and has no spool: what is still wanted is answered again, as soon
as another one at its place tells the list, through a worker between as well."""
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_asked as lib  # pylint: disable=wrong-import-position
from test_asked import check, system  # pylint: disable=wrong-import-position

COUNT = 2
HOLDS = ("--delta-interval", "2s")  # what the worker has, it has for so long
PATH = "request/change/write_row"


def kept(worker):
    """Traces that it has sent as answers."""
    found = re.findall(r'^millrace_filter_counter\{.*name="reduce_asked_kept"\} (\d+)$', worker.get_text("/metrics"), flags=re.M)
    return sum(map(int, found))


def run(levels):
    """The uppermost of `levels` workers is killed with the answers."""
    print(f"--- {levels} levels")
    with system.System() as chain:
        binary = system.compile_program(chain.folder / "program", [system.SOURCE / "tests/system/asked/program.c"])
        master = chain.master()
        workers = [chain.worker(master.endpoint, *HOLDS, level=levels)]
        for level in range(levels - 1, 0, -1):
            workers.append(chain.worker(workers[-1].endpoint, "--root", lib.ROOTS, "--metrics", "127.0.0.1:0", level=level))
        program = lib.Program(chain, binary, workers[-1])
        request = lib.ask(master, path=lib.wait_paths(master)[PATH], count=COUNT, ttl_s=600)
        system.wait_until(lambda: kept(workers[-1]) >= COUNT, lib.DEADLINE_S, "answers")
        time.sleep(0.5)  # they go up; if they have gone further, or not so far, they come in any case
        workers[0].process.kill()
        workers[0].process.wait()
        workers[0] = chain.worker(master.endpoint, listen=workers[0].ready["listen"], level=levels)
        row = lib.wait_done(master, request)
        for ident in row["exemplars"]:
            trace = lib.whole(master, ident)
            check(lib.tree(trace) == lib.WRITING, f"an answer: {lib.tree(trace)}")
        program.end()
        for worker in reversed(workers):
            chain.stop(worker)


def test():
    run(levels=2)
    run(levels=3)


if __name__ == "__main__":
    system.main(test)
