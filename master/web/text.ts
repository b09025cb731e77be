/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements of the page and what stands in them. All text goes in as text, never as markup: names come from the programs that are
 * traced. Numbers are written as people read them; one that is not known is null in the API and a dash here.
 */
"use strict";

type Num = number | null;
const DASH = "\u2013";

function byId<T extends Element>(id: string): T {
    const found = document.getElementById(id);
    if (!found)
        throw new Error("no element " + id);
    return found as unknown as T;
}

/* Controls, and what turns the direction of all that follows, are shown and not obeyed. */
function visible(text: string): string {
    return text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, "\ufffd");
}

function make<K extends keyof HTMLElementTagNameMap>(
    tag: K, className = "", text = ""): HTMLElementTagNameMap[K] {
    const element = document.createElement(tag);
    if (className)
        element.className = className;
    if (text)
        element.textContent = visible(text);
    return element;
}

function setText(element: Element, text: string): void {
    const shown = visible(text);
    if (element.textContent !== shown)
        element.textContent = shown;
}

/* Numbers as people read them. */

function count(value: Num): string {
    if (value === null)
        return DASH;
    const units: [number, string][] = [[1e12, "T"], [1e9, "G"], [1e6, "M"]];
    for (const [size, unit] of units)
        if (Math.abs(value) >= size)
            return (value / size).toPrecision(4) + " " + unit;
    return Math.round(value).toLocaleString("en-US");
}

function rate(perSecond: number): string {
    if (perSecond === 0)
        return "0";
    return perSecond < 10 ? perSecond.toFixed(1) : count(perSecond);
}

function time(ns: Num): string {
    if (ns === null)
        return DASH;
    const units: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"]];
    if (ns >= 6e11)
        return (ns / 6e10).toFixed(1) + " min";
    for (const [size, unit] of units)
        if (ns >= 0.9995 * size) /* what is rounded up to one: 1000 would have an exponent */
            return (ns / size).toPrecision(3) + " " + unit;
    return Math.round(ns) + " ns";
}

function percent(part: number, all: number): string {
    if (all <= 0)
        return DASH;
    const value = 100 * part / all;
    if (value > 0 && value < 0.1)
        return "< 0.1 %";
    return (value > 99.9 && value < 100 ? "> 99.9" : value.toFixed(1)) + " %";
}

/* For sorting: what is not known is less than all that is. */
function number(value: Num): number {
    return value === null ? -1 : value;
}
