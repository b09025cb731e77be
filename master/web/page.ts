/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live page: asks the API once a second, and shows what it says. Elements and numbers: text.ts; tables: table.ts; the ledger:
 * ledger.ts; single traces: trace.ts; those that are asked for: wanted.ts.
 */
"use strict";

interface Quantile { value_ns: number; low_ns: number; high_ns: number; }
interface ByCoverage { whole: number; folded: number; paths: number; incomplete: number; }
interface Entry {
    id: string; name: string; app: string | null; version: string | null; host: string | null;
    count: number; failed: number; incomplete: number; open: number; last_10s: number;
    time_ns: Num; max_ns: Num; p50: Quantile | null; p99: Quantile | null; shapes: number; paths: number;
}
interface Entries {
    total: number; traces: number; paths: number; shapes: number; open: number; entries: Entry[];
    traces_past_limit: number;
    coverage: { traces: ByCoverage; calls: ByCoverage; time_ns: ByCoverage };
}
interface Open {
    entry: string; site: { name: string }; app: string | null; version: string | null; host: string | null; open: number;
    oldest_for_ns: Num; in_call_for_ns: Num; stack: { name: string }[]; stack_elided: number;
}
interface Opens { total: number; open: Open[]; }
interface Func {
    site: string; name: string; module: string | null; file: string | null; line: Num;
    build_id: string | null; has_twin: boolean;
    calls: number; failed: number; incomplete: number; outer: boolean;
    self_ns: Num; total_ns: Num; self_max_ns: Num;
    pruned: Pruned | null; self_includes_pruned: boolean;
    counters?: { [name: string]: Counted };
}
/* Calls that were counted and not recorded; since_ns is null where all are recorded again. */
interface Pruned { sources: number; since_ns: Num; below_ns: Num; calls_not_recorded: Num; }
/* What a function's calls gained of a counter; null where none was counted. */
interface Counted { calls: number; backward: number; self: Num; total: Num; }
interface Absence { app: string | null; version: string | null; host: string | null; reason: string; }
interface Counter { name: string; unit: string | null; counted: boolean; absent: Absence[]; }
interface Functions {
    total: number; found: number; calls: number; calls_past_limit: number; self_ns: number; functions: Func[];
    counters?: Counter[];
}
/* A trace over several threads and processes; `edge` is the way into the part: null where it was never seen. */
interface Edge { count: number; clamped: number; max_ns: Num; time: { p50: Quantile; p99: Quantile }; }
interface Part {
    kind: string; missing: boolean; call_tree: boolean; run: boolean; large: boolean; edge: Edge | null;
    site: { name: string } | null; app: string | null; version: string | null; host: string | null; children: Part[];
}
interface Joined {
    id: string; traces: number; failed: number; incomplete: number; max_ns: Num; nodes: number;
    time: { p50: Quantile; p99: Quantile } | null; slowest: string | null; tree: Part;
}
interface JoinedTraces { total: number; past_max_joined: number; parts_waiting: number; traces: Joined[]; }

const POLL_MS = 1000;
const ROWS = 500;
const JOINED_ROWS = 100;
const SPARK_POINTS = 120;

/* The tables. */

let allTime = 0, allSelf = 0;

function quantileTitle(cell: HTMLTableCellElement, quantile: Quantile | null): void {
    duration(cell, quantile ? quantile.value_ns : null);
    cell.title = quantile
        ? "between " + time(quantile.low_ns) + " and " + time(quantile.high_ns) : "";
}

interface Scope { app: string | null; version: string | null; host: string | null; }

function scopeText(row: Scope): string {
    return [row.app, row.version, row.host].filter(Boolean).join(" \u00b7 ");
}

const entryColumns: Column<Entry>[] = [
    {title: "entry point", hint: "the function that a trace begins with", name: true,
     sort: row => row.name,
     fill: (cell, row) => title(cell, row.name, scopeText(row))},
    {title: "count", hint: "traces so far", sort: row => row.count,
     fill: (cell, row) => amount(cell, row.count)},
    {title: "per s", hint: "traces per second, over the last 10 s", sort: row => row.last_10s,
     fill: (cell, row) => plain(cell, rate(row.last_10s / 10), row.last_10s ? "" : "zero")},
    {title: "time", hint: "all its traces together, and its share of all entry points",
     sort: row => number(row.time_ns),
     fill: (cell, row) => share(cell, timeOf(row.time_ns, row.count), row.time_ns || 0, allTime)},
    {title: "p50", hint: "half of the traces took no longer", sort: row => row.p50 ? row.p50.value_ns : -1,
     fill: (cell, row) => quantileTitle(cell, row.p50)},
    {title: "p99", hint: "99 of 100 traces took no longer", sort: row => row.p99 ? row.p99.value_ns : -1,
     fill: (cell, row) => quantileTitle(cell, row.p99)},
    {title: "max", hint: "the slowest trace", sort: row => number(row.max_ns),
     fill: (cell, row) => duration(cell, row.max_ns)},
    {title: "failed", hint: "traces that ended with status failed", sort: row => row.failed,
     fill: (cell, row) => amount(cell, row.failed, true)},
    {title: "incomplete", hint: "traces that lost events or never ended", sort: row => row.incomplete,
     fill: (cell, row) => amount(cell, row.incomplete, true)},
    {title: "open", hint: "traces that run now", sort: row => row.open,
     fill: (cell, row) => amount(cell, row.open)},
    {title: "shapes", hint: "different structures of its traces", sort: row => row.shapes,
     fill: (cell, row) => amount(cell, row.shapes)},
    {title: "paths", hint: "different chains of calls below it", sort: row => row.paths,
     fill: (cell, row) => amount(cell, row.paths)},
    {title: "", hint: "keep its next trace whole", fill: (cell, row) => recordCell(cell, row.id, row.name)},
];

/* Outermost first; a recursion once, with how deep it is. */
function stackText(names: string[], elided: number): string {
    const parts: string[] = elided ? [elided + " more"] : [];
    for (let first = 0, next; first < names.length; first = next) {
        for (next = first + 1; next < names.length && names[next] === names[first];)
            next++;
        parts.push(names[first] + (next - first > 1 ? " \u00d7 " + (next - first) : ""));
    }
    return parts.join(" \u203a ");
}

/* The innermost call is what it hangs in; the way there below it, and whole where the pointer rests. */
function showStack(cell: HTMLTableCellElement, row: Open): void {
    const names = row.stack.map(site => site.name);
    title(cell, names.length ? names[names.length - 1] : DASH, stackText(names, row.stack_elided));
}

const openColumns: Column<Open>[] = [
    {title: "entry point", hint: "the function that a trace begins with", name: true,
     sort: row => row.site.name,
     fill: (cell, row) => title(cell, row.site.name, scopeText(row))},
    {title: "open", hint: "traces that run now", sort: row => row.open,
     fill: (cell, row) => amount(cell, row.open)},
    {title: "oldest", hint: "how long the oldest of them has been running", sort: row => number(row.oldest_for_ns),
     fill: (cell, row) => duration(cell, row.oldest_for_ns)},
    {title: "in call", hint: "how long the oldest has been in the call it is in",
     sort: row => number(row.in_call_for_ns),
     fill: (cell, row) => duration(cell, row.in_call_for_ns)},
    {title: "the oldest is in", hint: "and how it came there, from the entry point inwards", name: true, fill: showStack},
];

/* A joined trace: its parts below each other, each with how long it was waited for. */

function partName(part: Part): string {
    if (part.missing)
        return "not seen";
    return (part.site ? part.site.name : "no call") + (part.call_tree ? "" : ", outside of call trees") +
        (part.run ? " \u00d7 n" : "") + (part.large ? " \u2026" : "");
}

/* The first of a trace without a root is the one that was sent for. */
function rootOf(row: Joined): Part {
    return row.tree.missing && row.tree.children.length ? row.tree.children[0] : row.tree;
}

interface Line { depth: number; part: Part; }

function linesOf(part: Part, depth: number, lines: Line[]): Line[] {
    for (const child of part.children) {
        lines.push({depth, part: child});
        linesOf(child, depth + 1, lines);
    }
    return lines;
}

function waitText(part: Part): string {
    const edge = part.edge;
    if (!edge)
        return "";
    return "p50 " + timeOf(edge.time.p50.value_ns) + ", p99 " + timeOf(edge.time.p99.value_ns) + ", max " +
        timeOf(edge.max_ns) + (edge.clamped ? ", " + count(edge.clamped) + " clamped" : "");
}

function showParts(cell: HTMLTableCellElement, row: Joined): void {
    const lines = linesOf(row.tree, 0, []);
    let list = cell.firstElementChild;
    if (!list) {
        list = make("ul", "parts");
        cell.append(list);
    }
    while (list.children.length < lines.length) {
        const item = make("li");
        item.append(make("em"), make("code"), make("span"));
        list.append(item);
    }
    lines.forEach(({depth, part}, index) => {
        const item = (list as Element).children[index] as HTMLElement;
        const where = scopeText(part);
        item.style.paddingLeft = 18 * depth + "px";
        item.className = part.missing ? "missing" : "";
        setText(item.children[0], part.kind);
        setText(item.children[1], partName(part));
        setText(item.children[2], [where, waitText(part)].filter(Boolean).join(" \u2014 "));
    });
}

const joinedColumns: Column<Joined>[] = [
    {title: "trace", hint: "where it begins", name: true, sort: row => partName(rootOf(row)),
     fill: (cell, row) => title(cell, row.tree.missing ? "root not seen" : partName(row.tree),
         scopeText(row.tree),
         row.slowest ? "slowest: trace id " + row.slowest : "")},
    {title: "traces", hint: "traces of this structure", sort: row => row.traces,
     fill: (cell, row) => amount(cell, row.traces)},
    {title: "p50", hint: "half of them took less, end to end", sort: row => row.time ? row.time.p50.value_ns : -1,
     fill: (cell, row) => duration(cell, row.time && row.time.p50.value_ns)},
    {title: "p99", hint: "99 of 100 took less, end to end", sort: row => row.time ? row.time.p99.value_ns : -1,
     fill: (cell, row) => duration(cell, row.time && row.time.p99.value_ns)},
    {title: "max", hint: "the slowest", sort: row => number(row.max_ns),
     fill: (cell, row) => duration(cell, row.max_ns)},
    {title: "failed", hint: "traces whose root failed", sort: row => row.failed,
     fill: (cell, row) => amount(cell, row.failed, true)},
    {title: "incomplete", hint: "traces of which a part was not seen, or lost events", sort: row => row.incomplete,
     fill: (cell, row) => amount(cell, row.incomplete, true)},
    {title: "its parts, and how long each was waited for", hint: "from send to receive, from capture to attach", name: true,
     fill: showParts},
];

/* The last `parts` of a file's name. */
function tail(path: string | null, parts: number): string {
    return path ? path.split("/").slice(-parts).join("/") : "";
}

function place(row: Func, isShort: boolean): string {
    const file = isShort ? tail(row.file, 2) : row.file || "";
    const build = row.has_twin ? "build " + (isShort ? (row.build_id || "none").slice(0, 8) : row.build_id || "none") : "";
    return [isShort ? tail(row.module, 1) : row.module, build, file && row.line ? file + ":" + row.line : file,
        row.outer ? "outer frame" : ""].filter(Boolean).join(" \u00b7 ");
}

/* Recorded, and those that were counted only. */
function calls(cell: HTMLTableCellElement, row: Func): void {
    const pruned = row.pruned, notes: string[] = [];
    if (pruned && pruned.calls_not_recorded)
        plain(cell, count(row.calls) + " + " + count(pruned.calls_not_recorded), "");
    else
        amount(cell, row.calls);
    if (pruned)
        notes.push("recorded + counted only" + (pruned.since_ns === null ? ", for a while" :
            ": pruned in " + count(pruned.sources) + " sources, its median below " + time(pruned.below_ns || 0)));
    if (row.self_includes_pruned)
        notes.push("time of pruned functions that it calls is its own");
    cell.title = notes.join("; ");
}

const functionColumns: Column<Func>[] = [
    {title: "function", hint: "where the time goes", name: true, sort: row => row.name,
     fill: (cell, row) => title(cell, row.name, place(row, true), place(row, false))},
    {title: "calls", hint: "calls so far", sort: row => row.calls,
     fill: (cell, row) => calls(cell, row)},
    {title: "self", hint: "time in the function itself, and the share of all time",
     sort: row => number(row.self_ns),
     fill: (cell, row) => share(cell, timeOf(row.self_ns, row.calls), row.self_ns || 0, allSelf)},
    {title: "total", hint: "time in it and what it calls; a recursion counts once",
     sort: row => number(row.total_ns),
     fill: (cell, row) => duration(cell, row.total_ns, row.calls)},
    {title: "self/call", hint: "mean time in the function itself",
     sort: row => row.self_ns === null ? -1 : row.self_ns / row.calls,
     fill: (cell, row) => mean(cell, row.self_ns, row.calls)},
    {title: "max self", hint: "the longest time of one call in itself", sort: row => number(row.self_max_ns),
     fill: (cell, row) => duration(cell, row.self_max_ns)},
    {title: "failed", hint: "calls that ended with status failed", sort: row => row.failed,
     fill: (cell, row) => amount(cell, row.failed, true)},
    {title: "incomplete", hint: "calls whose end was not seen", sort: row => row.incomplete,
     fill: (cell, row) => amount(cell, row.incomplete, true)},
];

/* Counters on spans: a column each, once there are any; behind the time per call. */

const COUNTER_COLUMNS_MAX = 6;
const COUNTERS_AT = 5;
const counters = new Map<string, Counter>();

function absence(counter: Counter): string {
    return counter.absent.map(absent => (counter.counted ? "partly absent in " : "absent in ") +
        [absent.app, absent.host].filter(Boolean).join(" on ") + ": " + absent.reason).join("\n");
}

function gained(cell: HTMLTableCellElement, row: Func, name: string): void {
    const counter = counters.get(name), found = row.counters ? row.counters[name] : undefined;
    if (!counter || !counter.counted)
        plain(cell, "absent", "none");
    else if (!found || found.self === null)
        plain(cell, DASH, "none");
    else if (counter.unit === "ns")
        plain(cell, time(found.self), found.self === 0 ? "zero" : "");
    else
        amount(cell, found.self);
    const backward = found && found.backward ? count(found.backward) + " calls in which it ran backwards" : "";
    cell.title = [counter ? absence(counter) : "", backward].filter(Boolean).join("\n");
}

function showCounters(list: Counter[]): void {
    for (const counter of list) {
        const isNew = !counters.has(counter.name);
        counters.set(counter.name, counter);
        if (isNew && counters.size <= COUNTER_COLUMNS_MAX)
            functionTable.insert(COUNTERS_AT + counters.size - 1, {
                title: counter.name, hint: "what the function itself gained of the counter " + counter.name,
                sort: row => row.counters && row.counters[counter.name] ? number(row.counters[counter.name].self) : -1,
                fill: (cell, row) => gained(cell, row, counter.name)});
    }
    const absent = list.filter(counter => counter.absent.length > 0)
        .map(counter => counter.name + " " + absence(counter).split("\n")[0]);
    setText(byId("functions-counters"), absent.join("; "));
}

const entryTable = new Table<Entry>(byId("entries"), "Entry points", entryColumns, row => row.id,
    "No trace has ended yet. Point a worker at this master: millrace worker --forward ADDRESS.", 3);
const openTable = new Table<Open>(byId("open"), "Open now", openColumns, row => row.entry,
    "No trace is open.", 2);
const joinedTable = new Table<Joined>(byId("joined"), "Joined traces", joinedColumns, row => row.id,
    "No trace is joined yet.", 1);
const functionTable = new Table<Func>(byId("functions"), "Functions by self time", functionColumns,
    row => row.site, "No call was seen yet.", 2);
const ledgerTable = new Table<Source>(byId("ledger"), "Ledger by source", ledgerColumns, row => row.id,
    "No source was seen yet.", 3);

/* Header, totals, coverage. */

function showTotals(entries: Entries, functions: Functions, ledger: Ledger): void {
    const live = ledger.sources.filter(source => source.state === "live").length;
    const items: [string, string][] = [
        ["traces", count(entries.traces)],
        ["calls", count(functions.calls)],
        ["functions", count(functions.total)],
        ["paths", count(entries.paths)],
        ["shapes", count(entries.shapes)],
        ["open traces", count(entries.open)],
        ["sources live of " + count(ledger.total), count(live)],
    ];
    const list = byId<HTMLElement>("totals");
    while (list.children.length < items.length) {
        const item = make("div");
        item.append(make("dt"), make("dd"));
        list.append(item);
    }
    items.forEach(([name, value], index) => {
        setText(list.children[index].children[0], name);
        setText(list.children[index].children[1], value);
    });
}

const coverageText: [keyof ByCoverage, string][] = [
    ["whole", "whole shapes"], ["folded", "folded shapes"], ["paths", "paths only"],
    ["incomplete", "incomplete"],
];

function showCoverage(entries: Entries): void {
    const bar = byId<HTMLElement>("coverage"), legend = byId<HTMLElement>("legend");
    const times = entries.coverage.time_ns, traces = entries.coverage.traces;
    const all = coverageText.reduce((sum, [key]) => sum + times[key], 0);
    while (bar.children.length < coverageText.length) {
        const kind = coverageText[bar.children.length][0];
        const item = make("li");
        item.append(make("i", kind), make("b"), make("span"));
        bar.append(make("i", kind));
        legend.append(item);
    }
    coverageText.forEach(([key, text], index) => {
        (bar.children[index] as HTMLElement).style.flex = (all > 0 ? times[key] / all : 0) + " 0 0";
        (bar.children[index] as HTMLElement).style.display = times[key] > 0 ? "" : "none";
        setText(legend.children[index].children[1], percent(times[key], all));
        setText(legend.children[index].children[2], text + ", " + count(traces[key]) + " traces");
    });
    bar.setAttribute("aria-label", coverageText.map(([key, text]) =>
        text + " " + percent(times[key], all)).join(", "));
}

const rates: number[] = [];
let before: { calls: number; ms: number } | null = null;

function showSpark(calls: number): void {
    const now = performance.now();
    if (before && now > before.ms)
        rates.push(Math.max(0, 1000 * (calls - before.calls) / (now - before.ms)));
    before = {calls, ms: now};
    if (rates.length > SPARK_POINTS)
        rates.shift();
    if (rates.length < 2)
        return;
    const top = Math.max(1, ...rates);
    const points = rates.map((value, index) =>
        (120 * index / (rates.length - 1)).toFixed(1) + " " + (26.5 - 24 * value / top).toFixed(1));
    const [area, line] = Array.from(byId("spark").children);
    line.setAttribute("d", "M" + points.join("L"));
    area.setAttribute("d", "M0 28L" + points.join("L") + "L120 28Z");
    setText(byId("spark-text"), count(rates[rates.length - 1]) + " calls/s");
}

function note(id: string, shown: number, total: number, what: string): void {
    setText(byId(id), shown < total ? "the top " + count(shown) + " of " + count(total) + ", " + what : what);
}

/* What the master had no room for. */
function pastLimit(number: number, what: string): string {
    return number ? "; " + count(number) + " " + what + " more, of paths past --max-paths, --max-sites or --max-scopes" : "";
}

/* Only programs that hand work over have any. */
function showJoined(joined: JoinedTraces, parts: Parts): void {
    byId<HTMLElement>("joined-card").hidden = joined.total === 0 && joined.parts_waiting === 0;
    note("joined-note", joined.traces.length, joined.total, "requests over several threads and processes" +
        (joined.past_max_joined ? "; " + count(joined.past_max_joined) + " more of shapes past --max-joined" : "") +
        (joined.parts_waiting ? "; " + count(joined.parts_waiting) + " parts wait for others" : "") +
        (parts.incomplete ? "; of " + count(parts.came) + " parts ended incomplete: " + reasonsText(parts.incomplete_by_reason) : ""));
    joinedTable.show(joined.traces);
}

function show(entries: Entries, functions: Functions, ledger: Ledger, opens: Opens, joined: JoinedTraces): void {
    allTime = entries.entries.reduce((sum, row) => sum + (row.time_ns || 0), 0);
    allSelf = functions.self_ns;
    tick = ledger.tick_ns || 0;
    showTotals(entries, functions, ledger);
    showCoverage(entries);
    showLedgerState(ledger);
    showSpark(functions.calls);
    note("entries-note", entries.entries.length, entries.total, "where traces begin" + pastLimit(entries.traces_past_limit, "traces"));
    note("functions-note", functions.functions.length, functions.found, "by time in the function itself" +
        (functions.found < functions.total ? "; " + count(functions.found) + " of " + count(functions.total) + " match" : "") +
        pastLimit(functions.calls_past_limit, "calls"));
    entryTable.show(entries.entries);
    note("open-note", opens.open.length, opens.total, "traces that have not ended, and what the oldest is doing");
    openTable.show(opens.open);
    showJoined(joined, ledger.parts);
    showCounters(functions.counters || []);
    functionTable.show(functions.functions);
    ledgerTable.show(ledger.sources);
}

/* Asking. */

let find = "";

async function ask<T>(path: string): Promise<T> {
    const answer = await fetch(path, {cache: "no-store"});
    if (!answer.ok)
        throw new Error(path + ": " + answer.status);
    return await answer.json() as T;
}

function setState(isLive: boolean, text: string): void {
    byId("state").className = "state " + (isLive ? "live" : "lost-contact");
    document.body.classList.toggle("stale", !isLive);
    setText(byId("state-text"), text);
}

async function poll(): Promise<void> {
    if (!document.hidden) {
        try {
            show(...await Promise.all([
                ask<Entries>("api/v1/entries?limit=" + ROWS),
                ask<Functions>("api/v1/functions?limit=" + ROWS + (find ? "&find=" + encodeURIComponent(find) : "")),
                ask<Ledger>("api/v1/ledger?limit=" + ROWS),
                ask<Opens>("api/v1/open?limit=" + ROWS),
                ask<JoinedTraces>("api/v1/traces?limit=" + JOINED_ROWS),
            ]));
            setState(true, "live");
        } catch (failure) {
            setState(false, "no answer from the master");
        }
    }
    window.setTimeout(poll, POLL_MS);
}

byId<HTMLInputElement>("find").addEventListener("input", event => {
    find = (event.target as HTMLInputElement).value.trim(); /* the master looks among all, from the next answer on */
    const wanted = find.toLowerCase();
    functionTable.filter = row => (row.name + "\n" + (row.module || "")).toLowerCase().includes(wanted);
    functionTable.refresh();
});

void poll();
