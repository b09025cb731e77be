# SPDX-License-Identifier: Apache-2.0
"""The same streams of the same sources, cut otherwise and through other chains: one worker, fused or each filter on a thread of its own,
four lanes, eight that two threads share, two workers behind HAProxy and one above, three levels. What the master has at last is the same to the last byte: ids, counts,
sums, extremes, histograms, joined traces, exemplars, the ledger."""
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import balancer  # pylint: disable=wrong-import-position
import store  # pylint: disable=wrong-import-position
import system  # pylint: disable=wrong-import-position
from system import check

SOURCES = 6
JOIN_TIMEOUT_S = 20  # since the last part came: all have come long before
EXEMPLARS = "8192"  # more than there are shapes
OPTIONS = ["--clock-limit", "0", "--exemplars", EXEMPLARS]


def one_worker(*options):
    def start(chain, forward):
        worker = chain.worker(forward, *OPTIONS, *options)
        return worker.endpoint, [worker]
    return start


def behind_haproxy(chain, forward):
    upper = chain.worker(forward, level=2)
    workers = [chain.worker(upper.endpoint, *OPTIONS, "--lanes", "2") for _ in range(2)]
    return balancer.start(chain, workers), [*workers, upper]


def three_levels(chain, forward):
    top = chain.worker(forward, level=3)
    middle = [chain.worker(top.endpoint, "--max-parts", "16", level=2) for _ in range(2)]
    low = [chain.worker(middle[i % 2].endpoint, *OPTIONS, "--lanes", "1", "--delta-interval", "20ms") for i in range(3)]
    return [worker.endpoint for worker in low], [*low, *middle, top]


CHAINS = {"1 worker": one_worker("--lanes", "1"), "filter per thread": one_worker("--lanes", "1", "--placement", "threads"),
          "4 lanes": one_worker("--lanes", "4", "--drivers", "4"), "8 lanes on 2 drivers": one_worker("--lanes", "8", "--drivers", "2", "--driver-hot", "1"),
          "2 workers behind HAProxy": behind_haproxy, "3 levels": three_levels}


def send(chain, endpoints, seed, cut):
    """All sources at once."""
    endpoints = endpoints if isinstance(endpoints, list) else [endpoints]
    processes = [subprocess.Popen([system.BIN / "split_source", endpoints[i % len(endpoints)], str(seed), str(cut), str(SOURCES), str(i)],
                                  env=chain.environment(), preexec_fn=system.die_with_parent) for i in range(SOURCES)]
    for process in processes:
        check(process.wait(120) == 0, f"a source ended with {process.returncode}")


def run(chain, name, start, seed):
    """The master, which has got all."""
    master = chain.master("--join-timeout", f"{JOIN_TIMEOUT_S}s", "--max-exemplars", EXEMPLARS,
                          store=chain.folder / name.replace(" ", "-"))
    endpoints, workers = start(chain, master.endpoint)
    send(chain, endpoints, seed, random.randrange(1 << 30))
    for worker in workers:
        chain.stop(worker)
    return master


def first_difference(expected, actual):
    for table, rows in expected.items():
        if rows != actual[table]:
            missing, extra = rows - actual[table], actual[table] - rows
            return f"{table}: {sum(missing.values())} rows are missing, such as {min(missing, default=None)}, and " \
                   f"{sum(extra.values())} should not be, such as {min(extra, default=None)}"
    return None


def test():
    seed = int(os.environ.get("MR_TEST_SEED", "0")) or random.randrange(1 << 30)
    print(f"MR_TEST_SEED={seed}")
    with system.System() as chain:
        masters = {}
        for name, start in CHAINS.items():
            if name.endswith("HAProxy") and not shutil.which("haproxy"):
                print(f"no HAProxy here: {name} is left out")
                continue
            masters[name] = run(chain, name, start, seed)
        expected = None
        for name, master in masters.items():
            system.wait_until(lambda at=master: at.get("/api/v1/traces")["parts_waiting"] == 0, 120, f"{name}: no part waits")
            chain.stop(master)
            rows = store.rows(pathlib.Path(master.store))
            print(f"{name}: " + ", ".join(f"{sum(found.values())} {table}" for table, found in rows.items()))
            check(all(rows.values()), f"{name}: a table is empty")
            expected = expected or rows
            difference = first_difference(expected, rows)
            check(difference is None, f"{name} differs from {next(iter(masters))}: {difference}")


if __name__ == "__main__":
    system.main(test)
