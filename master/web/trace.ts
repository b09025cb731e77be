/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single traces: the list of exemplars, and the one that is looked at as a timeline, outer calls above inner ones, with the
 * statistics per path of its shape below. Asked apart from the rest of the page, and less often: what is kept seldom changes.
 */
interface Site { name: string; module: string | null; }
interface Exemplar {
    id: string; entry: string; site: Site; app: string | null; version: string | null; host: string | null; shape: string | null;
    why: string[]; status: string; pid: Num; stream: number; start_ns: number; total_ns: number;
    calls: number; elided_calls: number; elided_ns: number;
}
interface Exemplars { total: number; exemplars: Exemplar[]; }
interface TraceCall {
    site: number; depth: number; start_ns: number; total_ns: number; status: string; unwound?: boolean;
    elided_calls?: number; elided_ns?: number;
}
interface Trace extends Exemplar { sites: Site[]; tree: TraceCall[]; }
interface ShapePath {
    path: string; site: Site; depth: number; ok: number; failed: number;
    self_ns: number; total_ns: number; total_min_ns: number; total_max_ns: number; parent: string | null;
}
interface ShapeScope { entry: string; traces: number; counted_traces: number; paths_total: number; paths: ShapePath[]; }
interface Shape { scopes: ShapeScope[]; }

const TRACE_POLL_MS = 2000;
const TRACE_ROW = 20; /* height of a call, in the units of the drawing: pixels */
const TRACE_DEPTH_MAX = 60;
const TRACE_TICK = 60; /* width of a tick's text at most */
const SVG = "http://www.w3.org/2000/svg";

function startText(ns: number): string {
    return new Date(ns / 1e6).toISOString().replace("T", " ").slice(0, 23);
}

function elidedText(calls: number, ns: number): string {
    return calls ? "elided " + count(calls) + (calls === 1 ? " call, " : " calls, ") + time(ns) : "nothing elided";
}

function reasonText(trace: Exemplar): string {
    const best = trace.why.filter(why => why !== "asked").join(" and ");
    const of = best ? best + (trace.shape ? " of its shape" : " of those without a shape") : "";
    return [of, trace.why.includes("asked") ? "asked for" : ""].filter(Boolean).join(", ");
}

const exemplarColumns: Column<Exemplar>[] = [
    {title: "trace", hint: "look at its calls", name: true, sort: row => row.site.name,
     fill: (cell, row) => exemplarTitle(cell, row)},
    {title: "time", hint: "of its root call", sort: row => row.total_ns,
     fill: (cell, row) => duration(cell, row.total_ns)},
    {title: "status", hint: "ok, failed, or incomplete: it lost events or never ended", name: true, sort: row => row.status,
     fill: (cell, row) => plain(cell, row.status, row.status === "ok" ? "name" : "name alarm")},
    {title: "kept as", hint: "the first or the slowest trace of its shape, or asked for", name: true, sort: row => row.why.join(),
     fill: (cell, row) => plain(cell, row.why.join(", "), "name")},
    {title: "began", hint: "UTC", name: true, sort: row => row.start_ns,
     fill: (cell, row) => plain(cell, startText(row.start_ns), "name")},
    {title: "calls", hint: "of the whole trace", sort: row => row.calls,
     fill: (cell, row) => amount(cell, row.calls)},
    {title: "elided", hint: "shorter calls that were counted and not kept", sort: row => row.elided_calls,
     fill: (cell, row) => plain(cell, row.elided_calls ? count(row.elided_calls) + " calls, " + time(row.elided_ns) : DASH,
         row.elided_calls ? "" : "zero")},
    {title: "shape", hint: "traces of one structure have one; none: it was too large, or incomplete", name: true,
     sort: row => row.shape || "", fill: (cell, row) => plain(cell, row.shape ? row.shape.slice(0, 8) : DASH, "name")},
];

function exemplarTitle(cell: HTMLTableCellElement, row: Exemplar): void {
    if (!cell.firstElementChild) {
        const button = make("button", "look");
        button.type = "button";
        button.append(make("code"));
        cell.append(button, make("small"));
        button.addEventListener("click", () => void openTrace(button.dataset.id || ""));
    }
    (cell.children[0] as HTMLElement).dataset.id = row.id;
    setText(cell.children[0].children[0], row.site.name);
    setText(cell.children[1], [scopeText(row), row.pid === null ? "" : "pid " + row.pid,
        "stream " + row.stream].filter(Boolean).join(" \u00b7 "));
}

const exemplarTable = new Table<Exemplar>(byId("exemplars"), "Exemplars", exemplarColumns, row => row.id,
    "No trace is kept yet.", 1);

const shapePathColumns: Column<ShapePath & { order: number; traces: number }>[] = [
    {title: "path", hint: "below the entry point", name: true, sort: row => -row.order,
     fill: (cell, row) => {
         title(cell, row.site.name, "");
         (cell.firstElementChild as HTMLElement).style.paddingLeft = Math.min(row.depth, 30) * 14 + "px";
     }},
    {title: "calls", hint: "in the traces that were counted", sort: row => row.ok + row.failed,
     fill: (cell, row) => amount(cell, row.ok + row.failed)},
    {title: "per trace", hint: "calls per trace of this shape", sort: row => (row.ok + row.failed) / row.traces,
     fill: (cell, row) => plain(cell, ((row.ok + row.failed) / row.traces).toFixed(1), "")},
    {title: "self/call", hint: "mean time in the function itself", sort: row => row.self_ns / (row.ok + row.failed),
     fill: (cell, row) => mean(cell, row.self_ns, row.ok + row.failed)},
    {title: "total/call", hint: "mean time in it and what it calls", sort: row => row.total_ns / (row.ok + row.failed),
     fill: (cell, row) => mean(cell, row.total_ns, row.ok + row.failed)},
    {title: "min", hint: "the shortest call", sort: row => row.total_min_ns,
     fill: (cell, row) => duration(cell, row.total_min_ns)},
    {title: "max", hint: "the longest call", sort: row => row.total_max_ns,
     fill: (cell, row) => duration(cell, row.total_max_ns)},
    {title: "failed", hint: "calls that ended with status failed", sort: row => row.failed,
     fill: (cell, row) => amount(cell, row.failed, true)},
    {title: "", hint: "keep the next trace that takes this path whole, of whatever shape",
     fill: (cell, row) => recordCell(cell, row.path, row.site.name)},
];
const shapePathTable = new Table<ShapePath & { order: number; traces: number }>(byId("shape-paths"), "Paths of its shape",
    shapePathColumns, row => row.path, "No trace of this shape was counted by path.", 0);

/* Outer before inner, in the order in which the tree is walked. */
function inTreeOrder(paths: ShapePath[]): ShapePath[] {
    const below = new Map<string, ShapePath[]>(), known = new Set(paths.map(path => path.path)), order: ShapePath[] = [];
    const roots = paths.filter(path => path.parent === null || !known.has(path.parent));
    for (const path of paths)
        if (path.parent !== null && known.has(path.parent))
            below.set(path.parent, [...below.get(path.parent) || [], path]);
    const stack = roots.reverse();
    for (let path = stack.pop(); path; path = stack.pop()) {
        order.push(path);
        stack.push(...(below.get(path.path) || []).slice().reverse());
    }
    return order;
}

/* The timeline. */

interface View { trace: Trace; from: number; to: number; }
let view: View | null = null;

/* Calls of one function have one colour. */
function hue(name: string): number {
    let hash = 7;
    for (let i = 0; i < name.length; i++)
        hash = (hash * 31 + name.charCodeAt(i)) % 3600;
    return hash % 6;
}

function callText(trace: Trace, call: TraceCall): string {
    const inner = call.elided_calls ? "; " + elidedText(call.elided_calls, call.elided_ns || 0) + " in it" : "";
    return trace.sites[call.site].name + ", " + timeOf(call.total_ns) + " at +" + time(call.start_ns) +
        (call.status === "ok" ? "" : ", " + call.status) + (call.unwound ? ", unwound" : "") + inner;
}

function svg(tag: string, attributes: { [name: string]: string | number }, className = ""): SVGElement {
    const element = document.createElementNS(SVG, tag);
    for (const name of Object.keys(attributes))
        element.setAttribute(name, String(attributes[name]));
    if (className)
        element.setAttribute("class", className);
    return element;
}

function drawCall(trace: Trace, call: TraceCall, x: number, width: number): SVGElement {
    const y = call.depth * TRACE_ROW, text = visible(callText(trace, call)), name = visible(trace.sites[call.site].name);
    const group = svg("g", {tabindex: width > 8 ? 0 : -1, role: "button", "aria-label": text},
        "call c" + hue(name) + (call.status === "ok" ? "" : " bad"));
    const hint = svg("title", {}), letters = Math.floor((width - 8) / 6.7);
    hint.textContent = text;
    group.append(hint, svg("rect", {x, y, width: Math.max(width - 1, 0.7), height: TRACE_ROW - 2, rx: Math.min(2, width / 4)}));
    if (call.elided_calls && width > 3)
        group.append(svg("rect", {x: x + 1, y: y + TRACE_ROW - 5, height: 2,
            width: Math.max(0.7, (width - 3) * (call.elided_ns || 0) / Math.max(1, call.total_ns))}, "elided"));
    if (letters > 2) {
        const label = svg("text", {x: x + 4, y: y + TRACE_ROW - 7});
        label.textContent = name.length > letters ? name.slice(0, letters - 1) + "\u2026" : name;
        group.append(label);
    }
    group.addEventListener("mouseenter", () => setText(byId("trace-call"), text));
    group.addEventListener("focus", () => setText(byId("trace-call"), text));
    const zoom = () => {
        if (view && call.total_ns > 0)
            drawTrace({trace, from: call.start_ns, to: call.start_ns + call.total_ns});
    };
    group.addEventListener("click", zoom);
    group.addEventListener("keydown", event => {
        if ((event as KeyboardEvent).key === "Enter")
            zoom();
    });
    return group;
}

function drawTicks(canvas: Element, from: number, to: number, width: number, height: number): void {
    const span = to - from, step = Math.pow(10, Math.floor(Math.log10(span / 4)));
    const unit = span / step > 20 ? 5 * step : span / step > 8 ? 2 * step : step;
    for (let at = Math.ceil(from / unit) * unit; at < to && unit > 0; at += unit) {
        const x = width * (at - from) / span;
        const isLast = x + TRACE_TICK > width;
        const label = svg("text", {x: isLast ? x - 3 : x + 3, y: height + 13, "text-anchor": isLast ? "end" : "start"}, "tick");
        label.textContent = "+" + time(at);
        canvas.append(svg("line", {x1: x, x2: x, y1: 0, y2: height + 16}, "tick"), label);
    }
}

function drawTrace(next: View): void {
    const {trace, from, to} = next, canvas = byId<SVGSVGElement>("trace-canvas");
    const width = Math.max(300, (canvas.parentElement as HTMLElement).clientWidth - 32), span = Math.max(1, to - from);
    const deepest = trace.tree.reduce((most, call) => Math.max(most, call.depth), 0);
    const height = (Math.min(deepest, TRACE_DEPTH_MAX) + 1) * TRACE_ROW;
    view = next;
    canvas.replaceChildren();
    canvas.setAttribute("width", String(width));
    canvas.setAttribute("height", String(height + 18));
    canvas.setAttribute("viewBox", "0 0 " + width + " " + (height + 18));
    drawTicks(canvas, from, to, width, height);
    for (const call of trace.tree) {
        const begin = Math.max(call.start_ns, from), end = Math.min(call.start_ns + call.total_ns, to);
        const wide = width * (end - begin) / span;
        if (call.depth > TRACE_DEPTH_MAX || begin > end || (wide === 0 && (begin === to || end === from)))
            continue;
        canvas.append(drawCall(trace, call, width * (begin - from) / span, wide));
    }
    byId<HTMLButtonElement>("trace-whole").hidden = from === 0 && to >= trace.total_ns;
    setText(byId("trace-deeper"), deepest > TRACE_DEPTH_MAX ? "calls deeper than " + TRACE_DEPTH_MAX + " are not drawn" : "");
}

async function showShape(trace: Trace): Promise<void> {
    const card = byId<HTMLElement>("shape-part");
    const shape = trace.shape ? await ask<Shape>("api/v1/shapes/" + trace.shape + "?limit=2000") : null;
    const scope = shape ? shape.scopes.find(row => row.entry === trace.entry) : undefined;
    card.hidden = !scope;
    if (!scope)
        return;
    setText(byId("shape-note"), count(scope.traces) + " traces of this shape, " + count(scope.counted_traces) +
        " of them counted by path");
    shapePathTable.show(inTreeOrder(scope.paths).map((path, order) =>
        ({...path, order, traces: Math.max(1, scope.counted_traces)})));
}

async function openTrace(id: string): Promise<void> {
    let trace: Trace;
    const card = byId<HTMLElement>("trace-part");
    try {
        trace = await ask<Trace>("api/v1/exemplars/" + id);
    } catch (failure) {
        setText(byId("exemplars-note"), "this trace is not kept any more");
        return;
    }
    card.hidden = false;
    setText(byId("trace-title"), trace.site.name);
    setText(byId("trace-note"), [timeOf(trace.total_ns), trace.status, reasonText(trace),
        count(trace.calls) + " calls", elidedText(trace.elided_calls, trace.elided_ns)].join(" \u00b7 "));
    setText(byId("trace-call"), "Point at a call; click to look at it closely.");
    drawTrace({trace, from: 0, to: Math.max(1, trace.total_ns)});
    card.scrollIntoView({block: "nearest"});
    window.location.hash = "trace-" + id;
    await showShape(trace);
}

byId("trace-whole").addEventListener("click", () => {
    if (view)
        drawTrace({trace: view.trace, from: 0, to: Math.max(1, view.trace.total_ns)});
});
byId("trace-close").addEventListener("click", () => {
    byId<HTMLElement>("trace-part").hidden = true;
    byId<HTMLElement>("shape-part").hidden = true;
    window.location.hash = "";
});
window.addEventListener("resize", () => {
    if (view && !byId<HTMLElement>("trace-part").hidden)
        drawTrace(view);
});

async function pollTraces(): Promise<void> {
    if (!document.hidden) {
        try {
            const answer = await ask<Exemplars>("api/v1/exemplars?limit=" + ROWS);
            note("exemplars-note", answer.exemplars.length, answer.total, "the first and the slowest trace of each shape, and what was asked for, with their calls");
            exemplarTable.show(answer.exemplars);
        } catch (failure) {
            /* the page says so */
        }
    }
    window.setTimeout(pollTraces, TRACE_POLL_MS);
}

void pollTraces();
if (window.location.hash.startsWith("#trace-"))
    void openTrace(window.location.hash.slice(7));
