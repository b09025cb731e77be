# SPDX-License-Identifier: Apache-2.0
"""MILLRACE_DEPTH, from a program with hooks or patchable sites over a worker to a master: what is above the limit is
recorded, what is below is counted, longjmp does not make the depth drift."""
import json
import os
import pathlib
import platform
import shlex
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

HERE = pathlib.Path(__file__).parent
ALL = {"main": 1, "threads_work": 1, "work": 3, "recurse": 30, "deepest": 30, "last": 13, "leaves": 1, "leave": 1000,
       "raises": 1, "handle": 10}
RECORDED = {  # by limit
    0: ALL,
    2: {"main": 1, "threads_work": 1, "work": 3, "leaves": 1, "raises": 1},
    4: {**ALL, "recurse": 6, "deepest": 3},
}


def patchable(argument):
    environment = dict(os.environ, PKG_CONFIG_PATH=str(system.BUILD / "lib" / "pkgconfig"))
    run = subprocess.run(["pkg-config", argument, "millrace-patchable"], env=environment, capture_output=True, text=True,
                         check=True)
    return shlex.split(run.stdout)


def builds(folder):
    source = HERE / "depths.c"
    yield system.compile_program(folder / "hooks", [source])
    if platform.machine() == "x86_64":
        program = folder / "patchable"
        subprocess.run(["gcc", "-O2", "-g", *patchable("--variable=gcc_specs"), source, "-o", program,
                        *patchable("--libs"), "-pthread", *system.sanitizer_flags()], check=True)
        yield program


def tells(master, limit):
    """The ledger of the running master does."""
    expected = {"limit": limit, "calls_not_recorded": sum(ALL.values()) - sum(RECORDED[limit].values())}
    told = []

    def is_told():
        told[:] = [row["depth"] for row in master.get("/api/v1/ledger")["sources"]]
        return told == [expected]
    system.wait_until(is_told, 60, f"depth {expected} in the ledger")


def runs(chain, program, limit):
    master = chain.master(store=chain.folder / f"{program.name}-{limit}")
    worker = chain.worker(master.endpoint)
    done = chain.run([program], MILLRACE_ENDPOINT=worker.endpoint, MILLRACE_DEPTH=str(limit))
    check(done.returncode == 0 and done.stderr == "", f"{done}")
    chain.stop(worker)
    if limit:
        tells(master, limit)
    chain.stop(master)
    reports = [subprocess.run([system.MILLRACE, "report", *words, master.store], capture_output=True, text=True,
                              check=True).stdout for words in ([], ["--json"])]
    return reports[0], json.loads(reports[1])


def is_limited(chain, program, limit):
    text, told = runs(chain, program, limit)
    where = f"{program.name}, limit {limit}"
    calls = {row["name"]: row["calls"] for row in told["functions"]}
    ledger = told["ledger"]
    check(calls == RECORDED[limit], f"{where}: {calls}")
    check(ledger["balanced"] and ledger["lost"] == 0 and ledger["last"] == 2 * sum(calls.values()) - calls.get("leave", 0),
          f"{where}: {ledger}")
    if limit == 0:
        check(told["depths"] == [] and "Depth" not in text, f"{where}: {told['depths']}\n{text}")
        return
    skipped = sum(ALL.values()) - sum(calls.values())
    check([(row["depth_limit"], row["depth_skipped"]) for row in told["depths"]] == [(limit, skipped)],
          f"{where}: {told['depths']}, not {skipped}")
    check(f"depth limit {limit}: {skipped:,} calls below it" in text, f"{where}:\n{text}")


def by_record(chain):
    """What MILLRACE_DEPTH does, an option of record does."""
    output = chain.folder / "recorded"
    done = chain.run([system.MILLRACE, "record", "--depth", "2", "--output", output, chain.folder / "hooks"])
    check(done.returncode == 0 and "depth limit 2: " in done.stderr, f"record --depth: {done}")
    told = json.loads(subprocess.run([system.MILLRACE, "report", "--json", output], capture_output=True, text=True,
                                     check=True).stdout)
    calls = {row["name"]: row["calls"] for row in told["functions"]}
    check(calls == RECORDED[2], f"record --depth 2: {calls}")
    check([row["depth_limit"] for row in told["depths"]] == [2], f"record --depth 2: {told['depths']}")


WAITS = """#include <unistd.h>
__attribute__((noinline)) int deep(int x) { return x ? deep(x - 1) + 1 : 0; }
int main(void)
{
    int x = 0;
    for (int i = 0; i < 100; i++)
        x += deep(9);
    (void)!write(1, "ready", 5);
    (void)pause();
    return x;
}
"""


def by_dump(chain):
    """A flight recorder's file tells what its depth limit left out, to the last tenth of a second."""
    (chain.folder / "waits.c").write_text(WAITS)
    program = system.compile_program(chain.folder / "waits", [chain.folder / "waits.c"], "-fno-optimize-sibling-calls")
    variables = chain.environment(MILLRACE_POLICY="overwrite", MILLRACE_DEPTH="3", MILLRACE_RECORDER_DIR=chain.folder)
    with subprocess.Popen([program], env=variables, stdout=subprocess.PIPE, preexec_fn=system.die_with_parent) as process:
        try:
            check(process.stdout.read(5) == b"ready", "the program is not ready")
            out = chain.folder / "dumped"

            def depths():
                shutil.rmtree(out, ignore_errors=True)
                done = chain.run([system.MILLRACE, "record", "--dump", str(process.pid), "--recorder-dir", chain.folder, out])
                check(done.returncode == 0, f"{done}")
                told = json.loads(subprocess.run([system.MILLRACE, "report", "--json", out], capture_output=True, text=True,
                                                 check=True).stdout)
                check({row["name"]: row["calls"] for row in told["functions"]}["deep"] == 200, f"{told['functions']}")
                return [(row["depth_limit"], row["depth_skipped"]) for row in told["depths"]]
            system.wait_until(lambda: depths() == [(3, 800)], 60, "the dump's depth limit")
        finally:
            process.kill()


FLUSHES = """#include <millrace/probe.h>
__attribute__((noinline)) int work(int x) { return x + 1; }
int main(void)
{
    int x = work(1);
    return mr_probe_flush(60000) != 0 || work(x) != 3 || mr_probe_flush(60000) != 0;
}
"""


def encodings(chain):
    """How a source sends is told of it, and why, once it is connected."""
    (chain.folder / "flushes.c").write_text(FLUSHES)
    program = system.compile_program(chain.folder / "flushes", [chain.folder / "flushes.c"])
    for encoding, reason in [("auto", "the receiver is on this host"), ("compact", "MILLRACE_ENCODING says so")]:
        master = chain.master(store=chain.folder / encoding)
        worker = chain.worker(master.endpoint)
        done = chain.run([program], MILLRACE_ENDPOINT=worker.endpoint, MILLRACE_ENCODING=encoding)
        check(done.returncode == 0, f"{done}")
        chain.stop(worker)
        wanted = [{"encoding": "words" if encoding == "auto" else encoding, "reason": reason}]
        system.wait_until(lambda m=master, w=wanted: [row["link"] for row in m.get("/api/v1/ledger")["sources"]] == w, 60,
                          f"{wanted} in the ledger")
        chain.stop(master)
        report, told = (subprocess.run([system.MILLRACE, "report", *words, master.store], capture_output=True, text=True,
                                       check=True).stdout for words in ([], ["--json"]))
        links = [(row["encoding"], row["encoding_reason"]) for row in json.loads(told)["links"]]
        check(links == [(wanted[0]["encoding"], reason)], f"{links}")
        check((f"sends {encoding}: {reason}" in report) == (encoding != "auto"), report)


def test():
    with system.System() as chain:
        for program in builds(chain.folder):
            for limit in RECORDED:
                is_limited(chain, program, limit)
        by_record(chain)
        by_dump(chain)
        encodings(chain)
        done = chain.run([chain.folder / "hooks"], MILLRACE_ENDPOINT="tcp://127.0.0.1:1", MILLRACE_DEPTH="deep")
        check(done.returncode == 0 and "MILLRACE_DEPTH" in done.stderr, f"{done}")


if __name__ == "__main__":
    system.main(test)
