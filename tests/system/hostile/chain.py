# SPDX-License-Identifier: Apache-2.0
"""The servers under attack, and what of them must hold whatever was sent."""
import json
import re

from system import Failure, check

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
SANITIZER = re.compile(r"runtime error|Sanitizer|assertion")
PATHS = ["paths", "functions", "entries", "open", "shapes", "traces", "exemplars", "landscape", "ledger"]
QUICK = ["--commit-interval", "2ms"]  # a master acknowledges after that


def check_running(*servers):
    for server in servers:
        status = server.process.poll()
        check(status is None, f"{server.name} ended with {status}: {server.log.read_text(errors='replace')[-3000:]}")


def check_log(server):
    """Nothing that a sender said drives the terminal of who reads it, and no check of ours or of a sanitizer failed."""
    log = server.log.read_text(errors="replace")
    for what, pattern in (("a control character", CONTROL), ("a failed check", SANITIZER)):
        found = pattern.search(log)
        check(not found, f"{server.name}: {what} in its log: {found and log[max(found.start() - 300, 0):found.end() + 1500]!r}")


def check_queries(master):
    """All that it shows can be shown."""
    for path in [f"/api/v1/{name}?limit=1000" for name in PATHS] + ["/metrics"]:
        try:
            answer = master.get_text(path)
            check("millrace_" in answer if path == "/metrics" else isinstance(json.loads(answer), dict), f"{path}: {answer[:1000]}")
        except (ValueError, OSError) as failure:  # no UTF-8, no JSON, another status
            raise Failure(f"{path}: {failure!r}") from failure
