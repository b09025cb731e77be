# SPDX-License-Identifier: Apache-2.0
"""The same calls sent as words, compact and compressed come out the same at the master: functions, call trees, shapes.

And: an option that does not exist is one line; what the program says of its link is what the worker counted.
"""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import wire as lib  # pylint: disable=wrong-import-position
from wire import check, system  # pylint: disable=wrong-import-position

ROUNDS = 2_000 if lib.SANITIZED else 30_000
ENCODINGS = ["words", "compact", "compact+zstd"]


def results(report):
    """What must not depend on the encoding: all but times."""
    functions = {row["name"]: (row["ok"], row["failed"], row["incomplete"]) for row in report["functions"]}
    entries = sorted((row["name"], row["shapes"], tuple(sorted(row["coverage"].items()))) for row in report["entries"])
    return functions, entries, report["ledger"]["last"]


def send(encoding):
    with system.System() as setup:
        stats = setup.folder / "stats.json"
        master = setup.master()
        worker = setup.worker(master.endpoint, "--stats-file", str(stats))
        run = setup.run([lib.build(setup), "count", str(ROUNDS)], endpoint=worker.endpoint, MILLRACE_ENCODING=encoding)
        link = lib.link_of(run)
        setup.stop(worker)
        counters = json.loads(stats.read_text())["counters"]
        log = worker.log.read_text()
        setup.stop(master)
        report = lib.report(master.store)
    lib.check_ledger(report["ledger"])
    words, compact = counters["decode_words_events"], counters["decode_compact_events"]
    # Chunks of a few events stay words, where that is smaller.
    check(words + compact == link["events"] > 0, f"{encoding}: {words} and {compact} events arrived of {link}")
    check((words if encoding != "words" else compact) <= 100, f"{encoding}: {words} words, {compact} compact")
    # Once, though the source tells it at its end again, with its sums.
    check(log.count(f"sends {link['encoding']}: MILLRACE_ENCODING says so") == 1, f"the worker does not say so, or again: {log}")
    size = link["bytes"] / link["events"]
    print(f"{encoding}: {link['events']} events, {size:.2f} bytes each")
    return link, size, results(report)


def same_results():
    found = [send(encoding) for encoding in ENCODINGS]
    for encoding, (link, _, result) in zip(ENCODINGS, found):
        check(link["encoding"] == encoding and link["changes"] == 0, f"asked for {encoding}: {link}")
        check(result == found[0][2], f"{encoding} became\n{result}\nwords\n{found[0][2]}")
    sizes = [size for _, size, _ in found]
    check(8 <= sizes[0] and sizes[1] < sizes[0] / 2 and sizes[2] < sizes[1], f"bytes per event: {sizes}")


def auto_is_words_on_one_host():
    with system.System() as setup:
        master = setup.master()
        worker = setup.worker(master.endpoint)
        link = lib.link_of(setup.run([lib.build(setup), "count", "1000"], endpoint=worker.endpoint))
        check(link["encoding"] == "words" and link["reason"] == "the receiver is on this host", f"auto became {link}")
        setup.stop(worker)
        check(" sends " not in worker.log.read_text(), "what all do makes a line for each program")


def bad_option_is_one_line():
    with system.System() as setup:
        run = setup.run([lib.build(setup), "count", "1"], endpoint="tcp://127.0.0.1:1", MILLRACE_ENCODING="gzip")
        lines = run.stderr.splitlines()
        check(run.returncode == 0 and len(lines) == 1, f"stderr: {run.stderr}")
        check("encoding" in lines[0].lower() and "gzip" in lines[0] and "compact+zstd" in lines[0], lines[0])


def test():
    bad_option_is_one_line()
    auto_is_words_on_one_host()
    same_results()


if __name__ == "__main__":
    system.main(test)
