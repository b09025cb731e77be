# SPDX-License-Identifier: Apache-2.0
"""`millrace record` at a terminal, stopped at each of its stages: by Ctrl-C, SIGTERM, SIGHUP, or the end of the terminal. No process and
no file is left but the recording, and of that none where nothing ran. What runs is a program that has been started, or servers."""
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check, wait_until

HERE = pathlib.Path(__file__).parent
SECONDS = 30
CTRL_C, CTRL_BACKSLASH = b"\x03", b"\x1c"


class Recording:
    """A record in a session of its own, whose terminal is `self.terminal`."""

    def __init__(self, chain, *arguments):
        self.folder = chain.folder / "run"
        self.folder.mkdir()
        self.output = self.folder / "data"
        self.places = self.folder / "places"
        self.places.mkdir()
        self.terminal, other = pty.openpty()
        command = [system.MILLRACE, "record", "--output", str(self.output), *map(str, arguments)]
        self.process = subprocess.Popen(["setsid", "--ctty", *command], stdin=other, stdout=other, stderr=other, cwd=self.folder,
                                        env=chain.environment(TMPDIR=self.places))
        os.close(other)
        self.text = ""
        self.done = None

    def wait_for(self, file):
        wait_until(lambda: list(self.folder.glob(file)), SECONDS, file)

    def servers(self):
        found = subprocess.run(["pgrep", "-f", str(self.folder)], capture_output=True, text=True, check=False).stdout
        return [int(pid) for pid in found.split() if int(pid) != self.process.pid]

    def press(self, key):
        os.write(self.terminal, key)

    def signal(self, number):
        self.process.send_signal(number)

    def hang_up(self):
        os.close(self.terminal)
        self.terminal = None

    def read(self):
        while self.terminal is not None and select.select([self.terminal], [], [], 0)[0]:
            try:
                self.text += os.read(self.terminal, 65536).decode()
            except OSError:  # nobody has it open any more
                return

    def end(self):
        """Its exit status, once all that it started has ended, too."""
        def has_ended():
            self.read()
            return self.process.poll() is not None
        wait_until(has_ended, SECONDS, f"the end of {self.process.args}, stopped {self.done}")
        self.read()
        if self.terminal is not None:
            self.hang_up()
        left = subprocess.run(["pgrep", "-fa", str(self.folder)], capture_output=True, text=True, check=False).stdout
        check(left == "", f"processes left behind: {left}")
        check(os.listdir(self.places) == [], f"files left behind: {os.listdir(self.places)}")
        return self.process.returncode


def while_it_runs(run):
    run.wait_for("begun")


def while_servers_start(run):
    run.wait_for("places/*")


def close_terminal(run):
    run.hang_up()


ENDS = [  # what is done, at which stage, the exit status, what is said
    (while_it_runs, lambda run: run.press(CTRL_C), 128 + signal.SIGINT, "Ledger    balanced"),
    (while_it_runs, lambda run: run.press(CTRL_BACKSLASH), 128 + signal.SIGQUIT, "Ledger    balanced"),
    (while_it_runs, lambda run: run.signal(signal.SIGTERM), 128 + signal.SIGTERM, "Ledger    balanced"),
    (while_it_runs, lambda run: run.signal(signal.SIGHUP), 128 + signal.SIGHUP, "Ledger    balanced"),
    (while_it_runs, close_terminal, 1, ""),
    (while_servers_start, lambda run: run.press(CTRL_C), 128 + signal.SIGINT, "interrupted: the program was not started"),
    (while_servers_start, lambda run: run.signal(signal.SIGTERM), 128 + signal.SIGTERM, "interrupted: the program was not started"),
    (while_servers_start, close_terminal, 128 + signal.SIGHUP, ""),
]


def stopped(chain, slow):
    for number, (stage, act, status, said) in enumerate(ENDS):
        run = Recording(chain, slow, "begun")
        run.done = number
        stage(run)
        act(run)
        got = run.end()
        check(got == status and said in run.text, f"case {number}: status {got}, not {status}, or not '{said}': {run.text}")
        has_begun = (run.folder / "begun").exists()
        check(run.output.exists() == has_begun, f"case {number}: a recording of {'something is missing' if has_begun else 'nothing is there'}")
        system.shutil.rmtree(run.folder)


def untraced(chain, slow):
    """With --compare Ctrl-C in the first run is the end of all."""
    run = Recording(chain, "--compare", slow, "begun")
    run.wait_for("begun")
    run.press(CTRL_C)
    check(run.end() == 130 and "interrupted while it ran untraced" in run.text, run.text)
    system.shutil.rmtree(run.folder)


def drain(chain, slow):
    """The program has ended and the master hangs: Ctrl-C ends the wait for the worker, another one that for the master."""
    run = Recording(chain, slow, "begun", 100)
    run.wait_for("begun")
    master = next(pid for pid in run.servers() if "master" in pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0"))
    os.kill(master, signal.SIGSTOP)
    wait_until(lambda: "slow" not in subprocess.run(["ps", "--ppid", str(run.process.pid), "-o", "comm="], capture_output=True, text=True,
                                                    check=False).stdout, SECONDS, "the program ends")

    def has_ended():
        run.press(CTRL_C)
        return run.process.poll() is not None
    wait_until(has_ended, SECONDS // 2, "the end by Ctrl-C")
    check(run.end() == 0 and "not all of it reached the store" in run.text, run.text)
    system.shutil.rmtree(run.folder)


def test():
    with system.System() as chain:
        slow = system.compile_program(chain.folder / "slow", [HERE / "slow.c"])
        stopped(chain, slow)
        untraced(chain, slow)
        drain(chain, slow)


if __name__ == "__main__":
    system.main(test)
