# SPDX-License-Identifier: Apache-2.0
"""Real programs under the probe, against a sink with an account of its own.

In every case: what the program made = what the probe says = what arrived + what was lost.
One test by name: test_programs.py NAME...
"""
import concurrent.futures
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
from sink import Sink, lines_of  # pylint: disable=wrong-import-position
from system import BIN, BUILD, SOURCE, Failure, check  # pylint: disable=wrong-import-position

SANITIZED = os.environ.get("MR_SANITIZE", "")
SUBJECT = BIN / "probe_subject"
WAIT_S = 60
LOSSES = ["ring-full", "block-timeout", "budget", "nested", "exit"]


def run(command, endpoint=None, status=0, flush_ms=20000, **variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MILLRACE_", "OTEL_"))}
    environment.update({"MILLRACE_" + k: str(v) for k, v in variables.items()})
    # Leaks are looked for in the subject's forked children too, where that only makes noise; frames from the heap (use after return)
    # take half a minute for four million calls, and three tests have them.
    environment["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0:detect_stack_use_after_return=0"
    environment["SUBJECT_FLUSH_MS"] = str(flush_ms)
    if endpoint:
        environment["MILLRACE_ENDPOINT"] = endpoint
    process = subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True,
                             timeout=WAIT_S, check=False)
    check(process.returncode == status, f"{command}: status {process.returncode}\n{process.stdout}{process.stderr}")
    return process


def trace(mode, *arguments, sink=(), sources=1, **variables):
    """Runs the subject; checks the identity for every process; (subject lines, source lines, account)."""
    if variables.get("POLICY") == "block":  # the default is short for a machine that does other things too
        variables = {"BLOCK_TIMEOUT": "30s", **variables}
    with Sink("--sources", str(sources), *sink) as receiver:
        process = run([SUBJECT, mode, *arguments], receiver.endpoint, **variables)
        accounts = receiver.finish()
        check(process.stderr == "", "stderr: " + process.stderr)
        check("fault" not in process.stdout, process.stdout)
        subjects = lines_of(process.stdout, "subject")
        check(len(accounts) == sources, f"{len(accounts)} sources arrived instead of {sources}")
        by_pid = {account["pid"]: account for account in accounts}
        for subject in subjects:
            check_identity(subject, by_pid[subject["pid"]], mode)
        return subjects, accounts, receiver.account


def check_identity(subject, account, mode):
    check(subject["flushed"] == 1, f"not flushed: {subject}")
    lost = sum(subject[name.replace("-", "_")] for name in LOSSES)
    is_counted = mode not in ("jumps", "steps")
    if is_counted:
        check(subject["made"] == subject["written"] + lost, f"made != written + lost: {subject}")
    check(subject["acked"] == subject["written"], f"acked != written: {subject}")
    check(account["finished"] == 1, f"no BYE: {account}")
    # After the report, main() returns and handlers run: that is written too.
    check(account["events"] >= subject["written"], f"{account} has fewer than {subject}")
    if is_counted:
        left = 1 if subject["who"] == "main" else 0
        check(account["events"] + sum(account[name] for name in LOSSES) == subject["made"] + left,
              f"made != arrived + lost:\n{subject}\n{account}")


def test_calls():
    subjects, accounts, output = trace("calls", 1000000, POLICY="block", APP="calls-app")
    check(accounts[0]["app"] == "calls-app", output)
    check(accounts[0]["open"] == 0 and accounts[0]["underflows"] == 0, output)
    check(sum(accounts[0][name] for name in LOSSES) == 0, output)
    check(accounts[0]["events"] == 2000002, output)
    stream = lines_of(output, "stream")[0]
    module = [m for m in lines_of(output, "module") if m["flags"] == 1][0]
    check(stream["tid"] == subjects[0]["pid"] and stream["end"] == 1, output)
    check(module["site_base"] <= stream["start"] < module["site_base"] + module["size"], "main is not in the executable")
    symbols = subprocess.run(["nm", SUBJECT], capture_output=True, text=True, check=True).stdout
    main = int(re.search(r"^([0-9a-f]+) T main$", symbols, re.M).group(1), 16)
    check(stream["start"] - module["site_base"] + module["address"] - module["bias"] == main, "start_site is not main")


def check_discarded(process):
    """Every event was written, discarded and told of; nothing is in custody. Of all processes, in the order of their end."""
    subjects = lines_of(process.stdout, "subject")
    for subject in subjects:
        lost = sum(subject[name.replace("-", "_")] for name in LOSSES)
        check(subject["flushed"] == 1 and subject["acked"] == 0, f"{subject}")
        check(subject["made"] == subject["written"] + lost and lost == 0, f"{subject}")
        check(subject["discarded"] == subject["written"], f"{subject}")
    told = re.findall(r"^millrace: (\d+) events of .*\[(\d+)\] were recorded and discarded: MILLRACE_ENDPOINT=discard$",
                      process.stderr, re.M)
    check(len(told) == len(process.stderr.splitlines()) == len(subjects), process.stderr)
    by_pid = {int(pid): int(events) for events, pid in told}
    for subject in subjects:
        left = 1 if subject["who"] == "main" else 0  # main() returns after its report
        check(by_pid[subject["pid"]] == subject["written"] + left, f"{subject}\n{process.stderr}")
    return subjects


def test_discard_throws_away_what_it_counts():
    """Without a receiver: more than the outbox holds, in each encoding and clock; threads; forked children."""
    count = 200000 if SANITIZED else 4000000
    block = {"POLICY": "block", "BLOCK_TIMEOUT": "30s"}
    for more in {}, {"ENCODING": "compact+zstd"}, {"CLOCK": "hybrid"}, {"PRUNE": "1us", "PRUNE_EXCEPT": "leaf"}:
        subject, = check_discarded(run([SUBJECT, "calls", count], "discard", **block, **more))
        check(subject["made"] == 2 * count + 1, f"{subject}")
    check_discarded(run([SUBJECT, "threads", 100, 1000], "discard", **block))
    if not SANITIZED:  # whose allocator a forked child may find locked
        subjects = check_discarded(run([SUBJECT, "fork", 5, 1000], "discard", **block))
        check(len(subjects) == 6, f"{subjects}")


def test_drop_counts_what_it_drops():
    _, accounts, output = trace("calls", 1000000, sink=["--sleep-us", "20"], RING_SIZE="4KiB")
    check(accounts[0]["ring-full"] > 0, "nothing was dropped: " + output)
    check(accounts[0]["open"] == 0 and accounts[0]["underflows"] == 0, "nesting was lost: " + output)


def test_block_waits_then_drops():
    _, accounts, output = trace("calls", 200000, POLICY="block", RING_SIZE="4KiB")
    check(accounts[0]["block-timeout"] == 0, output)
    with Sink("--deaf") as sink:
        process = run([SUBJECT, "calls", 4000000], sink.endpoint, flush_ms=100, POLICY="block", BLOCK_TIMEOUT="10ms",
                      EXIT_TIMEOUT="50ms")
        subject = lines_of(process.stdout, "subject")[0]
        check(subject["flushed"] == 0 and subject["block_timeout"] > 0, process.stdout)
        check(subject["written"] + subject["block_timeout"] <= subject["made"], process.stdout)
        lines = process.stderr.splitlines()
        check(len(lines) == 1 and "could not be sent" in lines[0] and "MILLRACE_EXIT_TIMEOUT" in lines[0], process.stderr)


def test_encodings_keep_the_account():
    """What the sink finds in compact and compressed chunks is what the probe says: losses, wide records, short streams."""
    for encoding in "compact", "compact+zstd":
        _, accounts, output = trace("calls", 1000000, ENCODING=encoding, POLICY="block")
        check(accounts[0]["events"] == 2000002 and accounts[0]["open"] == 0, output)
        _, accounts, output = trace("calls", 1000000, sink=["--sleep-us", "50"], RING_SIZE="4KiB", ENCODING=encoding)
        check(accounts[0]["ring-full"] > 0 and accounts[0]["underflows"] == 0, "nothing was dropped: " + output)
        _, accounts, output = trace("threads", 1000, 10, MEMORY="4MiB", POLICY="block", ENCODING=encoding)
        check(accounts[0]["streams"] == 1001 and accounts[0]["budget"] == 0, output)
        if not SANITIZED:  # whose allocator a forked child may find locked
            trace("fork", 5, 1000, sources=6, ENCODING=encoding)


def test_receivers_that_do_not_read():
    """One that never reads, and one that stops: what is lost is counted, and the end of the program waits as long as it may."""
    for options in ["--deaf"], ["--deaf-after", "20"]:
        for policy, reason in ("drop", "ring_full"), ("block", "block_timeout"):
            with Sink(*options) as sink:
                process = run([SUBJECT, "calls", 4000000], sink.endpoint, flush_ms=100, POLICY=policy, ENCODING="words",
                              BLOCK_TIMEOUT="1ms", EXIT_TIMEOUT="50ms")
                subject = lines_of(process.stdout, "subject")[0]
                check(subject["flushed"] == 0 and subject[reason] > 0, f"{options} {policy}: {process.stdout}")
                check(subject["acked"] < subject["written"], process.stdout)
                check(subject["written"] + subject[reason] <= subject["made"], process.stdout)
                lines = process.stderr.splitlines()
                check(len(lines) == 1 and "could not be sent" in lines[0] and "MILLRACE_EXIT_TIMEOUT" in lines[0],
                      f"{options} {policy}: {process.stderr}")
                told = [int(number) for number in re.findall(r"\d+", lines[0])]
                check(told[0] > 0 and any(number >= subject[reason] for number in told), process.stderr + process.stdout)


def test_short_threads_share_rings():
    _, accounts, output = trace("threads", 10000, 10, MEMORY="4MiB", POLICY="block")
    check(accounts[0]["streams"] == 10001 and accounts[0]["last"] == 10000, output)
    check(accounts[0]["budget"] == 0, output)


def test_live_threads_past_the_ceiling_are_counted():
    _, accounts, output = trace("live", 100, 200, MEMORY="4MiB", POLICY="block")
    # Half of the ceiling in whole rings (8 of 256 KiB), half of the rest in halves of them, ... down to 4 KiB.
    check(accounts[0]["budget"] > 0 and 40 < accounts[0]["streams"] < 70, output)
    start = {s["start"] for s in lines_of(output, "stream")}
    check(len(start) == 2 and 0 not in start, "start functions of threads: " + output)


def test_destructors_of_threads():
    _, accounts, output = trace("destructors", 20)
    # ThreadSanitizer's runtime forgets threads early; what comes later is counted.
    check(accounts[0]["exit"] == (200 if "thread" in SANITIZED else 0), output)


def test_signals():
    for clock in ["tsc", "hybrid"] if len(os.sched_getaffinity(0)) > 1 else ["tsc"]:
        subjects, accounts, output = trace("signals", 5000000, POLICY="block", CLOCK=clock)
        check(accounts[0]["open"] == 0 and accounts[0]["underflows"] == 0, output)
        check(subjects[0]["made"] > 10000001, output)


def test_handlers_that_jump():
    trace("jumps", 300, 20000 if SANITIZED else 1000, POLICY="block")  # microseconds: more than a handler takes


def test_handlers_that_jump_out_of_hooks():
    if SANITIZED:  # their instructions are stepped through, too
        return "skipped"
    trace("steps", 300, POLICY="block")
    return None


def test_descriptors_that_the_program_takes():
    if SANITIZED:  # their runtimes have descriptors too
        return "skipped"
    _, accounts, output = trace("descriptors", 100000, sink=["--patient"], POLICY="block")
    check(accounts[0]["events"] == 400002, output)
    check(len(lines_of(output, "again")) == 1, "the connection was not made anew: " + output)
    process = run([SUBJECT, "stderr", 10], "tcp://127.0.0.1:1", flush_ms=0)
    file = pathlib.Path(re.search(r"stderr=(.*)", process.stdout)[1])
    text = file.read_text()
    file.unlink()
    check(text == "" and process.stderr == "", f"wrote into the program's file: {text}{process.stderr}")
    return None


def test_the_writer_does_not_wait_for_room_among_descriptors():
    if SANITIZED:  # their runtimes have threads and descriptors too
        return "skipped"
    slots = {off: int(re.search(r"slots (\d+)", run([SUBJECT, "slots"], "tcp://127.0.0.1:1", EXIT_TIMEOUT="0ms",
                                                    DISABLED=off).stdout)[1]) for off in ("true", "false")}
    if slots["true"] > 512:  # whoever started this had so many open
        return "skipped"
    check(slots["false"] > 512, f"{slots}")
    return None


def test_set_user_id_programs_are_not_traced():
    if SANITIZED or os.geteuid() != 0:
        return "skipped"
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder) / "p.c", pathlib.Path(folder) / "p"
        source.write_text("#include <millrace/probe.h>\n#include <stdio.h>\n#include <sys/auxv.h>\n"
                          "int main(void) { printf(\"%d %d\\n\", getauxval(AT_SECURE) != 0, mr_probe_enabled()); }\n")
        subprocess.run(["gcc", "-I", SOURCE / "probe/include", source,
                        BUILD / "lib/libmillrace.a", "-o", program], check=True, timeout=WAIT_S)
        check(run([program], "tcp://127.0.0.1:1", EXIT_TIMEOUT="0ms").stdout == "0 1\n", "not traced otherwise")
        os.chown(program, 65534, 65534)
        program.chmod(0o6755)
        pathlib.Path(folder).chmod(0o755)
        output = run([program], "tcp://127.0.0.1:1", EXIT_TIMEOUT="0ms").stdout
        if output.startswith("0"):  # mounted nosuid
            return "skipped"
        check(output == "1 0\n", "traced: " + output)
    return None


def test_preloaded():
    """The hooks are in the program, the library is not: those of libc are replaced."""
    if SANITIZED:
        return "skipped"
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder) / "p.c", pathlib.Path(folder) / "p"
        source.write_text("static int f(int x) { return x + 1; }\nint main(void) { return f(-1); }\n")
        subprocess.run(["gcc", "-O0", "-finstrument-functions", source, "-o", program], check=True)
        with Sink() as sink:
            run(["env", f"LD_PRELOAD={BUILD / 'lib/libmillrace.so'}", program], sink.endpoint)
            check(sink.finish()[0]["events"] == 4, sink.account)
    return None


def test_spans():
    _, accounts, output = trace("spans", 1000)
    sites = {s["name"]: s for s in lines_of(output, "site")}
    check(sites["inside"]["flags"] == 1 and sites["outside"]["flags"] == 0, output)
    check(lines_of(output, "stream")[0]["name"] == "spanner", output)


def test_attributes():
    os.environ["OTEL_RESOURCE_ATTRIBUTES"] = "service.version=3.1,a=b"
    with Sink() as sink:
        subprocess.run([SUBJECT, "calls", "10"], check=True, timeout=WAIT_S, capture_output=True,
                       env={**os.environ, "MILLRACE_ENDPOINT": sink.endpoint})
        sink.finish()
        hello = lines_of(sink.account, "hello")[0]
        check(hello["version"] == "3.1" or hello["version"] == 3.1, sink.account)
        check(hello["attributes"] == 2, sink.account)
    del os.environ["OTEL_RESOURCE_ATTRIBUTES"]


def test_bad_values_are_one_line():
    for variables in ({"POLICY": "wait"}, {"RING_SIZE": "1"}, {"ENDPOINT": "http://x"}, {"TOKEN_FILE": "/no/such"}):
        process = run([SUBJECT, "calls", 10], **{"ENDPOINT": "tcp://127.0.0.1:1", **variables})
        name, value = next(iter(variables.items()))
        check(process.stderr.count("\n") == 1, process.stderr)
        check("MILLRACE_" + name in process.stderr and value in process.stderr, process.stderr)
        check("written=0" in process.stdout, process.stdout)


def test_no_receiver():
    process = run([SUBJECT, "calls", 10], "tcp://127.0.0.1:1", flush_ms=100, EXIT_TIMEOUT="100ms")
    check(process.stderr.count("\n") == 1 and "22 events" in process.stderr, process.stderr)


def test_no_receiver_is_not_waited_for():
    """Nobody ever answers: the end does not wait for the default time-out, and counts each event; block waits once."""
    for policy in ("drop", "block"):
        # A time-out for each event of block would be 160 hours.
        process = run([SUBJECT, "calls", 4000000], "tcp://127.0.0.1:1", flush_ms=0, POLICY=policy)
        line = re.search(r": (\d+) events of .* nobody listens there .*; (\d+) more were dropped", process.stderr)
        check(line and process.stderr.count("\n") == 1, process.stderr)
        check(int(line[1]) + int(line[2]) == 8000002, f"{policy}: not all are counted: {process.stderr}")
        check("=1000ms" in process.stderr, process.stderr)
    # Nor does each thread wait for a ring that nobody empties: that would be five minutes.
    process = run([SUBJECT, "threads", 300, 10000], "tcp://127.0.0.1:1", flush_ms=0, POLICY="block", MEMORY="32KiB",
                  RING_SIZE="4KiB", BLOCK_TIMEOUT="1s")
    line = re.search(r": (\d+) events of .*; (\d+) more were dropped", process.stderr)
    check(line and int(line[1]) + int(line[2]) == 6000602, process.stderr)
    process = run([SUBJECT, "calls", 10], "tcp://no-such-host.invalid:1", flush_ms=0)
    check("22 events" in process.stderr and "not resolved" in process.stderr, process.stderr)


def wait_stopped(process):
    """Lets it go on where it stopped, a while later; the exit status."""
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        time.sleep(1.5)
        process.send_signal(signal.SIGCONT)
        _, status = os.waitpid(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode


def test_ends_that_the_machine_interrupts():
    """Nobody was asked in the second that a program had no processor at its end: what it recorded is sent nevertheless."""
    if SANITIZED:  # it takes longer to start than it is given
        return "skipped"
    delays_us = range(250, 10000, 250)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MILLRACE_", "OTEL_"))}
    with Sink("--sources", str(len(delays_us))) as receiver:
        environment.update(MILLRACE_ENDPOINT=receiver.endpoint, SUBJECT_FLUSH_MS="0")
        processes = [subprocess.Popen([SUBJECT, "stopped", "10", str(us)], env=environment, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True) for us in delays_us]
        with concurrent.futures.ThreadPoolExecutor(len(processes)) as pool:
            check(not any(pool.map(wait_stopped, processes)), "not all ended well")
        said = [process.stderr.read() for process in processes]
        check(not any(said), "".join(said))
        check(all(account["events"] == 22 for account in receiver.finish()), receiver.account)
    return None


def calls_of(log):
    return re.findall(r"^\d+ +(\w+)\(", log.read_text(), re.M)


def test_off_does_nothing():
    """Without an endpoint the system calls are those of a program that only links us."""
    if SANITIZED or not shutil.which("strace"):
        return "skipped"
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        for variables in ({}, {"ENDPOINT": "tcp://127.0.0.1:1", "DISABLED": "1"}):
            run(["strace", "-f", "-o", log, SUBJECT, "calls", "100000"], **variables)
            text = log.read_text()
            check("clone" not in text and "socket(" not in text, "thread or socket:\n" + text)
            after = text.split("libc.so.6", 1)[1]
            check("MAP_POPULATE" not in after and "262144, PROT_READ|PROT_WRITE" not in after, "ring:\n" + text)
            with_events = calls_of(log)
            run(["strace", "-f", "-o", log, SUBJECT, "calls", "0"], **variables)
            check(with_events == calls_of(log), "events make system calls")
    return None


def compile_with(package, source, output, *flags, compiler="gcc", variable=None):
    environment = {**os.environ, "PKG_CONFIG_PATH": str(BUILD / "lib/pkgconfig")}
    ask = [f"--variable={variable}"] if variable else ["--cflags"]
    cflags = subprocess.run(["pkg-config", *ask, package], env=environment, capture_output=True, text=True, check=True)
    libs = subprocess.run(["pkg-config", "--libs", package], env=environment, capture_output=True, text=True, check=True)
    command = [compiler, "-O2", *flags, *cflags.stdout.split(), source, "-o", output, *libs.stdout.split()]
    built = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    check(built.returncode == 0, f"{command}:\n{built.stderr}")


CXX_PROGRAM = r"""
#include <millrace/probe.h>
#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <vector>
static void thrower(int x) { MR_SPAN("thrower"); if (x) throw std::runtime_error("x"); }
int main()
{
    std::vector<int> values(1000);
    std::sort(values.begin(), values.end());
    try { thrower(1); } catch (const std::exception &) { }
    std::thread thread([] { MR_SPAN("in thread"); });
    thread.join();
    return mr_probe_flush(5000);
}
"""


def test_pkg_config():
    if SANITIZED:
        return "skipped"
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder) / "p.cc", pathlib.Path(folder) / "p"
        source.write_text(CXX_PROGRAM)
        builds = [("millrace", "g++", ("-pthread",), None), ("millrace-manual", "g++", ("-pthread",), None),
                  ("millrace", "g++", ("-pthread", "-no-pie", "-fno-pie"), None)]
        if shutil.which("clang++-14"):
            builds.append(("millrace", "clang++-14", ("-pthread",), "clang_cflags"))
        for package, compiler, flags, variable in builds:
            compile_with(package, source, program, *flags, compiler=compiler, variable=variable)
            with Sink() as sink:
                run([program], sink.endpoint)
                account = sink.finish()[0]
                names = {s["name"] for s in lines_of(sink.account, "site")}
                check({"thrower", "in thread"} <= names, sink.account)
                check(account["open"] == 0 and account["underflows"] == 0, sink.account)
                # clang instruments what of the standard library it did not inline.
                limit = 1000 if "clang" in compiler else 40
                check(4 <= account["events"] < limit, "system headers are not left out: " + sink.account)
                check(all(s["start"] for s in lines_of(sink.account, "stream")), "start of a thread: " + sink.account)
    return None


C_LIBRARY = """int late(int x); int late(int x) { return x + 1; }
__attribute__((constructor)) static void starts(void) { late(1); }
"""
C_DLOPEN = r"""
#include <dlfcn.h>
#include <millrace/probe.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    void *library = dlopen(argv[1], RTLD_NOW);
    int (*late)(int) = (int (*)(int))dlsym(library, "late");
    for (int i = 0; i < 1000; i++)
        late(i);
    usleep(400000);
    dlclose(library);
    usleep(400000);
    return argc < 2 || mr_probe_flush(5000);
}
"""


def test_dlopen():
    if SANITIZED:
        return "skipped"
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "late.c").write_text(C_LIBRARY)
        (folder / "main.c").write_text(C_DLOPEN)
        compile_with("millrace", folder / "late.c", folder / "late.so", "-shared", "-fPIC")
        compile_with("millrace", folder / "main.c", folder / "main")
        with Sink() as sink:
            run([folder / "main", folder / "late.so"], sink.endpoint)
            account = sink.finish()[0]
            check(account["events"] == 2006, sink.account)
            late = [m for m in lines_of(sink.account, "module") if m["path"].endswith("late.so")]
            gone = lines_of(sink.account, "gone")
            check(late and late[0]["epoch"] > 1 and late[0]["build_id"] == 20, sink.account)
            check(gone and gone[0]["number"] == late[0]["number"], sink.account)
            check(lines_of(sink.account, "stream")[0]["wides"] == 0, "not in the window: " + sink.account)
    return None


def test_clocks():
    """Each clock gives the same calls, and is told; hybrid needs a second processor."""
    _, accounts, output = trace("calls", 300000, POLICY="block", CLOCK="monotonic")
    check(accounts[0]["events"] == 600002 and accounts[0]["open"] == 0, output)
    hello = lines_of(output, "hello")[0]
    check((hello["clock"], hello["mult"], hello["shift"]) == ("monotonic", 1, 0), output)
    check(hello["warning"] == "" and hello["tick_ns"] == 0, output)
    if len(os.sched_getaffinity(0)) > 1:
        modes = [(["calls", 300000], 1), (["threads", 100, 100], 1)]
        if not SANITIZED:  # whose allocator a forked child may find locked
            modes.append((["fork", 5, 1000], 6))
        for mode, sources in modes:
            _, accounts, output = trace(*mode, sources=sources, POLICY="block", CLOCK="hybrid")
            hello = lines_of(output, "hello")[0]
            check(hello["tick_ns"] == 4000 and hello["tick_events"] == 32, output)
    one = sorted(os.sched_getaffinity(0))[:1]
    with Sink() as sink:
        process = run(["taskset", "-c", str(one[0]), SUBJECT, "calls", 1000], sink.endpoint, CLOCK="hybrid", POLICY="block")
        account = sink.finish()[0]
        check(account["events"] == 2002, sink.account)
        check(process.stderr.count("\n") == 1 and "second processor" in process.stderr, process.stderr)
        hello = lines_of(sink.account, "hello")[0]
        check(hello["tick_ns"] == 0 and "second processor" in hello["warning"], sink.account)
    check("is not one of tsc|hybrid|monotonic" in run([SUBJECT, "calls", 10], "tcp://127.0.0.1:1", CLOCK="sundial").stderr,
          "a clock that does not exist is taken")


PUBLIC = {"mr_probe_active", "mr_probe_attach", "mr_probe_capture", "mr_probe_detach", "mr_probe_receive", "mr_probe_send",
          "mr_traceparent_format", "mr_traceparent_parse", "mr_probe_enter", "mr_probe_exit", "mr_probe_flush", "mr_probe_link", "mr_probe_stats", "mr_probe_status", "mr_probe_switch", "mr_thread_name",
          "__cyg_profile_func_enter", "__cyg_profile_func_exit", "mr_probe_module_add", "mr_probe_module_remove"}
# Of libc and the unwinder, in front of which the shared library stands.
IN_FRONT = {"dlclose", "dlopen", "pthread_create", "longjmp", "_longjmp", "siglongjmp", "__longjmp_chk", "_Unwind_SetIP"}


def test_only_what_is_public_shows():
    if SANITIZED:
        return "skipped"
    for library, flags, names in (("libmillrace.so", ["-D"], PUBLIC | IN_FRONT), ("libmillrace.a", ["-g"], PUBLIC)):
        text = subprocess.run(["nm", *flags, "--defined-only", BUILD / "lib" / library], capture_output=True, text=True,
                              check=True).stdout
        shown = set(re.findall(r"^[0-9a-f]+ [A-Z] (\S+)$", text, re.M))
        check(shown == names, f"{library} shows {shown ^ names} too many or too few")
    return None


def test_hooks_save_nothing():
    """The common way of a hook pushes no register and makes no frame; when off it is load, compare, return."""
    if SANITIZED or platform.machine() != "x86_64" or not shutil.which("objdump"):
        return "skipped"
    for name in ("__cyg_profile_func_enter", "__cyg_profile_func_exit", "mr_probe_enter", "mr_probe_exit"):
        text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "--disassemble=" + name, BUILD / "lib/libmillrace.so"],
                              capture_output=True, text=True, check=True).stdout
        if "gcov" in text:
            return "skipped"
        code = re.findall(r"^ +[0-9a-f]+:\t(.*)$", text.split(f"<{name}>:", 1)[1].split("\n\n", 1)[0], re.M)
        code = [line.split("#")[0].strip() for line in code]
        code = code[:1 + max(i for i, line in enumerate(code) if line.startswith("ret"))]
        ways = sum("xadd" in line for line in code)
        check(ways == 2, f"{name} takes its number with one instruction, of clock tsc and of hybrid:\n" + "\n".join(code))
        check(code.count("rdtsc") == 1 and not any(re.search("push|pop|call|sp|bp", line) for line in code), "\n".join(code))
        if name.startswith("__"):
            off = [line.split()[0] for line in code[:3]]
            check(off[-1] in ("je", "jne") and len(off) <= 3, f"{name} when off: {code[:6]}")
    return None


def main():
    chosen = sys.argv[1:]
    failures = 0
    for name, test in list(globals().items()):
        if not name.startswith("test_") or (chosen and name not in chosen):
            continue
        start = time.monotonic()
        try:
            result = test() or "ok"
        except (Failure, subprocess.SubprocessError) as failure:
            result = f"FAILED\n{failure}"
            failures += 1
        print(f"{name}: {result} ({time.monotonic() - start:.1f} s)", flush=True)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
