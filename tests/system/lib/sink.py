# SPDX-License-Identifier: Apache-2.0
"""A running probe_sink (tests/system/probe/sink.c): a receiver with an account of its own.

    with Sink("--sources", "2") as sink:
        ...                                  # programs, traced to sink.endpoint
        accounts = sink.finish()             # a dict per source; Failure where a probe broke a promise
        streams = lines_of(sink.account, "stream")
"""
import pathlib
import re
import shutil
import subprocess
import tempfile

from system import BIN, check, wait_until

SINK = BIN / "probe_sink"
WAIT_S = 100


def fields(line):
    """key=value pairs of a line, numbers as such; a name, which is last, may hold blanks."""
    pairs = dict(re.findall(r"(\S+?)=(.*?)(?= \S+?=|$)", line))
    return {k: int(v, 0) if re.fullmatch(r"-?(0x)?[0-9a-f]*[0-9][0-9a-f]*", v) and
            re.fullmatch(r"-?\d+|0x[0-9a-f]+", v) else v for k, v in pairs.items()}


def lines_of(text, kind):
    return [fields(line) for line in text.splitlines() if line.startswith(kind + " ")]


class Sink:
    """A running sink; `account` after the end is what it printed."""

    def __init__(self, *options):
        self.folder = tempfile.mkdtemp(prefix="mr-probe-")
        port_file = pathlib.Path(self.folder) / "port"
        # A file, not a pipe that nobody empties before the end.
        self.output = pathlib.Path(self.folder) / "output"
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen([SINK, port_file, *options], stdout=output)
        wait_until(lambda: port_file.exists() or self.process.poll() is not None, WAIT_S, "the sink's port")
        check(self.process.poll() is None, "the sink does not start")
        self.endpoint = "tcp://127.0.0.1:" + port_file.read_text().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder)

    def finish(self, terminate=False):
        if terminate:
            self.process.terminate()
        self.process.wait(WAIT_S)
        self.account = output = self.output.read_text()
        check("fault:" not in output and self.process.returncode == 0, "the sink found faults:\n" + output)
        return lines_of(output, "source")
