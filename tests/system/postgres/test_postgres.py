# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL, each function of it traced, under pgbench: it does what it does untraced, and every event is accounted for.

MR_POSTGRES=1 python3 test_postgres.py (else skipped: three builds take 15 minutes of processor time, see
scripts/postgres-build.sh; they are kept). MR_POSTGRES_TRANSACTIONS: of each of 4 clients, 300 by default.
MR_POSTGRES_VARIANTS: of hooks,patchable; both by default. MR_POSTGRES_POLICIES: of drop,block. MR_POSTGRES_OUTER: the loops
that no process returns from, as the worker's --outer takes them; empty: none is named, and each process that lives for
long enough has its own learned, so take some 4,000 transactions.

pgbench runs a fixed number of transactions of a fixed seed. They only add, so what the tables hold at the end is the same
whatever their order: it must be what the untraced server has. The servers' logs must tell of no error and no crash. Runs:

    plain                   not instrumented
    VARIANT off             instrumented, nothing asked for
    VARIANT drop, block     traced through a worker to a master, by both policies; the ledger balances. With block nothing is
                            lost but what handlers call that interrupt a wait; and as the loops that no process returns
                            from are named (docs/OPERATIONS.md, servers that fork) or learned, call trees are whole
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
from system import check  # pylint: disable=wrong-import-position

OUT = system.BUILD / "postgres"
TRANSACTIONS = os.environ.get("MR_POSTGRES_TRANSACTIONS", "300")
VARIANTS = os.environ.get("MR_POSTGRES_VARIANTS", "hooks,patchable").split(",")
POLICIES = os.environ.get("MR_POSTGRES_POLICIES", "drop,block").split(",")
RUN_S = 900
NOBODY = 65534
SUMS = ("SELECT md5(string_agg(aid || ':' || abalance, ',' ORDER BY aid)) AS accounts, count(*) AS touched, "
        "sum(abalance) AS total, (SELECT sum(tbalance) FROM pgbench_tellers) AS tellers, "
        "(SELECT sum(bbalance) FROM pgbench_branches) AS branches, "
        "(SELECT count(*) FROM pgbench_history) AS history FROM pgbench_accounts WHERE abalance <> 0;\n")
# Where a process of it stays until it exits: `main` is the postmaster's, but not that of what it forks.
LOOPS = os.environ.get("MR_POSTGRES_OUTER", "*Main,ServerLoop,BackendStartup,BackendRun,StartBackgroundWorker")
BAD = re.compile(r"PANIC|FATAL|ERROR|terminated by signal|terminating any other|not properly shut down|corrupt")


def build():
    if not os.environ.get("MR_POSTGRES"):
        print("skipped: MR_POSTGRES=1 builds PostgreSQL and runs this test")
        sys.exit(system.SKIP)
    environment = dict(os.environ, PKG_CONFIG_PATH=str(system.BUILD / "lib" / "pkgconfig"))
    run = subprocess.run([system.SOURCE / "scripts" / "postgres-build.sh", "--out", OUT, "plain", *VARIANTS],
                         env=environment, capture_output=True, text=True, check=False)
    if run.returncode == 3:
        print(f"skipped: {run.stderr.strip()}")
        sys.exit(system.SKIP)
    check(run.returncode == 0, f"postgres-build.sh: {run.stderr[-2000:]}")


def as_user(command):
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return [str(part) for part in command]
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *map(str, command)]


def own(path):
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)


class Cluster:
    """A database cluster in a folder; a server of it at a time."""

    def __init__(self, test, name, template=None):
        self.test, self.name = test, name
        self.folder = test.folder / name.replace(" ", "-")
        self.folder.mkdir()
        self.folder.chmod(0o700)
        own(self.folder)
        self.data, self.log = self.folder / "data", self.folder.parent / f"{self.folder.name}.server.log"
        self.process = None
        if template:
            self.command(["cp", "-a", template.data, self.data])

    def command(self, command, **variables):
        run = subprocess.run(as_user(command), env=self.test.environment(**variables), stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=RUN_S, check=False, cwd="/")
        check(run.returncode == 0, f"{self.name}: {command}: {run.returncode}\n{run.stdout[-1000:]}{run.stderr[-1000:]}")
        return run.stdout

    def start(self, variant, **variables):
        command = [OUT / variant / "bin" / "postgres", "-D", self.data, "-k", self.folder, "-c", "listen_addresses=",
                   "-c", "fsync=off", "-c", "max_connections=20", "-c", "autovacuum=off"]  # it ends with a line of FATAL
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen(as_user(command), env=self.test.environment(**variables), cwd="/",
                                            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                            preexec_fn=system.die_with_parent)
        system.wait_until(lambda: self.process.poll() is not None or "ready to accept" in self.log.read_text(),
                          RUN_S, f"{self.name}: ready")
        check(self.process.poll() is None, f"{self.name} ended: {self.log.read_text()[-2000:]}")

    def stop(self):
        """Smart: who is still leaving is waited for, all is written."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(RUN_S)
        text = self.log.read_text()
        wrong = [line for line in text.splitlines() if BAD.search(line)]
        check(self.process.returncode == 0 and not wrong, f"{self.name} ended with {self.process.returncode}: {wrong}")
        return [line for line in text.splitlines() if line.startswith("millrace")]

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def pgbench(self, *arguments):
        return self.command([OUT / "plain" / "bin" / "pgbench", "-h", self.folder, *arguments, "postgres"])

    def contents(self):
        run = subprocess.run(as_user([OUT / "plain" / "bin" / "postgres", "--single", "-D", self.data, "postgres"]),
                             input=SUMS, env=self.test.environment(), capture_output=True, text=True, timeout=RUN_S,
                             check=False, cwd="/")
        rows = re.findall(r"\d+: (\w+) = \"([^\"]*)\"", run.stdout)
        check(run.returncode == 0 and len(rows) == 6, f"{self.name}: --single: {run.stdout}{run.stderr}")
        return rows


def make_template(test):
    template = Cluster(test, "template")
    template.command([OUT / "plain" / "bin" / "initdb", "-D", template.data, "-A", "trust", "--no-sync", "-E", "UTF8",
                      "--locale=C"])
    template.start("plain")
    try:
        template.pgbench("-i", "-q")
        template.stop()
    finally:
        template.kill()
    return template


def bench(test, template, name, variant, **variables):
    """(tps, contents, the probes' own words)"""
    cluster = Cluster(test, name, template)
    try:
        cluster.start(variant, **variables)
        output = cluster.pgbench("-n", "-c", "4", "-j", "2", "-t", TRANSACTIONS, "--random-seed=7")
        words = cluster.stop()
    finally:
        cluster.kill()
    done = re.search(r"actually processed: (\d+)/(\d+)", output)
    check(done and done[1] == done[2] == str(4 * int(TRANSACTIONS)), f"{name}: {output}")
    failed = re.search(r"failed transactions: (\d+)", output)
    check(not failed or failed[1] == "0", f"{name}: {output}")
    tps = float(re.search(r"tps = ([0-9.]+)", output)[1])
    contents = cluster.contents()
    shutil.rmtree(cluster.folder)
    return tps, contents, words


def shares_text(shares):
    every = shares["all"]
    parts = [f"{kind} {100 * of['calls'] / every['calls']:.1f} % of calls, {100 * of['time_ns'] / every['time_ns']:.1f} % of time"
             for kind, of in shares["shares"].items()]
    return "; ".join([*parts, f"on a path {100 * shares['path_time_ns'] / every['time_ns']:.1f} % of time"])


def traced(test, template, variant, policy, expected):
    name = f"{variant} {policy}"
    master = test.master(store=test.folder / f"store-{variant}-{policy}")
    worker = test.worker(master.endpoint, *(["--outer", LOOPS] if policy == "block" and LOOPS else []))
    variables = {"MILLRACE_ENDPOINT": worker.endpoint, "MILLRACE_POLICY": policy}
    if policy == "block":
        variables.update(MILLRACE_BLOCK_TIMEOUT="60s", MILLRACE_EXIT_TIMEOUT="300s")
    tps, contents, words = bench(test, template, name, variant, **variables)
    check(contents == expected, f"{name}: the tables differ: {contents}, not {expected}")
    test.stop(worker)
    ledger, shares = master.get("/api/v1/ledger")["ledger"], master.get("/api/v1/shares")
    test.stop(master)
    print(f"{name}: {shares_text(shares)}", flush=True)
    if policy == "block":  # calls whose ends were lost have no time on a path
        check(shares["path_time_ns"] >= 0.95 * shares["all"]["time_ns"], f"{name}: too little time is some path's: {shares}")
        check(shares["shares"]["incomplete"]["calls"] <= 0.1 * shares["all"]["calls"], f"{name}: most is incomplete: {shares}")
    lost = {reason: events for reason, events in ledger["lost_by_reason"].items() if events}
    print(f"{name}: {tps:.0f} tps; {ledger['written']} events of {ledger['streams']} streams = {ledger['reduced']} reduced "
          f"+ {ledger['lost']} lost {lost}; the probes say: {words or 'nothing'}", flush=True)
    check(ledger["balanced"] and ledger["held"] == 0, f"{name}: the ledger: {ledger}")
    check(ledger["written"] == ledger["reduced"] + ledger["lost"] and ledger["reduced"] > 0, f"{name}: {ledger}")
    # A signal handler that comes while its process waits for room does not wait in its turn.
    check(policy == "drop" or set(lost) <= {"nested"}, f"{name}: events were lost: {lost}")
    check(policy == "drop" or not words, f"{name}: {words}")


def test():
    build()
    with system.System() as chain:
        chain.folder.chmod(0o755)
        template = make_template(chain)
        tps, expected, _ = bench(chain, template, "plain", "plain")
        print(f"plain: {tps:.0f} tps; {dict(expected)}", flush=True)
        for variant in VARIANTS:
            tps, contents, words = bench(chain, template, f"{variant} off", variant)
            print(f"{variant} off: {tps:.0f} tps", flush=True)
            check(contents == expected and not words, f"{variant} off: {contents}, {words}, not {expected}")
            for policy in POLICIES:
                traced(chain, template, variant, policy, expected)


if __name__ == "__main__":
    system.main(test)
