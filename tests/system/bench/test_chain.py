# SPDX-License-Identifier: Apache-2.0
"""`millrace bench chain`: JSON lines as the other benchmarks' are, a result for each chain and the model, nothing lost."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

KEYS = {"bench", "case", "metric", "value", "unit", "ratio_to", "ratio", "lost"}
COMPILER = r"""#!/bin/sh
[ "$1" != --version ] || exec echo broken 1.0
while [ $# -gt 0 ] && [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\necho it is broken >&2; exit 3\n' >"$2"
chmod +x "$2"
"""


def a_program_that_fails(at):
    """Is no interrupt: status 1, and its own words."""
    compiler = at.folder / "cc"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    run = subprocess.run([system.MILLRACE, "bench", "chain", "--quick", "--out", str(at.folder / "broken")], capture_output=True, text=True,
                         check=False, timeout=100, env=at.environment(CC=compiler))
    check(run.returncode == 1 and "it is broken" in run.stderr, f"{run.returncode}: {run.stderr}")


def test():
    with system.System() as at:
        a_program_that_fails(at)
        environment = at.environment(MILLRACE_STEAL_MAX=100, PKG_CONFIG_PATH=str(system.BUILD / "lib" / "pkgconfig"))
        run = subprocess.run([system.MILLRACE, "bench", "chain", "--loops", "1", "--requests", "4000", "--programs", "2", "--hosts", "50", "--out",
                              str(at.folder / "out"), "--json"], capture_output=True, text=True, check=False, timeout=900, env=environment)
        check(run.returncode == 0, f"{run.returncode}: {run.stderr}")
        rows = [json.loads(line) for line in run.stdout.splitlines()]
        check(rows and all(KEYS <= set(row) and row["bench"] == "chain" for row in rows), "lines of another form")
        check((at.folder / "out" / "chain.jsonl").read_text() == run.stdout, "the file holds something else")
        check("carries" in (at.folder / "out" / "chain.md").read_text(), "no table")
        rates = {row["case"]: row for row in rows if row["metric"] == "events_per_cpu_second"}
        wanted = {f"workers-{workers}/levels-{levels}" for workers in (1, 2, 4) for levels in (1, 2, 3)}
        check(set(rates) == wanted, f"cases {sorted(rates)}")
        check(all(row["value"] > 0 and row["lost"] == 0 and row["ratio"] > 0 for row in rates.values()), f"{rates}")
        model = {row["metric"]: row["value"] for row in rows if row["case"] == "model/hosts-50"}
        check(model["level1_workers"] >= 1 and model["levels"] >= 1 and model["processors_busy"] > 0, f"model {model}")
        check([path.name for path in (at.folder / "out").iterdir() if path.name.startswith("chain.") and path.is_dir()] == [], "scratch is left")


if __name__ == "__main__":
    if os.environ.get("MR_SANITIZE"):
        print("programs are compiled as users do, without a sanitizer: skipped")
        sys.exit(system.SKIP)
    system.main(test)
