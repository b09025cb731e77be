/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: per source, and by stage from probes to here. Its table is made in page.ts. */
"use strict";

interface Balance {
    streams: number; streams_balanced: number; written: number; reduced: number; held: number;
    lost: number; lost_by_reason: { [reason: string]: number }; balanced: boolean;
    sent: Num; past_limit: number; missing: number; host_gone: number; missing_since_ns: Num; excess: number; silent_since_ns: Num;
}
/* Where events are on their way; null: nobody told. */
interface Stages {
    sources: number; sources_told: number; sources_silent: number; sources_died: number; sent: Num; received: Num; reduced: number; held: number;
    lost: number; in_custody: number; host_gone: number; excess: number;
    levels: { [level: string]: { [name: string]: number } };
    master: { frames: number; duplicates: number; register_questions: number; pending_bytes: number; durable: boolean } | null;
}
interface Source {
    id: string; host: string | null; app: string | null; version: string | null; exe: string | null;
    pid: Num; state: string | null; policy: string | null; clock: Clock | null; ledger: Balance; link: Link | null;
}
interface Link { encoding: string; reason: string | null; }
interface Clock { kind: string; tick_ns?: number; clock_warning?: string; times_clamped?: number; clock_drift_ns?: number; }
interface Parts { came: number; joined: number; waiting: number; incomplete: number; incomplete_by_reason: { [reason: string]: number }; }
interface Ledger {
    total: number; ledger: Balance; stages: Stages; parts: Parts; sources: Source[]; tick_ns: Num;
    source_events_past_limit: number; notes_past_limit: number;
}

function reasonsText(counts: { [reason: string]: number }): string {
    return Object.keys(counts).map(reason => reason + " " + count(counts[reason])).join(", ");
}

function lossText(ledger: Balance): string {
    return reasonsText(ledger.lost_by_reason);
}

function when(ns: Num): string {
    return ns === null ? "" : "since " + new Date(ns / 1e6).toLocaleTimeString();
}

/* What of the missing events is told as lost, and what may come yet. */
function missingText(ledger: Balance): string {
    const parts = [];
    if (ledger.host_gone)
        parts.push("host gone " + count(ledger.host_gone));
    if (ledger.missing > ledger.host_gone)
        parts.push("in doubt " + count(ledger.missing - ledger.host_gone));
    if (ledger.excess)
        parts.push("counted twice " + count(ledger.excess));
    return parts.join(", ");
}

function clockText(clock: Clock | null): string {
    if (!clock)
        return "";
    const parts = [clock.tick_ns ? "hybrid, \u00b1" + time(clock.tick_ns) : clock.kind];
    if (clock.clock_warning)
        parts.push(clock.clock_warning);
    if (clock.times_clamped)
        parts.push(count(clock.times_clamped) + " times clamped");
    if (clock.clock_drift_ns && Math.abs(clock.clock_drift_ns) >= 1e6)
        parts.push("drift " + (clock.clock_drift_ns / 1e6).toFixed(1) + " ms");
    return parts.join(", ");
}

const ledgerColumns: Column<Source>[] = [
    {title: "source", hint: "a running program", name: true, sort: row => row.app || row.id,
     fill: (cell, row) => title(cell, row.app || row.id.slice(0, 12),
         [row.version, row.host, row.pid === null ? "" : "pid " + row.pid].filter(Boolean).join(" \u00b7 "))},
    {title: "state", hint: "live, finished; died: left without a goodbye, what it had not sent is in no number; silent: live, but not heard of for half a minute", name: true, sort: row => row.state || "",
     fill: (cell, row) => plain(cell, row.ledger.silent_since_ns === null ? row.state || DASH
         : "silent " + when(row.ledger.silent_since_ns), "name state-" + (row.state || "unknown"))},
    {title: "streams", hint: "threads and fibers", sort: row => row.ledger.streams,
     fill: (cell, row) => amount(cell, row.ledger.streams)},
    {title: "written", hint: "events that its probe wrote or lost", sort: row => row.ledger.written,
     fill: (cell, row) => amount(cell, row.ledger.written)},
    {title: "reduced", hint: "events that are in the model", sort: row => row.ledger.reduced,
     fill: (cell, row) => amount(cell, row.ledger.reduced)},
    {title: "held", hint: "enters that wait for their exit", sort: row => row.ledger.held,
     fill: (cell, row) => amount(cell, row.ledger.held)},
    {title: "lost", hint: "events that are not in the model", sort: row => row.ledger.lost,
     fill: (cell, row) => amount(cell, row.ledger.lost, true)},
    {title: "lost by reason", hint: "why", name: true, sort: row => lossText(row.ledger),
     fill: (cell, row) => plain(cell, lossText(row.ledger) || DASH, "name")},
    {title: "sent", hint: "events by its own account, when it last told: as it connects and as it ends", sort: row => number(row.ledger.sent),
     fill: (cell, row) => plain(cell, row.ledger.sent === null ? DASH : count(row.ledger.sent), "number")},
    {title: "missing", hint: "events sent that no worker brought here yet, or that were on a host that is gone", name: true,
     sort: row => row.ledger.missing,
     fill: (cell, row) => title(cell, missingText(row.ledger) || DASH, when(row.ledger.missing_since_ns))},
    {title: "clock", hint: "what its times are read from", name: true, sort: row => clockText(row.clock),
     fill: (cell, row) => plain(cell, clockText(row.clock) || DASH, "name")},
    {title: "sends", hint: "how its events come, as its probe chose by what the link carries", name: true,
     sort: row => row.link ? row.link.encoding : "",
     fill: (cell, row) => title(cell, row.link ? row.link.encoding : DASH, row.link && row.link.reason || "")},
    {title: "balanced", hint: "written = reduced + held + lost, for each of its streams",
     sort: row => row.ledger.balanced ? 1 : 0,
     fill: (cell, row) => plain(cell, row.ledger.balanced ? "yes" : "not yet",
         row.ledger.balanced ? "good" : "")},
];

function stagesText(stages: Stages): string {
    const known = (value: Num): string => value === null ? "?" : count(value);
    const parts = ["sent " + known(stages.sent) + " (" + stages.sources_told + " of " + stages.sources + " sources told)",
        "received " + known(stages.received), "reduced " + count(stages.reduced), "in custody " + count(stages.in_custody),
        "host gone " + count(stages.host_gone)];
    if (stages.sources_silent)
        parts.push(stages.sources_silent + " sources silent");
    if (stages.sources_died)
        parts.push(stages.sources_died + " sources died: what they had not sent is in no number");
    for (const level of Object.keys(stages.levels)) {
        const { frames, duplicates, frames_handed_over: given, frames_in_doubt: lost,
            frames_too_large: large, rows_too_large: rows } = stages.levels[level];
        parts.push("level " + level + ": " + count(frames || 0) + " frames" +
            (duplicates ? ", " + count(duplicates) + " duplicates dropped" : "") +
            (given ? ", " + count(given) + " handed over" : "") + (lost ? ", " + count(lost) + " given up" : "") +
            (large ? ", " + count(large) + " larger than --max-frame above, lost" : "") +
            (rows ? ", " + count(rows) + " rows larger than --max-frame above, lost" : ""));
    }
    if (stages.master)
        parts.push("duplicates dropped " + count(stages.master.duplicates),
            stages.master.durable ? "all durable" : count(stages.master.pending_bytes) + " bytes not durable yet");
    return parts.join("; ");
}

/* What the master has no room for. */
function notKeptText(of: Ledger): string {
    return (of.ledger.past_limit ? "; " + count(of.ledger.past_limit) + " events of streams past --max-streams, without a row" : "") +
        (of.source_events_past_limit ? "; " + count(of.source_events_past_limit) + " events more, of sources past --max-sources" : "") +
        (of.notes_past_limit ? "; some notes are missing (--max-notes)" : "");
}

function showLedgerState(of: Ledger): void {
    const { ledger, stages } = of;
    const badge = byId<HTMLElement>("ledger-state");
    const isBad = ledger.lost + ledger.host_gone + ledger.excess > 0;
    setText(byId("ledger-stages"), stagesText(stages));
    badge.hidden = ledger.streams === 0;
    badge.className = "badge " + (isBad ? "bad" : "good");
    if (isBad)
        setText(badge, count(ledger.lost + ledger.host_gone) + " events lost" +
            (ledger.excess ? ", " + count(ledger.excess) + " counted twice" : ""));
    else
        setText(badge, ledger.balanced ? "ledger balanced" : "nothing lost, in flight");
    setText(byId("ledger-note"), count(ledger.written) + " written = " + count(ledger.reduced) +
        " reduced + " + count(ledger.held) + " held + " + count(ledger.lost) + " lost" +
        (ledger.balanced ? "" : ", " + (ledger.streams - ledger.streams_balanced) + " of " +
            ledger.streams + " streams in flight") + notKeptText(of));
}
