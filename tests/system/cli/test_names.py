# SPDX-License-Identifier: Apache-2.0
"""Names, applications and command lines that hold controls, half characters or markup: in text they drive no terminal and end no line,
in JSON they are what they were, but for bytes that are no character, each of which is a question mark."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check

APP = "app\x1b[2J\nLedger    forged"
NAMES = {"esc\x1b[31m\nLedger    forged", "\u00e9?", "<img src=x onerror=\"alert('1')\">", "\u202egpj.exe"}
NOT_PLAIN = "\x1b\u202e\ufffd"  # the last stands for what is no UTF-8


def names_of(functions):
    return {row["name"] for row in functions if row["calls"] == 1}


def check_text(text):
    check(not any(letter in text for letter in NOT_PLAIN), f"not plain: {text!r}")
    check(sum(line.startswith("Ledger ") for line in text.split("\n")) == 1, f"a forged line: {text}")
    check("esc?[31m?Ledger    forged" in text and "app?[2J?Ledger    forged" in text and "?gpj.exe" in text, f"{text}")


def test_report(chain, program):
    done = subprocess.run([system.MILLRACE, "record", program, b"\xff", "two\nlines"], capture_output=True, cwd=chain.folder, timeout=120,
                          env=chain.environment(MILLRACE_APP=APP), check=False)
    told = done.stderr.decode(errors="replace")
    check(done.returncode == 0 and told.startswith(f"{program} '?' 'two?lines'\nran for "), f"{told}")
    check_text(told)
    done = subprocess.run([system.MILLRACE, "report", "--json"], capture_output=True, cwd=chain.folder, timeout=120,
                          env=chain.environment(), check=True)
    report = json.loads(done.stdout)
    check(NAMES <= names_of(report["functions"]), f"{names_of(report['functions'])}")
    check(report["run"]["command"] == f"{program} '?' 'two\nlines'", f"{report['run']}")
    check({row["app"] for row in report["entries"]} == {APP}, f"{report['entries']}")
    check(report["slowest"]["name"] and report["slowest"]["longest"], f"{report['slowest']}")


def test_api(chain, program):
    master = chain.master()
    worker = chain.worker(master.endpoint)
    check(chain.run([program], endpoint=worker.endpoint, MILLRACE_APP=APP).returncode == 0, "the program")
    chain.stop(worker)
    check(NAMES <= names_of(master.get("/api/v1/functions")["functions"]), f"{master.get('/api/v1/functions')}")
    chain.stop(master)


def test():
    with system.System() as chain:
        program = system.compile_program(chain.folder / "names", [system.SOURCE / "tests/system/cli/names.c"])
        test_report(chain, program)
        test_api(chain, program)


if __name__ == "__main__":
    system.main(test)
