# SPDX-License-Identifier: Apache-2.0
"""Policy overwrite: what a process recorded last is there when it is killed, crashes, hangs or goes on."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from recorded import Subject, check, is_root, millrace, read, wait_until
from system import BIN, System, main

ROUNDS = int(os.environ.get("MR_RECORDER_ROUNDS", "4"))
THREADS = 4


def check_against_counts(subject, streams):
    """Every stream has all its events up to the last, and a ring's worth of them can be read."""
    by_events = sorted((stream["events"] for stream in streams), reverse=True)
    counted = sorted((subject.counts(i) for i in range(THREADS)), reverse=True)
    by_events += [0] * (THREADS - len(by_events))  # killed before their first event
    for events, (begun, done) in zip(by_events, counted):
        check(2 * done <= events <= 2 * begun and begun - done <= 1, f"{events} events of {begun} begun, {done} done")
    for stream in streams:
        check(stream["torn"] == 0 and stream["ended"] == 0, stream)
        # 7/8 of a ring of 32,768 words, less what was granted and not used.
        check(stream["read"] == stream["events"] if stream["events"] < 28000 else stream["read"] >= 24000, stream)


def wait_for_laps(subject, calls=40000):
    wait_until(lambda: all(subject.counts(i)[1] > calls for i in range(THREADS)), 60, "the threads' calls")


def killed_in_the_middle(system):
    for turn in range(ROUNDS):
        subject = Subject(system, "busy", THREADS, name=f"killed-{turn}")
        if turn > 0:
            wait_for_laps(subject)
        time.sleep(random.random() / 20)  # the moment, not a condition
        subject.kill()
        file, = subject.files()
        streams, _ = read(file)
        check(len(streams) == THREADS or turn == 0, streams)
        check_against_counts(subject, streams)
    recording = system.folder / "recovered"
    millrace(system, "record", "--recover", subject.pid, "--recorder-dir", subject.folder, recording)
    check(not subject.files(), "the file is still there")
    report = json.loads(millrace(system, "report", "--json", "--functions", 200, recording).stdout)
    events = sum(stream["events"] for stream in streams)
    overwritten = sum(stream["overwritten"] for stream in streams)
    ledger = report["ledger"]
    check(ledger["last"] == events and ledger["lost"] == overwritten and ledger["balanced"], ledger)
    calls = {function["name"]: function["calls"] for function in report["functions"]}
    check(set(calls) == {f"s{i}" for i in range(97)}, sorted(calls))
    check(max(calls.values()) - min(calls.values()) <= 2 * THREADS, sorted(calls.values()))


def crashed(system):
    own = {name: os.environ.get(name, "") + ":handle_segv=0" for name in ("ASAN_OPTIONS", "TSAN_OPTIONS")}
    subject = Subject(system, "crash", THREADS, **own)
    subject.process.wait(60)
    check(subject.process.returncode == -signal.SIGSEGV, subject.process.returncode)
    file, = subject.files()
    streams, _ = read(file)
    check_against_counts(subject, streams)
    run = millrace(system, "record", "--recover", file, system.folder / "crashed")
    check("which is dead" in run.stderr and not subject.files(), run.stderr)


def run_by_record(system):
    """`millrace record --policy overwrite` makes a recording of a program that dies, and of no other."""
    folder = system.folder / "flight"
    folder.mkdir()
    recording = folder / "data"
    own = {name: os.environ.get(name, "") + ":handle_segv=0" for name in ("ASAN_OPTIONS", "TSAN_OPTIONS")}
    flight = ["record", "--policy", "overwrite", "--recorder-dir", folder, "--output", recording, BIN / "recorder_subject"]
    run = millrace(system, *flight, "crash", folder / "counts", THREADS, status=128 + signal.SIGSEGV, **own)
    check("which is dead" in run.stderr and "Functions by self time" in run.stdout, run)
    check(not list(folder.glob("millrace-*")), "the file is still there")
    shutil.rmtree(recording)
    run = millrace(system, *flight, "end", folder / "counts", 100)
    check("is not kept" in run.stderr and not recording.exists(), run)
    # What the user's environment says about the program does not stand in the way.
    millrace(system, "record", "--recover", folder / "counts", status=2, MILLRACE_POLICY="overwrite")


def busy_is_dumped(system):
    subject = Subject(system, "busy", THREADS)
    wait_for_laps(subject)
    file, = subject.files()
    _, sums = read(file, 50)
    check(sums["rings"] == THREADS and sums["unread"] == 0, sums)
    for turn in range(1 if ROUNDS < 5 else ROUNDS):
        run = millrace(system, "record", "--dump", subject.pid, system.folder / "dumped")
        check("which runs" in run.stderr and "torn 0" in run.stderr, run.stderr)
        report = json.loads(millrace(system, "report", "--json", "--functions", 200, system.folder / "dumped").stdout)
        check(report["ledger"]["balanced"] and report["ledger"]["lost"] > 0, report["ledger"])
        check({f["name"] for f in report["functions"]} == {f"s{i}" for i in range(97)}, report["functions"])
    before = subject.counts()
    wait_until(lambda: subject.counts() > before, 60, "that it goes on")
    os.kill(subject.pid, signal.SIGSTOP)  # hangs
    millrace(system, "record", "--dump", subject.pid, system.folder / "dumped")
    run = millrace(system, "record", "--recover", subject.pid, status=2)
    check(run.stderr.count("\n") == 1 and "still runs" in run.stderr, run.stderr)
    subject.kill()


def sent_to_a_chain(system):
    subject = Subject(system, "busy", THREADS, name="sent")
    wait_for_laps(subject)
    subject.kill()
    master = system.master()
    worker = system.worker(master.endpoint)
    for _ in range(2):  # each a source of its own
        millrace(system, "record", "--dump", subject.files()[0], "--endpoint", worker.endpoint)
    system.stop(worker)
    sources = master.get("/api/v1/ledger")["sources"]
    check(len(sources) == 2 and all(source["pid"] == subject.pid for source in sources), sources)
    system.stop(master)


def forked_and_exec(system):
    subject = Subject(system, "fork", 5000, name="forked")
    child = int(dict(subject.said)["child"])
    wait_until(lambda: subject.counts(1)[1] == 5000, 60, "the child's calls")
    files = {int(file.name.split("-")[1]): file for file in subject.files()}
    check(set(files) == {subject.pid, child}, files)
    for file in files.values():
        streams, sums = read(file)
        check(len(streams) == 1 and sums["events"] == 10000, (streams, sums))
    os.kill(child, signal.SIGKILL)
    subject.kill()
    subject = Subject(system, "exec", 5000, name="exec")
    file, = subject.files()
    _, sums = read(file)
    check(sums["events"] == 10000, sums)
    wait_until(lambda: pathlib.Path(f"/proc/{subject.pid}/comm").read_text() == "sleep\n", 60, "exec")
    millrace(system, "record", "--recover", subject.pid, "--recorder-dir", subject.folder, system.folder / "exec.data")
    subject.kill()


def copied_past_the_handlers(system):
    """A raw copy leaves its parent's ring at its next segment, less than an eighth of it later; vfork() is its parent."""
    subject = Subject(system, "copy", 100000, name="copied")
    file, = subject.files()
    subject.kill()
    (stream,), sums = read(file)
    check(stream["events"] == 600000 and stream["torn"] == 0 and sums["budget"] == 0, (stream, sums))


def normal_end_leaves_nothing(system):
    subject = Subject(system, "end", 5000, name="ended", ready=False)
    check(subject.process.wait(60) == 0, subject.process.stderr.read())
    check(not subject.files() and subject.process.stderr.read() == "", subject.files())


def old_ones_are_removed(system):
    for turn in range(5):
        subject = Subject(system, "busy", 1, name="old")
        subject.kill()
    stale = time.time() - 3600
    for age, file in enumerate(subject.files()):
        os.utime(file, (stale - age, stale - age))
    newest = subject.files()[:2]
    check(len(subject.files()) == 5, subject.files())
    keeper = Subject(system, "busy", 1, name="old", MILLRACE_RECORDER_KEEP=2)
    wait_until(lambda: len(keeper.files()) == 3, 60, "old files are removed")
    check(set(newest) < set(keeper.files()), (newest, keeper.files()))
    keeper.kill()


def one_line(run, *words):
    check(run.stderr.count("\n") == 1 and all(word in run.stderr for word in words), run.stderr)


def mistakes(system):
    plain = subprocess.Popen(["sleep", "1000"])
    one_line(millrace(system, "record", "--dump", plain.pid, status=2), "no flight recorder", "MILLRACE_POLICY=overwrite")
    plain.kill()
    plain.wait()
    one_line(millrace(system, "record", "--dump", plain.pid, status=2), "no process", "--recorder-dir")
    one_line(millrace(system, "record", "--recover", "/nowhere", status=2), "/nowhere")
    one_line(millrace(system, "record", "--dump", BIN / "millrace", status=2), "no flight recorder of millrace")
    one_line(millrace(system, "record", "--dump", "1", "--recover", "1", status=2), "either")
    one_line(millrace(system, "record", "--dump", "1", "a", "b", status=2), "one directory")
    cut = system.folder / "cut.recorder"
    subject = Subject(system, "busy", 1, name="cut")
    wait_until(lambda: subject.counts()[1] > 100, 60, "calls")
    subject.kill()
    with open(subject.files()[0], "rb") as whole:
        cut.write_bytes(whole.read(100000))
    one_line(millrace(system, "record", "--recover", cut, status=2), "not whole")
    other = system.folder / "other"
    other.mkdir()
    (other / "mine").write_text("mine")
    one_line(millrace(system, "record", "--dump", subject.files()[0], other, status=2), "mine")
    check((other / "mine").exists(), "somebody's file was removed")
    nowhere = system.folder / "file"
    nowhere.write_text("")
    one_line(millrace(system, "record", "--dump", subject.files()[0], nowhere / "below", status=2), "Not a directory")
    one_line(millrace(system, "record", "--dump", subject.files()[0], "/proc/nowhere", status=2), "No such file")


def other_users_process(system):
    if not is_root() or not shutil.which("setpriv"):
        return "skipped: not root"
    subject = Subject(system, "busy", 1, name="others")
    run = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", BIN / "millrace", "record", "--dump",
                          str(subject.pid), "/tmp/never"], capture_output=True, text=True, check=False,
                         env=system.environment())
    if "failed to execute" in run.stderr:
        return "skipped: the build is root's alone"
    check(run.returncode == 2, run)
    one_line(run, "may not be looked at")
    subject.kill()
    return None


def no_place(system):
    for place in ("/nowhere", "/proc"):
        subject = Subject(system, "end", 10, name="placeless", ready=False, MILLRACE_RECORDER_DIR=place)
        check(subject.process.wait(60) == 0, "the program itself runs")
        said = subject.process.stderr.read()
        check(said.count("\n") == 1 and "MILLRACE_RECORDER_DIR" in said and place in said, said)


def mounted(folder, size, command, **options):
    """Runs a shell command where `folder` is a small file system; None where that is not allowed."""
    script = f"mount -t tmpfs -o size={size} none '{folder}' && {command}"
    probe = subprocess.run(["unshare", "-rm", "sh", "-c", f"mount -t tmpfs none '{folder}'"], capture_output=True, check=False)
    if probe.returncode != 0:
        return None
    return subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, timeout=120, check=False,
                          **options)


def full_disks(system):
    subject = Subject(system, "busy", THREADS, name="full")
    wait_for_laps(subject)
    subject.kill()
    disk = system.folder / "disk"
    disk.mkdir()
    for size in ("64k", "300k"):  # at the start of the store, and in the midst of it
        run = mounted(disk, size, f"{BIN}/millrace record --dump {subject.files()[0]} {disk}/out; echo $?; ls -A {disk}",
                      env=system.environment())
        if run is None:
            return "skipped: no mounts here"
        check(run.stdout == "1\n" and "nothing is left there" in run.stderr, (run.stdout, run.stderr))
    # A recorder that has no room: the program runs, what has no ring is counted.
    run = mounted(disk, "1m", f"{BIN}/recorder_subject live {disk}/counts 16 3000 < /dev/null && ls -A {disk}",
                  env=system.environment(MILLRACE_POLICY="overwrite", MILLRACE_RECORDER_DIR=disk))
    check(run.returncode == 0 and run.stdout == "ready\ncounts\n" and run.stderr == "", run)
    return None


CASES = [killed_in_the_middle, crashed, run_by_record, busy_is_dumped, sent_to_a_chain, forked_and_exec, copied_past_the_handlers, normal_end_leaves_nothing,
         old_ones_are_removed, mistakes, other_users_process, no_place, full_disks]


def test():
    only = sys.argv[1:]
    for case in CASES:
        if only and case.__name__ not in only:
            continue
        start = time.monotonic()
        with System() as system:
            skipped = case(system)
        print(f"{case.__name__}: {skipped or 'ok'} ({time.monotonic() - start:.1f} s)", flush=True)


if __name__ == "__main__":
    main(test)
