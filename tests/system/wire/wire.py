# SPDX-License-Identifier: Apache-2.0
"""The program of these tests (calls.c), what it says of its link, and what a worker counted."""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

SANITIZED = bool(os.environ.get("MR_SANITIZE"))


def build(setup):
    return system.compile_program(setup.folder / "calls", [system.SOURCE / "tests/system/wire/calls.c"])


def link_of(run):
    """The program's last line, as a dict."""
    check(run.returncode == 0, f"the program ended with {run.returncode}: {run.stderr}")
    check(run.stderr == "", f"stderr: {run.stderr}")
    found = re.search(r"^link encoding=(\S+) changes=(\d+) events=(\d+) bytes=(\d+) reason=(.*)$", run.stdout, re.M)
    check(found, f"the program said: {run.stdout}")
    return {"encoding": found[1], "changes": int(found[2]), "events": int(found[3]), "bytes": int(found[4]),
            "reason": found[5]}


def report(store):
    run = subprocess.run([system.MILLRACE, "report", store, "--json", "--functions", "1000", "--entries", "1000"],
                         capture_output=True, text=True, check=False)
    check(run.returncode == 0, f"millrace report: {run.stderr}")
    return json.loads(run.stdout)


def check_ledger(ledger):
    check(ledger["balanced"] and ledger["lost"] == 0 and ledger["held"] == 0, f"the ledger does not balance: {ledger}")
