/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces that are asked for: "record" beside an entry point, a shape and a path, and the list of what was asked,
 * with what came of it. Who asks waits, so the list is asked for more often while a request is open.
 */
interface Wanted {
    id: string; path: string | null; shape: string | null; site: Site | null; min_ns: number; count: number; came: number;
    state: string; created_ns: number; ttl_s: number; left_s: number; exemplars: string[];
}
interface WantedList { requests: Wanted[]; }
interface Wish { path?: string; shape?: string; count?: number; min_ns?: number; ttl_s?: number; }

const WANTED_POLL_MS = 500, WANTED_QUIET_MS = 3000;
let wantedTimer = 0;

function wantedWhat(row: Wanted): string {
    const what = row.shape ? "shape " + row.shape.slice(0, 8) : row.path ? "path " + row.path.slice(0, 8) : "";
    return what + (row.min_ns ? ", " + time(row.min_ns) + " or more" : "");
}

function wantedState(row: Wanted): string {
    if (row.state === "open")
        return "open, " + Math.ceil(row.left_s) + " s left";
    return row.state === "done" ? "done" : "over after " + row.ttl_s + " s";
}

/* One link for each trace that is there; what came and is not there yet, or any more, is counted. */
function showCame(cell: HTMLTableCellElement, row: Wanted): void {
    const shown = row.exemplars.join();
    if (cell.dataset.shown === shown + row.came)
        return;
    cell.dataset.shown = shown + row.came;
    cell.replaceChildren();
    cell.className = "name";
    row.exemplars.forEach((id, index) => {
        const button = make("button", "look");
        button.type = "button";
        button.append(make("code", "", "trace " + (index + 1)));
        button.setAttribute("aria-label", "look at trace " + (index + 1) + " that came");
        button.addEventListener("click", () => void openTrace(id));
        cell.append(button);
    });
    if (row.exemplars.length === 0)
        cell.append(row.came ? "not kept any more" : DASH);
}

function showRemove(cell: HTMLTableCellElement, row: Wanted): void {
    if (!cell.firstElementChild) {
        const button = make("button", "record");
        button.type = "button";
        button.addEventListener("click", () => void withdraw(button.dataset.id || ""));
        cell.append(button);
    }
    (cell.firstElementChild as HTMLElement).dataset.id = row.id;
    setText(cell.children[0], row.state === "open" ? "withdraw" : "remove");
}

const wantedColumns: Column<Wanted>[] = [
    {title: "what", hint: "traces of this entry point, path or shape", name: true, sort: row => row.site ? row.site.name : "",
     fill: (cell, row) => title(cell, row.site ? row.site.name : DASH, wantedWhat(row))},
    {title: "asked", hint: "UTC", name: true, sort: row => row.created_ns,
     fill: (cell, row) => plain(cell, startText(row.created_ns), "name")},
    {title: "state", hint: "open until as many came as were asked for, or the time is over", name: true, sort: row => row.state,
     fill: (cell, row) => plain(cell, wantedState(row), row.state === "expired" && row.came === 0 ? "name alarm" : "name")},
    {title: "came", hint: "of those asked for", sort: row => row.came,
     fill: (cell, row) => plain(cell, row.came + " of " + row.count, row.came ? "" : "zero")},
    {title: "traces", hint: "look at one", name: true, fill: showCame},
    {title: "", hint: "take it out of the list", fill: showRemove},
];
const wantedTable = new Table<Wanted>(byId("wanted"), "Asked for", wantedColumns, row => row.id,
    "Nobody has asked for a trace.", 1);

async function change(path: string, method: string, wish?: Wish): Promise<void> {
    const answer = await fetch(path, {method, cache: "no-store", body: wish && JSON.stringify(wish),
        headers: wish ? {"Content-Type": "application/json"} : {}});
    if (!answer.ok)
        throw new Error((await answer.json() as { error: string }).error);
}

async function tellOutcome(what: Promise<void>): Promise<void> {
    const text = byId("wanted-error");
    try {
        await what;
        setText(text, "");
    } catch (failure) {
        setText(text, failure instanceof Error ? failure.message : "no answer from the master");
    }
    byId<HTMLElement>("wanted-card").hidden = false;
    await showWanted();
}

function withdraw(id: string): Promise<void> {
    return tellOutcome(change("api/v1/exemplars/wanted/" + id, "DELETE"));
}

async function record(wish: Wish): Promise<void> {
    await tellOutcome(change("api/v1/exemplars/wanted", "POST", wish));
    byId("wanted-card").scrollIntoView({block: "nearest"});
}

/* A cell with the button; what it asks for is the row's. */
function recordCell(cell: HTMLTableCellElement, path: string, name: string): void {
    if (!cell.firstElementChild) {
        const button = make("button", "record", "record");
        button.type = "button";
        button.addEventListener("click", () => void record({path: button.dataset.path}));
        cell.append(button);
    }
    const button = cell.firstElementChild as HTMLElement;
    button.dataset.path = path;
    button.title = "record the next trace of " + name + " whole";
    button.setAttribute("aria-label", button.title);
}

/* Of the trace that is looked at: the next of its shape, or of its entry point where it has none. */
function recordLike(trace: Trace): void {
    void record(trace.shape ? {path: trace.entry, shape: trace.shape} : {path: trace.entry});
}

async function showWanted(): Promise<void> {
    let isOpen = false;
    window.clearTimeout(wantedTimer);
    if (!document.hidden) {
        try {
            const list = (await ask<WantedList>("api/v1/exemplars/wanted")).requests;
            const open = list.filter(row => row.state === "open").length;
            isOpen = open > 0;
            if (list.length)
                byId<HTMLElement>("wanted-card").hidden = false;
            setText(byId("wanted-note"), open ? open + " open" : "none is open");
            wantedTable.show(list);
        } catch (failure) {
            /* the page says so */
        }
    }
    window.clearTimeout(wantedTimer); /* another one may have begun meanwhile */
    wantedTimer = window.setTimeout(() => void showWanted(), isOpen ? WANTED_POLL_MS : WANTED_QUIET_MS);
}

byId("trace-record").addEventListener("click", () => {
    if (view)
        recordLike(view.trace);
});
void showWanted();
