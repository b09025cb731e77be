# SPDX-License-Identifier: Apache-2.0
"""docs/examples/chain as far as it can be held to something here: HAProxy reads its files; systemd-analyze verifies the units; options in units
and containers are ones that the commands know; Kubernetes' objects are YAML whose selectors, ports and names meet each other; every
metric of the alerts is one that a real worker or master serves."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import level  # pylint: disable=wrong-import-position
from level import check, system  # pylint: disable=wrong-import-position

EXAMPLES = system.SOURCE / "docs/examples/chain"


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    check(done.returncode == 0, f"{shlex.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def check_options(command, arguments):
    """The command knows all of its arguments: --help, behind them, is reached."""
    run(system.MILLRACE, command, *arguments, "--help")


def check_end(name, seconds, arguments):
    """Whoever stops a worker waits for as long as it may without an acknowledgement; where it is killed then its spool stays."""
    drain_s = 5  # --drain-timeout
    check(not any(argument.startswith("--drain-timeout") for argument in arguments), f"{name}: another --drain-timeout")
    check(seconds > 11 * drain_s, f"{name}: killed after {seconds} s")
    check("--spool" in " ".join(arguments) and "/dev/shm" not in " ".join(arguments), f"{name}: the spool goes with it")


def haproxy():
    if not shutil.which("haproxy"):
        print("no haproxy here: left out")
        return
    for file in sorted(EXAMPLES.glob("*.cfg")):
        run("haproxy", "-c", "-f", str(file))


def units(folder):
    found = sorted(EXAMPLES.glob("*.service"))
    check(len(found) == 2, f"units {found}")
    for file in found:
        text = file.read_text()
        line = re.search(r"^ExecStart=/usr/bin/millrace (\w+) (.*)$", text, flags=re.M)
        check(line, f"{file.name}: ExecStart")
        check_options(line.group(1), shlex.split(line.group(2)))
        if line.group(1) == "worker":
            check_end(file.name, int(re.search(r"^TimeoutStopSec=(\d+)$", text, flags=re.M).group(1)), shlex.split(line.group(2)))
            state = re.search(r"^StateDirectory=(\S+)$", text, flags=re.M).group(1)
            check(f"--spool %S/{state}/" in line.group(2), f"{file.name}: spool and StateDirectory=")
        (folder / file.name.replace("@.", "@1.")).write_text(text.replace("/usr/bin/millrace", system.MILLRACE))
    if not shutil.which("systemd-analyze"):
        print("no systemd-analyze here: left out")
        return
    said = run("systemd-analyze", "verify", "--man=no", *sorted(map(str, folder.glob("*.service"))))
    check("millrace" not in said, said)


def load(path):
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError:
        print("no yaml module for this Python: left out")
        return None
    return list(yaml.safe_load_all(path.read_text()))


VERSIONS = {"Service": "v1", "StatefulSet": "apps/v1", "HorizontalPodAutoscaler": "autoscaling/v2"}


def check_set(found, services):
    name, spec = found["metadata"]["name"], found["spec"]
    labels = spec["template"]["metadata"]["labels"]
    check(spec["selector"]["matchLabels"] == labels, f"{name}: selector")
    check(spec["serviceName"] in services, f"{name}: service")
    volumes = {volume["name"] for volume in spec["template"]["spec"].get("volumes", [])}
    volumes |= {claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates", [])}
    (container,) = spec["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    check({port["name"]: port["port"] for port in services[name]["spec"]["ports"]} == ports, f"{name}: ports of service and container")
    check(services[name]["spec"]["selector"] == labels, f"{name}: selector of the service")
    for probe in ("livenessProbe", "readinessProbe"):
        check(container[probe]["httpGet"]["port"] in ports, f"{name}: {probe}")
    check({mount["name"] for mount in container["volumeMounts"]} == volumes, f"{name}: volumes")
    program, command = container["command"]
    check(program == "millrace", f"{name}: command")
    check_options(command, container["args"])
    if command == "worker":
        check_end(name, spec["template"]["spec"]["terminationGracePeriodSeconds"], container["args"])
    told = " ".join(container["args"])
    check(all(f":{port}" in told for port in ports.values()), f"{name}: ports in arguments")


def kubernetes():
    objects = load(EXAMPLES / "kubernetes.yml")
    if objects is None:
        return set()
    check(all(found["apiVersion"] == VERSIONS[found["kind"]] for found in objects), "versions")
    services = {found["metadata"]["name"]: found for found in objects if found["kind"] == "Service"}
    sets = [found for found in objects if found["kind"] == "StatefulSet"]
    check(len(services) == 2 and len(sets) == 2, "two services, two sets")
    for found in sets:
        check_set(found, services)
    (scaler,) = [found for found in objects if found["kind"] == "HorizontalPodAutoscaler"]
    target = scaler["spec"]["scaleTargetRef"]
    check(any(found["kind"] == target["kind"] and found["metadata"]["name"] == target["name"] for found in sets), "the scaler's target")
    return {metric["pods"]["metric"]["name"] for metric in scaler["spec"]["metrics"]}


def alerts(metrics):
    text = (EXAMPLES / "alerts.yml").read_text()
    if shutil.which("promtool"):
        run("promtool", "check", "rules", str(EXAMPLES / "alerts.yml"))
    named = set(re.findall(r"\bmillrace_\w+", text)) | metrics
    with system.System() as chain:
        master = chain.master()
        worker = level.worker(chain, master.endpoint)
        served = set(re.findall(r"^# TYPE (\w+) ", master.get_text("/metrics") + worker.get_text("/metrics"), flags=re.M))
    check(named and named <= served, f"metrics that nobody serves: {named - served}")
    runbook = (system.SOURCE / "docs/RUNBOOK.md").read_text()
    names = re.findall(r"alert: (\w+)", text)
    check(len(names) > 5 and all(f"| {name} |" in runbook for name in names), f"alerts that the runbook lacks: {names}")


def test():
    haproxy()
    with system.System() as chain:
        folder = pathlib.Path(chain.folder) / "units"
        folder.mkdir()
        units(folder)
    alerts(kubernetes())


if __name__ == "__main__":
    system.main(test)
