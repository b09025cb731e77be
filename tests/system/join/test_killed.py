# SPDX-License-Identifier: Apache-2.0
"""A program that is killed while a thread works for a request: by default, the part that its end cuts off still comes in time, and
there is one trace, incomplete, with all its parts."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
import test_services as services  # pylint: disable=wrong-import-position
from system import check

SENT_S = 2  # until a probe has sent what it recorded, with room for a busy machine


def test():
    with system.System() as chain:
        program = system.compile_program(chain.folder / "killed", [system.SOURCE / "tests/system/join/killed.c"])
        master = chain.master()
        worker = chain.worker(master.endpoint, "--outer", "main,serve")
        run = subprocess.Popen([program], text=True, stdout=subprocess.PIPE,
                               env=chain.environment(MILLRACE_APP="pool", MILLRACE_ENDPOINT=worker.endpoint))
        check(run.stdout.readline() == "working\n", "the program does not get to its work")
        time.sleep(SENT_S)
        run.kill()
        run.wait()
        run.stdout.close()
        system.wait_until(lambda: services.sums(master)[2], 60, "an incomplete trace")
        rows, waiting = services.shapes(master)
        check(set(rows) == {"pool.request(hand-off:pool.work~)"} and waiting == 0, f"{sorted(rows)}, {waiting} parts wait")
        check(services.sums(master) == (0, 0, 1), f"{services.sums(master)}")
        chain.stop(worker)
        chain.stop(master)


if __name__ == "__main__":
    system.main(test)
