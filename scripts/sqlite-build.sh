#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds SQLite's own benchmark, speedtest1, from Debian's source package in the variants asked for:
#
#     scripts/sqlite-build.sh [--out DIR] VARIANT...
#
#     plain          as the compiler makes it
#     instrumented   with `pkg-config --cflags --libs millrace`: every function of sqlite3.c and speedtest1.c
#     count          the same object code as instrumented, linked with tests/system/sqlite/count_hooks.c instead
#     gcov           with --coverage, unoptimised
#
# They become DIR/speedtest1.VARIANT (DIR: build/sqlite by default); what is newer than its sources and flags is kept.
# PKG_CONFIG_PATH tells where millrace.pc is. Status 3 when the source package cannot be had.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=$root/build/sqlite
compiler=${CC:-gcc}

usage() {
    sed -n '3,/^set/ { /^set/d; s/^# \{0,1\}//; p }' "${BASH_SOURCE[0]}"
}

# compile FLAGS-NAME SOURCE FLAGS...: SOURCE becomes objects/FLAGS-NAME/SOURCE.o, unless that is there and up to date.
compile() {
    local folder=$out/objects/$1 source=$2 object
    shift 2
    object=$folder/$(basename "$source" .c).o
    mkdir -p "$folder"
    if [ "$object" -nt "$source" ] && [ "$(cat "$object.flags" 2>/dev/null)" = "$compiler $*" ]; then
        return
    fi
    # In the folder of the object: gcov's notes are named after it. Warnings are SQLite's own affair.
    (cd "$folder" && "$compiler" -w -g -I"$amalgamation" "$@" -c "$source" -o "$object")
    echo "$compiler $*" >"$object.flags"
}

# Both sources at once: sqlite3.c takes nearly all of the time.
compile_both() {
    local flags=$1
    shift
    compile "$flags" "$amalgamation/speedtest1.c" "$@"
    compile "$flags" "$amalgamation/sqlite3.c" "$@"
}

link() {
    local variant=$1 flags=$2
    shift 2
    "$compiler" -g "$out/objects/$flags/sqlite3.o" "$out/objects/$flags/speedtest1.o" "$@" \
        -lm -ldl -pthread -o "$out/speedtest1.$variant.new"
    mv "$out/speedtest1.$variant.new" "$out/speedtest1.$variant"
}

build() {
    local cflags libs
    case $1 in
    plain)
        compile_both plain -O2
        link plain plain
        ;;
    instrumented)
        read -ra cflags <<<"$(pkg-config --cflags millrace)"
        read -ra libs <<<"$(pkg-config --libs millrace)"
        compile_both instrumented -O2 "${cflags[@]}"
        link instrumented instrumented "${libs[@]}"
        ;;
    count)
        read -ra cflags <<<"$(pkg-config --cflags millrace)"
        compile_both instrumented -O2 "${cflags[@]}"
        link count instrumented -O2 "$root/tests/system/sqlite/count_hooks.c"
        ;;
    gcov)
        compile_both gcov -O0 --coverage
        link gcov gcov --coverage
        ;;
    *)
        echo "sqlite-build: no variant '$1' (plain, instrumented, count, gcov)" >&2
        exit 2
        ;;
    esac
}

if [ "${1:-}" = --help ]; then
    usage
    exit 0
fi
if [ "${1:-}" = --out ]; then
    mkdir -p "${2:?sqlite-build: --out wants a folder}"
    out=$(cd "$2" && pwd)
    shift 2
fi
if [ $# -eq 0 ]; then
    usage >&2
    exit 2
fi
amalgamation=$("$root/scripts/sqlite-fetch.sh")
mkdir -p "$out"
exec 8>"$out/lock"
flock 8 # tests run side by side
for variant in "$@"; do
    build "$variant"
done
