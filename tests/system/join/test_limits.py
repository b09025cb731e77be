# SPDX-License-Identifier: Apache-2.0
"""A master that is started again with a lower --max-parts than its store has parts that wait: it ends traces as it loads them. These are
counted once, in the store as well: whatever comes then, and with whatever limits it is started next, the account of parts balances and
every request is one trace.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_services as services  # pylint: disable=wrong-import-position
from test_services import check, system  # pylint: disable=wrong-import-position

FIRST, MORE, LIMIT = 60, 20, 16
WAITS = ["--join-timeout", "1h"]


def ask(chain, master, count):
    """Requests to a service without a probe: each is a trace that misses a part."""
    worker = chain.worker(master.endpoint, "--outer", "main,run_client,run_server")
    untraced = services.Service(chain, "untraced", None)
    check(services.client(chain, worker.endpoint, count, untraced.port) == count, "a request was not answered")
    untraced.end()
    chain.stop(worker)


def check_parts(master, came, waiting, **ended):
    parts, counted = master.get("/api/v1/ledger")["parts"], services.sums(master)
    print(parts, counted)
    ended = {reason.replace("_", "-"): count for reason, count in ended.items()}
    check(parts["balanced"], "the account of parts does not balance")
    check((parts["came"], parts["joined"], parts["waiting"], parts["incomplete_by_reason"]) == (came, 0, waiting, ended), f"not {ended}")
    check(counted == (0, 0, sum(ended.values())), f"traces: {counted}")


def test():
    with system.System() as chain:
        system.compile_program(chain.folder / "service", [system.SOURCE / "tests/system/join/service.c"])
        master = chain.master(*WAITS)
        ask(chain, master, FIRST)
        check_parts(master, FIRST, FIRST)
        chain.stop(master)
        master = chain.master(*WAITS, "--max-parts", str(LIMIT), store=master.store)
        check_parts(master, FIRST, LIMIT, parts=FIRST - LIMIT)
        ask(chain, master, MORE)
        ended = FIRST + MORE - LIMIT
        check_parts(master, FIRST + MORE, LIMIT, parts=ended)
        chain.stop(master)
        master = chain.master(*WAITS, store=master.store)
        check_parts(master, FIRST + MORE, LIMIT, parts=ended)
        chain.stop(master)
        master = chain.master("--join-timeout", "100ms", store=master.store)
        system.wait_until(lambda: services.shapes(master)[1] == 0, 30, "traces that time out")
        check_parts(master, FIRST + MORE, 0, parts=ended, time_out=LIMIT)
        chain.stop(master)


if __name__ == "__main__":
    system.main(test)
