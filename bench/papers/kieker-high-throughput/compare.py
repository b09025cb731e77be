#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The published throughput and ours, side by side: OUT/kieker-high-throughput.md and .svg, from OUT/overhead.jsonl.

    compare.py OUT
"""
import csv
import json
import math
import pathlib
import sys
import xml.sax.saxutils

HERE = pathlib.Path(__file__).parent
NAME = "kieker-high-throughput"
ROW, BAR, LABEL, PLOT, TOP = 44, 15, 130, 560, 50


def read_published():
    with open(HERE / "table2.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_ours(out):
    """{(phase, kind): result of traces_per_second}; kind: ours, link, kieker, java."""
    found = {}
    with open(out / "overhead.jsonl", encoding="utf-8") as file:
        for line in file:
            result = json.loads(line)
            phase, system, _, _, point = result["case"].split("/")
            # What a link lets through is told by when all has passed it; what a program makes meanwhile waits in buffers.
            wanted = "drained_traces_per_second" if point.endswith("mbit") else "traces_per_second"
            if result["metric"] != wanted:
                continue
            kind = {"kieker": "kieker", "java": "java"}.get(system, "link" if point.endswith("mbit") else "ours")
            if system in ("plain", "hooks", "kieker", "java"):
                found.setdefault((phase, kind), result)
    return found


def thousands(value):
    return f"{value / 1000:,.1f} K"


def table(published, ours):
    yield "| phase | published | millrace | 95 % interval | ratio | over 500 Mbit/s | Kieker 2.0 here | lost |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for row in published:
        phase, theirs = row["phase"], float(row["traces_per_second"])
        result, link = ours.get((phase, "ours")), ours.get((phase, "link"))
        kieker = ours.get((phase, "kieker")) or ours.get((phase, "java"))
        cells = [phase, thousands(theirs)]
        if result:
            cells += [thousands(result["value"]), f"{thousands(result['low'])} to {thousands(result['high'])}",
                      f"{result['value'] / theirs:.1f}"]
        else:
            cells += ["-", "-", "-"]
        cells += [thousands(link["value"]) if link else "-", thousands(kieker["value"]) if kieker else "-",
                  "-" if not result or result["lost"] is None else str(result["lost"])]
        yield "| " + " | ".join(cells) + " |"


def relative(published, ours):
    """What is left of the untraced program's throughput: what machines of different speed can be compared by."""
    base, none = float(published[0]["traces_per_second"]), ours.get(("none", "ours"))
    java = ours.get(("none", "java"))
    yield "| phase | published, x none | millrace, x none | Kieker 2.0 here, x none |"
    yield "| --- | ---: | ---: | ---: |"
    for row in published:
        result, kieker = ours.get((row["phase"], "ours")), ours.get((row["phase"], "kieker"))
        yield (f"| {row['phase']} | {float(row['traces_per_second']) / base:.3f} | "
               f"{result['value'] / none['value']:.3f} | " if result and none else
               f"| {row['phase']} | {float(row['traces_per_second']) / base:.3f} | - | ") + (
                   f"{kieker['value'] / java['value']:.3f} |" if kieker and java else "- |")


def differences(out, ours):
    environment = json.loads((out / "environment.json").read_text(encoding="utf-8"))
    machine = environment["machine"]
    yield f"- Machine: {machine['processor']}, {machine['cpus']} processors, {machine['kernel']}; theirs was of 2013. Ratios of rates mix both."
    yield "- A C program here, Java there: their untraced root call takes 0.4 us, ours is the recursion and three reads of the clock."
    yield f"- {environment['calls']:,} root calls x {environment['loops']} loops here; theirs 100,000,000 once. The first half is warm-up in both."
    yield "- Depth 10 is assumed of theirs, as its text does not tell; see README.md."
    yield ("- Their last three phases were limited by a link of 500 Mbit/s; ours go over loopback, and over such a link where that column is filled "
           "(all calls, until the last event was in custody; the encoding is compact there).")
    yield "- Their analysis ran on machines of its own; here program, writer, worker and master share the processors above."
    yield ("- Their reduction keeps count, least and largest; ours a path tree with histograms, folded shapes, exemplars, and a master "
           "that has it all on disk.")
    yield f"- Placement of the worker's filters: {environment['placement']}; policy: {environment['policy']}."
    if environment["partial"]:
        yield "- OUR RUN WAS INTERRUPTED: fewer loops than asked for."
    for line in (environment["skipped"] or "").splitlines():
        yield f"- Left out: {line.strip()}"
    if ("reduction", "ours") in ours:
        result = ours[("reduction", "ours")]
        goal = "is" if result["value"] > 5e6 else "is NOT"
        yield f"- The goal of more than 5 M traces/s in phase reduction {goal} reached."


def chart(published, ours):
    """Bars over a logarithmic axis from 10 K to 100 M."""
    def x(value):
        return LABEL + PLOT * (math.log10(max(value, 1e4)) - 4) / 4
    height = TOP + ROW * len(published) + 40
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LABEL + PLOT + 110} {height}" font-family="sans-serif" '
           'font-size="11"><rect width="100%" height="100%" fill="#fff"/>')
    yield ('<text x="10" y="20" font-size="15" font-weight="bold">traces per second: published (light) and here (dark)</text>')
    for power in range(4, 9):
        at, words = x(10 ** power), {4: "10 K", 5: "100 K", 6: "1 M", 7: "10 M", 8: "100 M"}[power]
        yield f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 10}" y2="{height - 34}" stroke="#ddd"/>'
        yield f'<text x="{at:.1f}" y="{height - 18}" text-anchor="middle">{words}</text>'
    for number, row in enumerate(published):
        result = ours.get((row["phase"], "ours"))
        bars = [(float(row["traces_per_second"]), "#a9c4de")] + ([(result["value"], "#2f5d8a")] if result else [])
        y = TOP + ROW * number
        yield f'<text x="10" y="{y + 19}">{xml.sax.saxutils.escape(row["phase"])}</text>'
        for value, colour in bars:
            yield f'<rect x="{LABEL}" y="{y}" width="{x(value) - LABEL:.1f}" height="{BAR}" fill="{colour}"/>'
            yield f'<text x="{x(value) + 5:.1f}" y="{y + 12}">{thousands(value)}</text>'
            y += BAR + 2
    yield "</svg>"


def main():
    if len(sys.argv) != 2 or not (pathlib.Path(sys.argv[1]) / "overhead.jsonl").is_file():
        sys.exit("usage: compare.py OUT, a folder that `millrace bench overhead` has written")
    out = pathlib.Path(sys.argv[1])
    published, ours = read_published(), read_ours(out)
    text = ["# The high-throughput Kieker paper and this machine", "", "Traces per second: a trace is a root call of depth 10, 20 events.",
            "", *table(published, ours), "", *relative(published, ours), "", "What differs:", "", *differences(out, ours), ""]
    (out / f"{NAME}.md").write_text("\n".join(text), encoding="utf-8")
    (out / f"{NAME}.svg").write_text("\n".join(chart(published, ours)) + "\n", encoding="utf-8")
    print("\n".join(text))


if __name__ == "__main__":
    main()
