# SPDX-License-Identifier: Apache-2.0
"""`millrace attach`: on and off of running programs, and what it says to mistakes."""
import os
import signal
import subprocess

import common
import system
import trees
from common import Program, attach, own_sockets, status_of, wait_for_events
from system import check, wait_until

WHOLE = ("request", (("parse_head", (("token", ()),)), ("parse_body", (("token", ()),)), ("work", (("step", ()),))))
PARSERS = ("request", (("parse_head", ()), ("parse_body", ())))
HEAD = ("request", (("parse_head", ()),))
TOGGLES = 12


def threads_of(pid):
    names = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8") as file:
                names.append(file.read().strip())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return names


def chain_of(chain):
    master = chain.master(store=chain.folder / f"store-{chain.count}")
    # Named, because a sanitizer starts the threads itself, and the probe does not see their start functions.
    return master, chain.worker(master.endpoint, "--outer", "serve_ten,serve_for_ever")


def check_account(master, app):
    """Every event is accounted for, none was lost; the shapes of the application."""
    ledger = master.get("/api/v1/ledger")["ledger"]
    check(ledger["balanced"] and not ledger["lost"] and not ledger["held"] and ledger["written"], f"ledger: {ledger}")
    return trees.from_master(master, app)


def check_shapes(found, allowed, wanted):
    strange = [tree for tree in found if tree not in allowed]
    check(not strange, "shapes that no call had:\n" + "\n".join(trees.to_lines({tree: found[tree] for tree in strange})))
    missing = [tree for tree in wanted if tree not in found]
    check(not missing, f"shapes are missing: {missing}; there are {trees.to_lines(found)}")


def test_control_alone_starts_nothing_else(chain):
    with Program(chain.folder / "hooks", MILLRACE_CONTROL_DIR=chain.folder) as server:
        # Threads name themselves once they run.
        wait_until(lambda: "millrace-ctl" in threads_of(server.pid), common.WAIT_S, "the control thread")
        status_of(server.pid)
        ours = [name for name in threads_of(server.pid) if name.startswith("millrace")]
        check(ours == ["millrace-ctl"], f"threads: {ours}")
        name, = own_sockets(server.pid)
        check(name.startswith(f"{chain.folder}/millrace-{os.geteuid()}/{server.pid}-"), f"socket {name}")
        check(os.stat(name).st_mode & 0o777 == 0o600, "the socket's mode is not 0600")
        check(os.stat(os.path.dirname(name)).st_mode & 0o777 == 0o700, "the folder's mode is not 0700")
        said = status_of(server.pid)
        check(said["state"] == "off" and said["hooks"] == "off" and said["pid"] == server.pid, f"status: {said}")
        check(not {"streams", "ring-bytes", "events-written", "endpoint"} & set(said), f"too much: {said}")
        check(server.end() == "", "stderr is not empty")
        check(not os.path.exists(name), "the socket is left")


def test_neither_starts_nothing(chain):
    with Program(chain.folder / "hooks", MILLRACE_CONTROL="0") as server:
        check(not [name for name in threads_of(server.pid) if name.startswith("millrace")], "there is a thread")
        check(not own_sockets(server.pid), "there is a socket")
        line = attach(server.pid, status=common.USAGE)
        check("start it with MILLRACE_CONTROL=1" in line, line)
        server.end()


def toggle(pid, first, *more):
    """Many short times on, at no particular moment of the program; the last on is long."""
    attach(pid, "--on", *first)
    for _ in range(TOGGLES):
        wait_for_events(pid, 50)
        attach(pid, "--off", *more)
        attach(pid, "--on", *more)
    wait_for_events(pid, 3000)


def test_hooks_are_switched_without_a_false_shape(chain):
    master, worker = chain_of(chain)
    with Program(chain.folder / "hooks", MILLRACE_APP="hooks", MILLRACE_POLICY="block",
                 MILLRACE_BLOCK_TIMEOUT="60s") as server:
        toggle(server.pid, ["--endpoint", worker.endpoint])
        attach(server.pid, "--off", "--flush")
        before = status_of(server.pid)
        check(before["state"] == "off" and before["events-written"] == before["events-acked"], f"{before}")
        check("off (was off)" in attach(server.pid, "--off"), "off again is something else")
        check(status_of(server.pid)["events-written"] == before["events-written"], "events while it is off")
        attach(server.pid, "--on")
        wait_for_events(server.pid, 500)
        check(server.end() == "", "stderr is not empty")
    chain.stop(worker)
    found = check_account(master, "hooks")
    check_shapes(found, {WHOLE}, {WHOLE})
    chain.stop(master)


def check_chosen(chain, name):
    """Functions of the program `name` are switched, some of them at a time."""
    matched, counted = ("matched-hooks", False) if name == "hooks" else ("matched", True)
    master, worker = chain_of(chain)
    with Program(chain.folder / name, MILLRACE_APP=name, MILLRACE_POLICY="block", MILLRACE_BLOCK_TIMEOUT="60s") as server:
        said = attach(server.pid, "--on", "--only", "request", "--only", "parse_*", "--endpoint", worker.endpoint, "--json")
        check(said[matched] == 3 and said["was"] == "off" and said["state"] == "on", f"{said}")
        check(not counted or said["switched"] == said["functions-on"] == 3, f"{said}")
        wait_for_events(server.pid, 2000)
        for _ in range(TOGGLES):
            attach(server.pid, "--off", "--only", "parse_b*")
            wait_for_events(server.pid, 200)
            attach(server.pid, "--on", "--only", "parse_b*")
        attach(server.pid, "--off", "--only", "parse_body")
        wait_for_events(server.pid, 2000)
        attach(server.pid, "--on", "--except", "work", "--except", "step", "--except", "token")
        wait_for_events(server.pid, 500)
        said = attach(server.pid, "--on", "--json")
        check(not counted or said["functions-on"] == said["functions"], f"{said}")
        wait_for_events(server.pid, 3000)
        said = attach(server.pid, "--off", "--flush", "--json")
        check(said["state"] == "off" and (not counted or said["functions-on"] == 0), f"{said}")
        check(server.end() == "", "stderr is not empty")
    chain.stop(worker)
    check_shapes(check_account(master, name), {WHOLE, PARSERS, HEAD}, {WHOLE, PARSERS, HEAD})
    chain.stop(master)


def test_chosen_functions_with_hooks_are_switched_without_a_false_shape(chain):
    check_chosen(chain, "hooks")


def test_chosen_patchable_functions_are_switched_without_a_false_shape(chain):
    if not common.HAS_SITES:
        return "skipped: no patchable functions on this machine"
    return check_chosen(chain, "patchable")


def test_a_program_switches_itself(chain):
    for name in ["hooks"] + (["patchable"] if common.HAS_SITES else []):
        master, worker = chain_of(chain)
        run = chain.run([chain.folder / name, "self"], endpoint=worker.endpoint, MILLRACE_APP="self")
        check(run.returncode == 0 and run.stderr == "", f"{name}: {run.returncode} {run.stdout}{run.stderr}")
        chain.stop(worker)
        found = check_account(master, "self")
        check(dict(found) == {WHOLE: 20}, f"{name}: {trees.to_lines(found)}")
        chain.stop(master)


def test_a_program_that_starts_off(chain):
    master, worker = chain_of(chain)
    with Program(chain.folder / "hooks", MILLRACE_ENDPOINT=worker.endpoint, MILLRACE_START="off") as server:
        check(status_of(server.pid)["state"] == "off", "it is on")
        attach(server.pid, "--on")
        wait_for_events(server.pid)
        line = attach(server.pid, "--on", "--endpoint", "tcp://127.0.0.1:1", status=common.USAGE)
        check("sends to tcp://" in line, line)
        attach(server.pid, "--on", "--endpoint", worker.endpoint)
        server.end()
    chain.stop(worker)
    chain.stop(master)


def test_discarding_is_shown_and_final(chain):
    with Program(chain.folder / "hooks") as server:
        said = attach(server.pid, "--on", "--endpoint", "discard", "--json")
        check(said["endpoint"] == ["discard"] or said["endpoint"] == "discard", f"{said}")
        wait_for_events(server.pid)
        line = attach(server.pid, "--on", "--endpoint", "tcp://127.0.0.1:1", status=common.USAGE)
        check("told to discard its events" in line, line)
        attach(server.pid, "--off", "--flush")
        said = status_of(server.pid)
        check(said["events-acked"] == 0 and said["events-discarded"] == said["events-written"] > 0, f"{said}")
        check("were recorded and discarded" in server.end(), "the end does not tell")
    with Program(chain.folder / "hooks", MILLRACE_ENDPOINT="tcp://127.0.0.1:1") as server:
        line = attach(server.pid, "--on", "--endpoint", "discard", status=common.USAGE)
        check("sends to tcp://" in line, line)
        server.end()


def test_mistakes_are_told_in_one_line(chain):
    hooks = chain.folder / "hooks"
    with Program(hooks) as server:
        cases = [
            ([server.pid, "--on"], "--endpoint tcp://host:port"),
            ([server.pid, "--on", "--endpoint", "nowhere"], "expected tcp://host:port"),
            ([server.pid, "--on", "--off"], "exclude each other"),
            ([server.pid, "--only", "x"], "need --on or --off"),
            ([server.pid, "--endpoint", "tcp://127.0.0.1:1"], "--endpoint needs --on"),
            ([server.pid, "--onn"], "did you mean '--on'"),
            ([server.pid, "--flush"], "never recorded"),
            ([server.pid, "--on", "--min-size", "many"], "is not a size"),
            ([server.pid, 1], "one process at a time"),
            (["abc"], "'abc' is not a pid"),
            ([2**22 + 1], "there is no process"),
            ([os.getpid()], "has no probe"),
        ]
        for arguments, text in cases:
            line = attach(*map(str, arguments), status=common.USAGE)
            check(text in line, f"{arguments}: {line}")
        server.end()
    with subprocess.Popen(["true"]) as ended:
        wait_until(lambda: open(f"/proc/{ended.pid}/stat", encoding="utf-8").read().split()[2] == "Z", common.WAIT_S,
                   "the end")
        check("has ended" in attach(ended.pid, status=common.USAGE), "a process that ended")


def test_globs_that_match_nothing_are_named(chain):
    endpoint = "tcp://127.0.0.1:9"
    with Program(chain.folder / "hooks") as server:
        line = attach(server.pid, "--on", "--only", "prase_head", "--endpoint", endpoint, status=common.USAGE)
        check("no function 'prase_head' that can be switched (near: parse_head" in line, line)
        check(status_of(server.pid)["state"] == "off", "nothing matched, and it is on")
        line = attach(server.pid, "--on", "--except", "prase_head", "--endpoint", endpoint, status=common.USAGE)
        check("no function 'prase_head' that can be switched (near: parse_head" in line, line)
        check(status_of(server.pid)["state"] == "on", "what was not excepted is off")
        server.end()
    if not common.HAS_SITES:
        return "hooks only: no patchable functions on this machine"
    with Program(chain.folder / "patchable", MILLRACE_EXIT_TIMEOUT="0s") as server:
        line = attach(server.pid, "--on", "--only", "request", "--only", "tokn", "--endpoint", endpoint,
                      status=common.USAGE)
        check("no function 'tokn' that can be switched (near: token" in line, line)
        said = status_of(server.pid)
        check(said["state"] == "on" and said["functions-on"] == 1, f"what matched is not on: {said}")
        server.end()
    return None


def test_another_users_process(chain):
    if os.geteuid() != 0:
        return "skipped: needs root"
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    with Program(chain.folder / "hooks") as server:
        name, = own_sockets(server.pid)
        line = attach(server.pid, status=common.USAGE, prefix=nobody)
        check("belongs to root: attach as that user, or as root" in line, line)
        # Where names have no mode, the probe itself refuses.
        refused = subprocess.run([*nobody, "python3", "-c", f"import socket; socket.socket(socket.AF_UNIX).connect('{name}')"],
                                 capture_output=True, text=True, check=False)
        check("Permission denied" in refused.stderr, refused.stderr)
        server.end()
    os.chmod(chain.folder, 0o755)
    with Program(chain.folder / "hooks", prefix=nobody) as server:
        wait_until(lambda: own_sockets(server.pid), common.WAIT_S, "a socket")
        check(status_of(server.pid)["state"] == "off", "root is refused")
        check(status_of(server.pid, prefix=nobody)["state"] == "off", "the user is refused")
        server.end()
    return None


def test_what_killed_processes_left_is_swept_away(chain):
    folder = chain.folder / "sweep"
    folder.mkdir()
    with Program(chain.folder / "hooks", MILLRACE_CONTROL_DIR=folder) as killed:
        name, = own_sockets(killed.pid)
        killed.process.send_signal(signal.SIGKILL)
        killed.process.wait()
    check(os.path.exists(name), "nothing is left to be swept")
    with Program(chain.folder / "hooks", MILLRACE_CONTROL_DIR=folder) as server:
        wait_until(lambda: not os.path.exists(name), common.WAIT_S, "the sweep")
        status_of(server.pid)
        server.end()


if __name__ == "__main__":
    common.run_tests(globals())
