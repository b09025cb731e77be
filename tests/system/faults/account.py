# SPDX-License-Identifier: Apache-2.0
"""Compares what the programs counted themselves with what the master has, per life and function, and with its ledger."""
import json
import re
import subprocess

from cast import FUNCTIONS, system


def found_calls(rows):
    """life -> function -> calls, of the master's table of functions."""
    found = {}
    for row in rows:
        name = re.fullmatch(r"([a-z_]+)_(\d+)", row["name"])
        if name and name.group(1) in FUNCTIONS:
            calls = found.setdefault(int(name.group(2)), {})
            count = row["ok"] + row["failed"] + row["incomplete"]
            calls[name.group(1)] = calls.get(name.group(1), 0) + count
    return found


class Books:
    """The master's side of a moment."""

    def __init__(self, functions, ledger):
        self.functions = found_calls(functions["functions"])
        self.ledger = ledger["ledger"]
        self.sources = {row["app"]: row for row in ledger["sources"]}

    @classmethod
    def of(cls, master):
        """None: it does not answer now."""
        answers = [master.get(7480, f"/api/v1/{what}?limit=10000") for what in ("functions", "ledger")]
        return cls(*map(json.loads, answers)) if all(answers) else None


def report(*command):
    """Of a store, the last of the command."""
    command = [*map(str, command[:-1]), "report", str(command[-1]), "--json", "--functions", "100000"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    system.check(run.returncode == 0, f"millrace report: {run.stderr}")
    return json.loads(run.stdout)


def check_store(master, books):
    """What `millrace report` reads from the store, after the master ended, is what it showed."""
    stored = found_calls(report(*master.host.inside, system.MILLRACE, master.store)["functions"])
    system.check(stored == books.functions, f"the store has {stored}, the master showed {books.functions}")


def differences(life, told, books):
    """What is wrong with one life's account, as lines."""
    own, found = told.calls, books.functions.get(life.number, {})
    wrong = [f"{name}_{life.number}: {found[name]} calls at the master, {own[name]} were made" for name in found
             if found[name] > own[name]]
    source = books.sources.get(life.app)
    if source is None:
        return wrong + ([f"{life.app}: unknown at the master, though {told.acked} events were acknowledged"] if told.acked else [])
    ledger, events = source["ledger"], 2 * sum(own.values())
    if ledger["reduced"] + ledger["held"] + ledger["lost"] != ledger["written"] or not ledger["balanced"] or ledger["held"]:
        wrong.append(f"{life.app}: the ledger does not balance: {ledger}")
    missing = sum(own.values()) - sum(found.values())
    if life.is_killed:
        if not told.acked <= ledger["written"] <= events:
            wrong.append(f"{life.app}: {ledger['written']} events told of, {told.acked} were acknowledged, {events} made")
        unsent = events - ledger["written"]
        if missing > unsent + ledger["lost"]:
            wrong.append(f"{life.app}: {missing} calls are missing, of {unsent} events that it never sent and {ledger['lost']} lost")
        return wrong
    if ledger["written"] != events:
        wrong.append(f"{life.app}: {ledger['written']} events told of, {events} were made: {ledger}")
    if missing > ledger["lost"] or (ledger["lost"] == 0 and found != own):
        wrong.append(f"{life.app}: {missing} calls are missing, {ledger['lost']} events are lost: own {own}, found {found}")
    return wrong


def all_differences(programs, books):
    wrong = []
    for program in programs:
        for life in program.lives:
            wrong += differences(life, life.told(), books)
    return wrong


def print_books(programs, books):
    print("life  policy  end     calls made   at the master  events told  reduced      lost  reasons")
    for program in programs:
        for life in program.lives:
            told, source = life.told(), books.sources.get(life.app)
            ledger = source["ledger"] if source else {"written": 0, "reduced": 0, "lost": 0, "lost_by_reason": {}}
            reasons = {name: count for name, count in ledger["lost_by_reason"].items() if count}
            print(f"{life.number:4}  {life.policy:6}  {'killed' if life.is_killed else 'normal'} {sum(told.calls.values()):12} "
                  f"{sum(books.functions.get(life.number, {}).values()):14} {ledger['written']:12} {ledger['reduced']:8} "
                  f"{ledger['lost']:9}  {reasons or ''}")
    total = {key: books.ledger[key] for key in ("written", "reduced", "held", "lost") if key in books.ledger}
    print(f"ledger of all: {total}, balanced: {books.ledger['balanced']}")
