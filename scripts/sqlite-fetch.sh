#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches Debian's sqlite3 source package and makes the amalgamation from it:
#
#     scripts/sqlite-fetch.sh        prints the folder that holds sqlite3.c, sqlite3.h and speedtest1.c
#
# The package comes by scripts/debian-source.sh; what is made from it stays in build/cache/sqlite3.
#
# Status 3 and one line on stderr when the package cannot be had.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=$root/build/cache/sqlite3
amalgamation=$cache/amalgamation

give_up() {
    echo "sqlite-fetch: Debian's sqlite3 source package cannot be had: $1" >&2
    exit 3
}

make_amalgamation() {
    local work=$cache/work tree=$cache/work/tree log=$cache/build.log
    command -v tclsh >/dev/null || give_up "the amalgamation needs tclsh (install tcl)"
    rm -rf "$work"
    mkdir -p "$work/build" "$amalgamation.new"
    dpkg-source --no-check -x "$package"/sqlite3_*.dsc "$tree" >"$log" 2>&1 ||
        give_up "dpkg-source failed (log: build/cache/sqlite3/build.log)"
    (cd "$work/build" && make -s -f "$tree/Makefile.linux-gcc" TOP="$tree" sqlite3.c >>"$log" 2>&1) ||
        give_up "making sqlite3.c failed (log: build/cache/sqlite3/build.log)"
    cp "$work/build/sqlite3.c" "$work/build/sqlite3.h" "$tree/test/speedtest1.c" "$amalgamation.new"
    basename "$package"/sqlite3_*.dsc .dsc >"$amalgamation.new/version"
    rm -rf "$amalgamation" "$work"
    mv "$amalgamation.new" "$amalgamation"
}

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9 # tests run side by side
if [ ! -e "$amalgamation/version" ]; then
    package=$("$root/scripts/debian-source.sh" sqlite3)
    make_amalgamation
fi
echo "$amalgamation"
