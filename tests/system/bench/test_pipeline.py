# SPDX-License-Identifier: Apache-2.0
"""`millrace bench pipeline`: it runs to its end, what it says of streams adds up, nothing is lost, mistakes get one clear line.
No time is asserted."""
import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))
import system  # noqa: E402
from system import check  # noqa: E402

SHORT = ["--loops", "2", "--events", "20000"]


def bench(folder, *arguments):
    environment = system.bench_environment()
    return subprocess.run([system.MILLRACE, "bench", "pipeline", *arguments], cwd=folder, env=environment, capture_output=True,
                          stdin=subprocess.DEVNULL, text=True, timeout=250, check=False)


def results(run):
    check(run.returncode == 0, f"ended with {run.returncode}: {run.stderr}")
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    for line in lines:
        check(line["bench"] == "pipeline" and len(line["case"].split("/")) == 3, line)
        check(line["loops"] >= 1 and not line["partial"], line)
    return lines


def find(lines, case, metric):
    found = [line for line in lines if line["case"] == case and line["metric"] == metric]
    check(len(found) == 1, f"{len(found)} results {metric} of {case}")
    return found[0]


def check_made(folder):
    lines = results(bench(folder, *SHORT, "--quick", "--json"))
    for stream in ["recursion-10", "mixed-100", "mixed-1000", "sqlite-like", "shapes-1000", "never", "never-few"]:
        lane = find(lines, f"lane/{stream}/fused", "ns_per_event")
        check(lane["ratio_to"] == "plain" and lane["ratio"] > 0 and lane["lost"] == 0, lane)
        check(find(lines, f"plain/{stream}/fused", "ns_per_event")["ratio_to"] is None, "plain is compared with itself")
        for part in ["memcpy", "consed", "decode", "reconstruct", "reduce", "delta"]:
            find(lines, f"{part}/{stream}/fused", "ns_per_event")
        bars = [line["ratio_to"] for line in lines if line["case"] == f"analysis/{stream}/fused"]
        check(bars == ["plain", "consed"], bars)
    check(not any(line["case"].startswith("worker/") for line in lines), "a worker with --quick")
    out = folder / "millrace.bench"
    xml.etree.ElementTree.parse(out / "pipeline.svg")
    check("| lane/never/fused" in (out / "pipeline.md").read_text(), "pipeline.md has no row of never")
    check(sorted(path.name for path in out.iterdir()) == ["pipeline.jsonl", "pipeline.md", "pipeline.svg", "programs"], "left behind")


def check_deltas(folder):
    """A stream that plays for longer than from one delta to the next: deltas are made within a play, and nothing is lost by it."""
    arguments = ["--loops", "2", "--stream", "mixed-1000", "--sweep", "none", "--part", "lane", "--json"]
    deltas = []
    for every_ms in ["0", "1"]:
        lines = results(bench(folder, *arguments, "--delta-ms", every_ms))
        check(find(lines, "lane/mixed-1000/fused", "ns_per_event")["lost"] == 0, f"lost with a delta each {every_ms} ms")
        deltas.append(find(lines, "delta/mixed-1000/fused", "deltas")["value"])
    check(deltas[0] == 1 and deltas[1] > 1, f"deltas a loop: {deltas}")


def check_sweeps(folder):
    lines = results(bench(folder, *SHORT, "--stream", "none", "--sweep", "depth,streams,lanes,runner", "--json"))
    for stream in ["depth-1", "depth-10000", "streams-1", "streams-10000"]:
        check(find(lines, f"lane/{stream}/fused", "ns_per_event")["lost"] == 0, stream)
    find(lines, "lanes-1/recursion-10/threads", "wall_ns_per_event")
    check(find(lines, "runner/merge/known", "ns_per_row")["value"] > 0, "merging costs nothing")


def check_recorded(folder):
    """A real program is recorded, played through lanes and a worker; and one is traced end to end."""
    lines = results(bench(folder, *SHORT, "--stream", "requests,mixed-100,never", "--sweep", "end", "--json"))
    check(find(lines, "lane/requests/fused", "ns_per_event")["lost"] == 0, "lost")
    # The worker was sent each of them several times in a loop, as sources that lived one after the other, and reduced all of it.
    for stream in ["requests", "mixed-100", "never"]:
        worker = find(lines, f"worker/{stream}/fused", "ns_per_event")
        check(worker["value"] > 0 and worker["lost"] == 0, worker)
    parts = ["recurring", "once", "paths", "incomplete"]
    for metric in ["calls_percent", "time_percent"]:
        whole = sum(find(lines, f"share/requests/{part}", metric)["value"] for part in parts)
        check(abs(whole - 100) < 1e-6, f"{metric}: {whole}")
    check(find(lines, "share/requests/on-a-path", "time_percent")["value"] >= 95, "time that no path has")
    check(find(lines, "share/requests/all", "traces")["value"] >= 80000, "requests are missing")
    for way in ["discard", "worker"]:
        check(find(lines, f"end/recursion-10/{way}", "ns_per_event")["lost"] == 0, f"{way}: lost")
        check(find(lines, f"end/recursion-10/{way}", "cpu_seconds_program")["value"] > 0, f"{way}: no CPU time")


def check_imagined(folder):
    """What SQLite could have done, of which no call tree comes back: all of it is counted, in a lane and in a worker."""
    fetched = subprocess.run([system.SOURCE / "scripts" / "sqlite-fetch.sh"], capture_output=True, text=True, check=False)
    if fetched.returncode == 3:
        print(f"no never-sqlite: {fetched.stderr.strip()}")
        return
    check(fetched.returncode == 0, fetched.stderr)
    lines = results(bench(folder, *SHORT, "--stream", "never-sqlite", "--sweep", "none", "--sqlite-size", "1", "--sqlite",
                          fetched.stdout.strip(), "--json"))
    for part in ["lane", "worker"]:
        found = find(lines, f"{part}/never-sqlite/fused", "ns_per_event")
        check(found["value"] > 0 and found["lost"] == 0, found)
    check(not any(line["case"].startswith("share/") for line in lines), "shares of what was not recorded")


def check_bad_input(folder):
    for arguments, text in [(["--stream", "nevr"], "--stream: unknown value 'nevr' (did you mean 'never'?)"),
                            (["--sweep", "depht"], "--sweep: unknown value 'depht' (did you mean 'depth'?)"),
                            (["--part", "wroker"], "--part: unknown value 'wroker' (did you mean 'worker'?)"),
                            (["--loops", "0"], "--loops"), (["never"], "unexpected argument 'never'")]:
        run = bench(folder, *arguments)
        check(run.returncode == 2 and text in run.stderr, f"{arguments}: {run.returncode}, {run.stderr}")
    run = bench(folder, "--stream", "none", "--sweep", "none")
    check(run.returncode == 1 and "nothing was measured" in run.stderr, f"{run.returncode}, {run.stderr}")


def test():
    with system.System() as place:
        check_bad_input(place.folder)
        check_made(place.folder)
        check_deltas(place.folder)
        check_sweeps(place.folder)
        check_recorded(place.folder)
        check_imagined(place.folder)


if __name__ == "__main__":
    system.main(test)
