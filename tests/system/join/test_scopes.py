# SPDX-License-Identifier: Apache-2.0
"""The same request in two versions of a program, grouped by host: joined traces, exemplars and what is open are told apart, in the report, in
its JSON and at the API."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

VERSIONS = ["1.0", "2.0-rc1"]
REQUESTS = 3


def report(master, *options):
    done = subprocess.run([system.MILLRACE, "report", *options, str(master.store)], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"{done}")
    return done.stdout


def run_versions(chain, program, worker):
    for version in VERSIONS:
        run = chain.run([program, str(REQUESTS), "2", "0"], endpoint=worker.endpoint, MILLRACE_APP="pool",
                        OTEL_RESOURCE_ATTRIBUTES=f"service.version={version}")
        check(run.returncode == 0, f"{run.stderr}")


def check_api(master, host):
    expected = [("pool", version, host) for version in VERSIONS]
    rows = master.get("/api/v1/traces")["traces"]
    scopes = {(row["tree"]["app"], row["tree"]["version"], row["tree"]["host"]) for row in rows}
    check(sorted(scopes) == expected, f"joined traces of {scopes}")
    shapes = master.get("/api/v1/shapes")["shapes"]
    check(sorted({(row["app"], row["version"], row["host"]) for row in shapes}) == expected, f"shapes {shapes}")
    kept = master.get("/api/v1/exemplars")["exemplars"]
    check(sorted({(row["app"], row["version"], row["host"]) for row in kept}) == expected, f"exemplars {kept}")


def check_report(master, host):
    lines = report(master).split("Joined traces")[1].split("\n\n")[0].splitlines()
    for version in VERSIONS:
        own = [line for line in lines if line.split()[-3:] == ["pool", version, host]]
        check(any(line.split()[-4] == "accept_request" for line in own) and len(own) > 1, f"{version}: {lines}")
    traces = json.loads(report(master, "--json"))["joined"]["traces"]
    for trace in traces:
        check(len({(part["app"], part["version"], part["host"]) for part in trace["parts"]}) == 1, f"{trace}")
        check(all(part["call_tree"] and not part["large"] for part in trace["parts"]), f"{trace}")
        check("slowest" not in trace, f"hand-offs have no trace id: {trace}")
    check({trace["parts"][0]["version"] for trace in traces} == set(VERSIONS), f"{traces}")


def check_open(chain, worker, master):
    hung = [subprocess.Popen([chain.folder / "hung"], env=chain.environment(
        MILLRACE_ENDPOINT=worker.endpoint, OTEL_RESOURCE_ATTRIBUTES=f"service.version={version}")) for version in VERSIONS]
    try:
        system.wait_until(lambda: sorted({row["version"] for row in master.get("/api/v1/open")["open"]}) == VERSIONS, 30,
                          "open traces of both versions")
    finally:
        for process in hung:
            process.kill()
            process.wait()


def test():
    with system.System() as chain:
        program = system.compile_program(chain.folder / "pool", [system.SOURCE / "tests/system/join/pool.c"])
        system.compile_program(chain.folder / "hung", [system.SOURCE / "tests/system/open/program.c"])
        master = chain.master()
        worker = chain.worker(master.endpoint, "--group-by", "signature,host", "--outer", "main,serve")
        run_versions(chain, program, worker)
        host = os.uname().nodename
        system.wait_until(lambda: sum(row["ok"] for row in master.get("/api/v1/traces")["traces"]) == REQUESTS * len(VERSIONS), 30,
                          "joined traces")
        check_api(master, host)
        check_open(chain, worker, master)
        chain.stop(worker)  # all of it is in the store
        check_report(master, host)
        chain.stop(master)


if __name__ == "__main__":
    system.main(test)
