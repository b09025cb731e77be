# SPDX-License-Identifier: Apache-2.0
"""Programs in namespaces of their own, on read-only roots, with locked-down memory: attach works, or one line says why."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import common
import system
from common import Program, attach, own_sockets, status_of
from system import check, wait_until

NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
# The places where a socket could be made, writable (rw) or not (ro), and this file system's own. What is built may lie in
# one of them and is put back where it was.
PLACES = """exec 9<"$MR_BUILD"
for place in /tmp /dev/shm /var/tmp /run; do
    mount -t tmpfs none $place || exit 99
    case $MR_BUILD in $place/*) mkdir -p "$MR_BUILD" && mount -c --rbind /proc/self/fd/9 "$MR_BUILD" || exit 98 ;; esac
    [ {} = rw ] || mount -o remount,ro $place || exit 97
done
exec 9<&-
exec "$@"
"""


def can(*command):
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def inside(*options, places=None, user=()):
    """A command that runs another one in new namespaces; None where this machine does not allow that."""
    base = [*user, "unshare", *options]
    if not can(*base, "true"):
        return None
    return [*base, "sh", "-c", PLACES.format(places), "sh"] if places else base


def host_pid(process):
    """Of the program below unshare --fork."""
    def child():
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="utf-8") as file:
            pids = file.read().split()
        return int(pids[0]) if pids else None
    return wait_until(child, common.WAIT_S, "the program")


def end_of(pid):
    try:
        os.kill(pid, 15)
    except ProcessLookupError:
        pass


def check_attached(prefix, address, is_forked, **variables):
    """A program behind `prefix` is switched on and off from here; its socket's name begins with `address`."""
    if prefix is None:
        return "skipped: this machine does not allow it"
    with Program(FOLDER / "hooks", prefix=prefix, **variables) as server:
        check(server.first == "ready", f"the program said {server.first}: {server.process.poll()}")
        pid = host_pid(server.process) if is_forked else server.pid
        name, = own_sockets(pid)
        check(name.startswith(address), f"the socket is {name}")
        said = status_of(pid)
        check(said["state"] == "off", f"{said}")
        check(is_forked == (said["pid"] != pid), f"the program's own pid: {said}, from here {pid}")
        attach(pid, "--on", "--endpoint", "tcp://127.0.0.1:9")
        check(status_of(pid)["state"] == "on", "it is not on")
        check("off (was on)" in attach(pid, "--off"), "it is not off")
        end_of(pid)
        server.process.wait(common.WAIT_S)
    return None


def test_another_mount_namespace(_):
    return check_attached(inside("-m", places="rw"), "/tmp/millrace-", False)


def test_another_pid_namespace(_):
    return check_attached(inside("-m", "-p", "-f", "--mount-proc", places="rw"), "/tmp/millrace-", True)


def test_another_network_namespace(_):
    return check_attached(inside("-m", "-n", places="rw"), "/tmp/millrace-", False)


def test_another_user_namespace(_):
    return check_attached(inside("-U", "-r", "-m", "-n", "-p", "-f", "--mount-proc", places="rw"), "/tmp/millrace-", True)


def test_a_user_whom_the_namespace_does_not_know(_):
    """Root outside is nobody inside: that it could open the socket's name shows who it is."""
    if os.geteuid() != 0:
        return "skipped: needs root"
    return check_attached(inside("-U", "-r", "-m", "-p", "-f", "--mount-proc", places="rw", user=NOBODY),
                          "/tmp/millrace-0/", True)


def test_a_read_only_root(_):
    return check_attached(inside("-m", places="ro"), "@millrace-", False)


def test_a_read_only_root_and_another_network_namespace(_):
    return check_attached(inside("-m", "-n", places="ro"), "@millrace-", False)


def test_a_name_without_a_mode_is_for_its_user_and_root(_):
    prefix = inside("-m", places="ro")
    if prefix is None or os.geteuid() != 0:
        return "skipped: needs root and a mount namespace"
    with Program(FOLDER / "hooks", prefix=prefix) as server:
        name, = own_sockets(server.pid)
        asked = subprocess.run([*NOBODY, "python3", "-c", "import socket; s = socket.socket(socket.AF_UNIX); "
                                f"s.connect('\\0{name[1:]}'); s.sendall(b'millrace/1 status\\n\\n'); print(s.recv(9))"],
                               capture_output=True, text=True, check=False)
        check("b''" in asked.stdout or "reset" in asked.stderr or "Broken pipe" in asked.stderr,
              f"another user got an answer: {asked.stdout}{asked.stderr}")
        check(status_of(server.pid)["state"] == "off", "root gets no answer")
        server.end()
    return None


def test_no_place_for_a_socket_is_one_line(_):
    for folder in ("/proc/none", "relative"):
        with Program(FOLDER / "hooks", MILLRACE_CONTROL_DIR=folder) as server:
            check("has no control socket" in attach(server.pid, status=common.USAGE), "it has a socket")
            errors = server.end()
        check(errors.count("\n") == 1 and f"millrace: not attachable: no control socket in MILLRACE_CONTROL_DIR={folder}"
              in errors, errors)


def check_locked(mode, program):
    with Program(FOLDER / program, mode) as server:
        if server.first == "unsupported":
            server.process.wait(common.WAIT_S)
            return "skipped: the system has no such lock"
        said = attach(server.pid, "--on", "--endpoint", "tcp://127.0.0.1:9", "--json")
        check(said["state"] == "on", f"{said}")
        if program == "patchable":
            refused = " ".join(said.get("refused", []))
            check(said["functions-on"] == said["functions"] or refused, f"neither on nor a reason: {said}")
            print(f"  {mode}: {said['functions-on']} of {said['functions']} functions on; {refused or 'nothing refused'}")
        common.wait_for_events(server.pid, 100)
        attach(server.pid, "--off")
        check("off" in attach(server.pid), "it is not off")
        server.process.kill()  # nobody takes its events
    return None


def test_locked_down_memory(_):
    said = []
    for mode in ("locked", "jail"):
        for program in ["hooks"] + (["patchable"] if common.HAS_SITES else []):
            word = check_locked(mode, program)
            if word:
                said.append(f"{mode} {word}")
    return "; ".join(sorted(set(said))) or None


if __name__ == "__main__":
    FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="attach-", dir=system.BUILD))  # /tmp is another one inside
    try:
        os.chmod(FOLDER, 0o755)
        common.compile_hooks(FOLDER / "hooks")
        if common.HAS_SITES:
            common.compile_patchable(FOLDER / "patchable")
        common.run_tests(globals(), compiles=False)
    finally:
        shutil.rmtree(FOLDER)
