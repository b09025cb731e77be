# SPDX-License-Identifier: Apache-2.0
"""The Java peers of `millrace bench overhead`, for real but small: Kieker with its TCP writer and OpenTelemetry's agent, from Maven
Central. Where there is no JDK, no Maven, no way to Maven Central, or a JVM whose agent sends nothing, the test is skipped with
that word; it passes only where both have run. No time is asserted."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))
import system  # noqa: E402
from system import check  # noqa: E402

# The agents are kept from one run of the test to the next.
OUT = system.BUILD / "java-peers"
CALLS, LOOPS = 2000, 2
WAIT_S = 250  # of each of two runs
POINT = "d10-t1-m0"
NONE, KIEKER, TELEMETRY = [f"{name}/{POINT}" for name in ["none/java/none/none", "writing/kieker/monotonic/block",
                                                         "writing/opentelemetry/monotonic/drop"]]
# What bench/peers_java.c says where a peer cannot be had here.
ABSENT = ["no JDK here", "no Maven here", "cannot be fetched from Maven Central", "nothing of it came"]
# What would have the agent send elsewhere, or nothing, and is not heeded.
FOREIGN = {"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:9"}


def skip(why):
    print(f"the Java peers were not run: {why}")
    sys.exit(system.SKIP)


def bench(folder, **variables):
    environment = system.bench_environment(**FOREIGN, **variables)
    arguments = ["--calls", str(CALLS), "--loops", str(LOOPS), "--phase", "none", "--door", "none", "--peer", "kieker,opentelemetry",
                 "--json", "--out", str(OUT)]
    try:
        return subprocess.run([system.MILLRACE, "bench", "overhead", *arguments], cwd=folder, env=environment, capture_output=True,
                              stdin=subprocess.DEVNULL, text=True, timeout=WAIT_S, check=False)
    except subprocess.TimeoutExpired:
        skip(f"Maven Central, or this machine, needs more than {WAIT_S} s for it")


def find(lines, case, metric):
    found = [line for line in lines if line["case"] == case and line["metric"] == metric]
    check(len(found) == 1, f"{len(found)} results {metric} of {case} in {sorted({line['case'] for line in lines})}")
    return found[0]


def check_results(run):
    check(run.returncode == 0, f"ended with {run.returncode}: {run.stderr}")
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    for case in [NONE, KIEKER, TELEMETRY]:
        check(find(lines, case, "response_ns")["value"] > 0 and find(lines, case, "response_ns")["loops"] == LOOPS, case)
    check(find(lines, NONE, "response_ns")["lost"] is None, "what is not monitored has no account")
    for case in [KIEKER, TELEMETRY]:
        check(find(lines, case, "traces_per_second")["ratio_to"] == "none", case)
    # An operation execution record and its head are 56 bytes a call of two events: whatever the queue did, all came.
    sent = find(lines, KIEKER, "bytes_per_event")
    check(sent["value"] >= 28, f"{sent['value']} bytes an event: records of Kieker are missing")
    # Its spans are counted in the requests: some came, and what did not is told as lost.
    made = 2 * 10 * CALLS
    samples = [json.loads(line) for line in (OUT / "samples.jsonl").read_text().splitlines()]
    losses = [sample["lost"] for sample in samples if sample["case"] == TELEMETRY]
    check(len(losses) >= LOOPS and all(0 <= lost < made for lost in losses), f"of {made} events of OpenTelemetry each lost: {losses}")
    check(find(lines, TELEMETRY, "response_ns")["lost"] == sum(losses), f"not the sum of {losses}")
    check(find(lines, TELEMETRY, "bytes_per_event")["value"] > 8, "spans without bytes")


def check_environment():
    environment = json.loads((OUT / "environment.json").read_text())
    text = json.dumps(environment)
    check("net.kieker-monitoring:kieker:" in text and "opentelemetry-javaagent:" in text and "SingleSocketTcpWriter" in text, text)


# A JVM that nobody watches: what the peer is brought in by is left out.
UNWATCHED = """#!/bin/bash
for word; do
    [[ $word == -javaagent:* ]] || words+=("$word")
done
exec {java} "${{words[@]}}"
"""


def check_silence(folder):
    """A peer that does nothing is no peer that costs nothing."""
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(UNWATCHED.format(java=shutil.which("java")))
    java.chmod(0o755)
    run = bench(folder, PATH=f"{java.parent}:{os.environ['PATH']}")
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    for case in [KIEKER, TELEMETRY]:
        check(f"{case}: nothing of it came" in run.stderr, run.stderr)
    check({line["case"] for line in lines} == {NONE}, f"{run.returncode}: {run.stdout}")


def test():
    with system.System() as place:
        run = bench(place.folder)
        for word in ABSENT:
            for line in run.stderr.splitlines():
                if word in line:
                    skip(line)
        check_results(run)
        check_environment()
        check_silence(place.folder)


if __name__ == "__main__":
    system.main(test)
