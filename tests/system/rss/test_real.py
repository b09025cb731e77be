# SPDX-License-Identifier: Apache-2.0
"""As test_rss.py, with SQLite's speedtest1 itself: two side by side, one for each lane, again and again. The RSS of the
worker after 500 million events is at most 1.05 times what it is after the first two programs (46 million events)."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rss  # pylint: disable=wrong-import-position
import system  # pylint: disable=wrong-import-position
from system import check

ARGUMENTS = ["--memdb", "--size", "3"]  # 23 million events
PROGRAMS = 2
OUTER = "testset_*,speedtest1_*"  # as demo.sh: call trees begin at SQLite's interface
BETWEEN_NS = 500_000_000  # bursts that follow soon
FIRST_MAX, LAST = 50_000_000, 500_000_000
OUT = system.BUILD / "sqlite"


def build():
    environment = dict(os.environ, PKG_CONFIG_PATH=str(system.BUILD / "lib" / "pkgconfig"))
    found = subprocess.run([system.SOURCE / "scripts" / "sqlite-build.sh", "--out", OUT, "instrumented"],
                           env=environment, capture_output=True, text=True, check=False)
    if found.returncode == 3:
        print(f"skipped: {found.stderr.strip()}")
        sys.exit(system.SKIP)
    check(found.returncode == 0, f"sqlite-build.sh: {found.stderr[-2000:]}")


def run_programs(environment):
    programs = [subprocess.Popen([OUT / "speedtest1.instrumented", *ARGUMENTS], env=environment,
                                 stdout=subprocess.DEVNULL) for _ in range(PROGRAMS)]
    for program in programs:
        check(program.wait() == 0, f"speedtest1 ended with {program.returncode}")


def test():
    build()
    with system.System() as chain:
        master = chain.master()
        stats = chain.folder / "worker.json"
        worker = chain.worker(master.endpoint, "--stats-file", str(stats), "--log-level", "warn", "--lanes", str(PROGRAMS),
                              "--outer", OUTER)
        environment = chain.environment(MILLRACE_ENDPOINT=worker.endpoint, MILLRACE_POLICY="block",
                                        MILLRACE_BLOCK_TIMEOUT="60s", MILLRACE_EXIT_TIMEOUT="60s")
        found, events = [], 0
        while events < LAST:
            run_programs(environment)
            events = rss.wait_quiet(stats, quiet_ns=BETWEEN_NS)
            if not found or events >= LAST:
                found.append((rss.wait_quiet(stats), worker.rss_kib()))
        check(found[0][0] <= FIRST_MAX, f"the first mark is late, at {found[0][0]:,} events")
        rss.check_growth(found)


if __name__ == "__main__":
    system.main(test)
