# SPDX-License-Identifier: Apache-2.0
"""Random plans (plan.py) of programs whose threads hand work to each other and to other programs, through chains of workers that were
chosen at random: what the master joins is what the programs' own logs say, by an oracle of its own (replay.py, joined.py).

    MR_TEST_SEED      begins there; else with the hour
    MR_PLANS_ROUNDS   how many rounds, each of three chains with three plans each; 1

What a round that failed has left is in BUILD/plans-failed/TEST."""
import os
import pathlib
import random
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import chains  # pylint: disable=wrong-import-position
import plan  # pylint: disable=wrong-import-position
import programs  # pylint: disable=wrong-import-position
import said  # pylint: disable=wrong-import-position
import system  # pylint: disable=wrong-import-position
from system import check

CHAINS_AT_ONCE = 3
PLANS_AT_ONCE = 3
JOIN_TIMEOUT_S = 6  # since the last part of a trace came; a plan's programs end within one or two
CLOCKS = ("tsc", "tsc", "hybrid", "monotonic")
ENCODINGS = ("words", "compact", "compact+zstd")
SHOWN = 20  # differences
HERE = pathlib.Path(__file__).parent
SOURCES = [HERE / name for name in ("program.c", "program_plan.c", "program_log.c")]
KEPT = system.BUILD / "plans-failed"


def first_seed():
    given = os.environ.get("MR_TEST_SEED")
    return int(given, 0) if given else int(time.time()) // 3600


class Run:
    """Plans that run at once through one chain."""

    def __init__(self, chain, binary, name, seed):
        self.name = name
        self.master = chain.master("--join-timeout", f"{JOIN_TIMEOUT_S}s", store=chain.folder / f"store-{name}")
        endpoints, self.workers = chains.CHAINS[name](chain, self.master.endpoint)
        plans = [plan.Plan(f"{seed} {number}") for number in range(PLANS_AT_ONCE)]
        choice = random.Random(seed)
        self.clocks, encoding = choice.choices(CLOCKS, k=3), choice.choice(ENCODINGS)
        self.programs = [programs.Programs(chain, binary, each, f"{name}-{number}-", endpoints, clocks=self.clocks,
                                           MILLRACE_ENCODING=encoding) for number, each in enumerate(plans)]
        print(f"{name}, {' '.join(self.clocks)}, {encoding}: " + "; ".join(" ".join(sorted(each.habits)) or "no habits" for each in plans))

    def wait(self, chain):
        for each in self.programs:
            each.wait()
        for worker in self.workers:
            chain.stop(worker)

    def differences(self):
        system.wait_until(lambda: self.master.get("/api/v1/traces")["parts_waiting"] == 0, 60, f"{self.name}: no part waits")
        streams = [stream for each in self.programs for stream in each.streams(**chains.OPTIONS.get(self.name, {}))]
        print(f"{self.name}: {sum(len(stream.parts) for stream in streams)} parts, traces {said.Said(self.master).sums()}")
        return list(said.differences(self.master, streams, slack=said.HYBRID if "hybrid" in self.clocks else said.PRECISE))


def keep(folder, name, seed, differences):
    kept = KEPT / name
    shutil.copytree(folder, kept, ignore=shutil.ignore_patterns("program", "*.sock"))
    (kept / "differences").write_text("\n".join(differences) + "\n")
    print(f"what is left of it is in {kept}; again: MR_TEST_SEED={seed:#x} ctest -R '^{name}$' -V")


def run_round(name, seed, run):
    """run(chain, seed) gives differences."""
    with system.System() as chain:
        try:
            differences = run(chain, seed)
        except (system.Failure, ValueError) as failure:
            differences = [str(failure)]
        if differences:
            keep(chain.folder, name, seed, differences)
        check(not differences, "\n".join([f"{len(differences)} differences", *differences[:SHOWN]]))


def run_rounds(name, run):
    seed = first_seed()
    shutil.rmtree(KEPT / name, ignore_errors=True)
    for number in range(int(os.environ.get("MR_PLANS_ROUNDS", "1"))):
        print(f"MR_TEST_SEED={seed + number:#x}", flush=True)
        run_round(name, seed + number, run)


def run_chains(chain, seed):
    names = [name for name in chains.CHAINS if shutil.which("haproxy") or name not in chains.NEED_HAPROXY]
    binary = system.compile_program(chain.folder / "program", SOURCES)
    runs = [Run(chain, binary, name, f"{seed} {name}") for name in random.Random(seed).sample(names, CHAINS_AT_ONCE)]
    for run in runs:
        run.wait(chain)
    differences = [f"{run.name}: {line}" for run in runs for line in run.differences()]
    for run in runs:
        chain.stop(run.master)
    return differences


def test():
    run_rounds("plans", run_chains)


if __name__ == "__main__":
    system.main(test)
