// SPDX-License-Identifier: Apache-2.0
// Numbers and names as the page writes them, by its own functions. Run by node with the compiled page:
//
//     node test_page_numbers.js BUILD/master/web/page.js
"use strict";
const fs = require("fs");
const vm = require("vm");

// Its functions are there once it has begun; without a document it ends at once.
const page = vm.createContext({});
try {
    vm.runInContext(fs.readFileSync(process.argv[2], "utf8"), page);
} catch (error) {
    if (error.name !== "ReferenceError")
        throw error;
}

const expected = [
    ["time", 0, "0 ns"],
    ["time", 999, "999 ns"],
    ["time", 999.6, "1.00 \u00b5s"],
    ["time", 1000, "1.00 \u00b5s"],
    ["time", 999400, "999 \u00b5s"],
    ["time", 999600, "1.00 ms"],
    ["time", 12345678, "12.3 ms"],
    ["time", 999.6e6, "1.00 s"],
    ["time", 599.9e9, "600 s"],
    ["time", 600e9, "10.0 min"],
    ["count", 999999, "999,999"],
    ["count", 22930000, "22.93 M"],
    ["rate", 0, "0"],
    ["rate", 9.94, "9.9"],
    ["percent", 1, 7, "14.3 %"],
    ["percent", 1, 100000, "< 0.1 %"],
    ["percent", 99999, 100000, "> 99.9 %"],
    ["stackText", [], 0, ""],
    ["stackText", ["serve", "read"], 0, "serve \u203a read"],
    ["stackText", ["walk", "walk", "walk", "read"], 47, "47 more \u203a walk \u00d7 3 \u203a read"],
    ["stackText", ["a", "b", "b", "a"], 0, "a \u203a b \u00d7 2 \u203a a"],
    ["visible", "f(<b>) \u05d0", "f(<b>) \u05d0"],
    ["visible", "a\n\u001b[31m\u009b\u202egpj.exe\u2066", "a\ufffd\ufffd[31m\ufffd\ufffdgpj.exe\ufffd"],
];
let failed = 0;
for (const [name, ...rest] of expected) {
    const text = rest.pop(), got = page[name](...rest);

    if (got !== text) {
        console.log(`${name}(${rest}) is '${got}', not '${text}'`);
        failed++;
    }
}
for (let exponent = 0; exponent < 13.5; exponent += 0.001) {
    const got = page.time(10 ** exponent);

    if (/e/.test(got) || got.replace(/[^0-9]/g, "").length > 4) {
        console.log(`time(${10 ** exponent}) is '${got}'`);
        failed++;
    }
}
console.log(failed ? `${failed} failed` : "passed");
process.exit(failed ? 1 : 0);
