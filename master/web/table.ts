/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables: columns say how a row is shown and sorted; rows are kept by key, and updated in place, so that scroll position, sorting
 * and focus stay.
 */
"use strict";

interface Column<Row> {
    title: string;
    hint: string;
    sort?: (row: Row) => number | string;
    fill: (cell: HTMLTableCellElement, row: Row) => void;
    name?: boolean;
}

function plain(cell: HTMLTableCellElement, text: string, className = ""): void {
    setText(cell, text);
    if (cell.className !== className)
        cell.className = className;
}

function amount(cell: HTMLTableCellElement, value: Num, alarm = false): void {
    const kind = value === null ? "none" : value === 0 ? "zero" : alarm ? "alarm" : "";
    plain(cell, count(value), kind);
}

/* The longest tick of the sources' clocks: what a single time is off by. 0: all are precise. */
let tick = 0;

/* Of one call, or the sum of several, which is nearer to the truth than one: what the clock cannot tell is not shown as 0. */
function timeOf(ns: Num, calls = 1): string {
    const hidden = ns !== null && tick > 0 && (calls === 1 ? ns < tick : ns === 0);
    return hidden ? "\u2264 " + time(calls * tick) : time(ns);
}

function duration(cell: HTMLTableCellElement, ns: Num, calls = 1): void {
    plain(cell, timeOf(ns, calls), ns === null ? "none" : "");
}

function mean(cell: HTMLTableCellElement, sum: Num, calls: number): void {
    if (sum === null || sum === 0)
        duration(cell, sum);
    else
        plain(cell, time(sum / calls), "");
}

/* A number, its part of the whole, and that part as a bar. */
function share(cell: HTMLTableCellElement, text: string, part: number, all: number): void {
    if (!cell.firstElementChild) {
        const track = make("i");
        track.append(make("b"));
        cell.className = "share";
        cell.append(make("span"), make("em"), track);
    }
    const [value, ratio, track] = Array.from(cell.children) as HTMLElement[];
    const width = all > 0 ? Math.max(0, Math.min(1, part / all)) : 0;
    (track.firstElementChild as HTMLElement).style.width = (100 * width).toFixed(1) + "%";
    setText(value, text);
    setText(ratio, percent(part, all));
}

function title(cell: HTMLTableCellElement, name: string, below: string, whole = below): void {
    if (!cell.firstElementChild)
        cell.append(make("code"), make("small"));
    setText(cell.children[0], name);
    setText(cell.children[1], below);
    cell.title = whole ? name + "\n" + whole : name;
}

class Table<Row> {
    private readonly body: HTMLTableSectionElement;
    private readonly rows = new Map<string, HTMLTableRowElement>();
    private readonly heads: HTMLTableCellElement[] = [];
    private sorted: number;
    private descending = true;
    private last: Row[] = [];
    filter: (row: Row) => boolean = () => true;

    constructor(private readonly table: HTMLTableElement, caption: string,
                private readonly columns: Column<Row>[], private readonly key: (row: Row) => string,
                private readonly empty: string, sorted: number) {
        this.sorted = sorted;
        const head = make("thead"), line = make("tr");
        columns.forEach(column => line.append(this.head(column)));
        head.append(line);
        this.body = make("tbody");
        this.table.append(make("caption", "", caption), head, this.body);
        this.mark();
    }

    /* A column that turned out to be needed, before the one at `index`. */
    insert(index: number, column: Column<Row>): void {
        const line = this.heads[0].parentElement as HTMLTableRowElement;
        const shown = this.columns[this.sorted];
        line.insertBefore(this.head(column), this.heads[index]);
        this.heads.splice(index, 0, this.heads.pop() as HTMLTableCellElement);
        this.columns.splice(index, 0, column);
        this.sorted = this.columns.indexOf(shown);
        this.rows.forEach(row => row.insertBefore(make("td"), row.cells[index]));
        this.body.querySelector(".empty")?.remove(); /* it is as wide as the table was */
        this.mark();
    }

    private head(column: Column<Row>): HTMLTableCellElement {
        const cell = make("th", column.name ? "name" : "");
        cell.scope = "col";
        cell.title = column.hint;
        if (column.sort) {
            const button = make("button", "", column.title);
            button.type = "button";
            button.addEventListener("click", () => this.sortBy(this.columns.indexOf(column)));
            cell.append(button);
        } else {
            cell.classList.add("plain");
            cell.textContent = column.title;
        }
        this.heads.push(cell);
        return cell;
    }

    private mark(): void {
        this.heads.forEach((cell, index) => {
            if (index === this.sorted)
                cell.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
            else
                cell.removeAttribute("aria-sort");
        });
    }

    private sortBy(index: number): void {
        this.descending = index === this.sorted ? !this.descending : !this.columns[index].name;
        this.sorted = index;
        this.mark();
        this.show(this.last);
    }

    private compare(a: Row, b: Row): number {
        const sort = this.columns[this.sorted].sort;
        if (!sort)
            return 0;
        const left = sort(a), right = sort(b);
        const order = left < right ? -1 : left > right ? 1 : 0;
        if (order)
            return this.descending ? -order : order;
        return this.key(a) < this.key(b) ? -1 : 1; /* so that equal rows lie still */
    }

    private newRow(): HTMLTableRowElement {
        const line = make("tr");
        for (const column of this.columns) {
            if (column === this.columns[0]) {
                const cell = make("th", "name");
                cell.scope = "row";
                line.append(cell);
            } else {
                line.append(make("td", column.name ? "name" : ""));
            }
        }
        return line;
    }

    refresh(): void {
        this.show(this.last);
    }

    show(rows: Row[]): void {
        this.last = rows;
        const shown = rows.filter(this.filter).sort((a, b) => this.compare(a, b));
        const seen = new Set<string>();
        let at: Element | null = this.body.firstElementChild;
        for (const row of shown) {
            const key = this.key(row);
            const line = this.rows.get(key) || this.newRow();
            this.rows.set(key, line);
            seen.add(key);
            this.columns.forEach((column, index) =>
                column.fill(line.cells[index], row));
            if (line === at)
                at = at.nextElementSibling;
            else
                this.body.insertBefore(line, at);
        }
        this.rows.forEach((line, key) => {
            if (!seen.has(key)) {
                line.remove();
                this.rows.delete(key);
            }
        });
        this.showEmpty(shown.length === 0, rows.length > 0);
    }

    private showEmpty(isEmpty: boolean, isFiltered: boolean): void {
        let line = this.body.querySelector(".empty");
        if (!isEmpty) {
            line?.remove();
            return;
        }
        if (!line) {
            line = make("tr", "empty");
            const cell = make("td");
            cell.colSpan = this.columns.length;
            line.append(cell);
            this.body.append(line);
        }
        setText(line.children[0], isFiltered ? "Nothing matches." : this.empty);
    }
}
