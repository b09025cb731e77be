#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds PostgreSQL's server, initdb and pgbench from Debian's source package in the variants asked for:
#
#     scripts/postgres-build.sh [--out DIR] [--jobs N] VARIANT...
#
#     plain       as the compiler makes it
#     hooks       with `pkg-config --cflags --libs millrace`: every function
#     patchable   with the specs and libraries of millrace-patchable.pc: the same, by sites that are patched
#
# They are installed below DIR/VARIANT (DIR: build/postgres by default): bin/postgres, bin/initdb, bin/pgbench. A variant
# that is there and was built from the same sources with the same flags is kept. A build takes 5 minutes of processor time.
# PKG_CONFIG_PATH tells where millrace.pc is. Status 3 when the source package cannot be had.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source_name=postgresql-15
cache=$root/build/cache/$source_name
tree=$cache/tree
out=$root/build/postgres
jobs=${MR_JOBS:-2}
# What a server and pgbench need, in the order that they need each other.
folders=(src/common src/port src/timezone src/interfaces/libpq src/fe_utils src/backend src/backend/snowball
    src/pl/plpgsql/src src/bin/initdb src/bin/pgbench)

usage() {
    sed -n '3,/^set/ { /^set/d; s/^# \{0,1\}//; p }' "${BASH_SOURCE[0]}"
}

fail() {
    echo "postgres-build: $1 (log: $log)" >&2
    tail -n 5 "$log" >&2
    exit 1
}

# The sources, with Debian's patches, once.
unpack() {
    local package
    [ ! -e "$tree/configure" ] || return 0
    package=$("$root/scripts/debian-source.sh" "$source_name")
    rm -rf "$tree.new"
    mkdir -p "$cache"
    log=$cache/unpack.log
    dpkg-source --no-check -x "$package/${source_name}"_*.dsc "$tree.new" >"$log" 2>&1 || fail "dpkg-source failed"
    mv "$tree.new" "$tree"
}

flags_of() {
    case $1 in
    plain) cflags= libs= ;;
    hooks) cflags=$(pkg-config --cflags millrace) libs=$(pkg-config --libs millrace) ;;
    patchable) cflags=$(pkg-config --variable=gcc_specs millrace-patchable) libs=$(pkg-config --libs millrace-patchable) ;;
    *)
        echo "postgres-build: no variant '$1' (plain, hooks, patchable)" >&2
        exit 2
        ;;
    esac
}

build() {
    local variant=$1 cflags libs prefix=$out/$1 objects=$out/objects/$1 log=$out/$1.log stamp folder
    flags_of "$variant"
    stamp="$(basename "$tree"/../package/*.dsc) ${CC:-gcc} $cflags $libs"
    [ "$(cat "$prefix/built" 2>/dev/null)" != "$stamp" ] || return 0
    if [ "$(cat "$objects/configured" 2>/dev/null)" != "$stamp" ]; then # else a build was interrupted: it goes on
        rm -rf "$prefix" "$objects"
        mkdir -p "$objects"
        cd "$objects"
        # The libraries as LDFLAGS: these go to shared libraries, too, which have patchable sites of their own. What
        # configure tries stays untraced, whatever the environment says.
        env -u MILLRACE_ENDPOINT "$tree/configure" --prefix="$prefix" --without-readline --without-zlib \
            CC="${CC:-gcc}" CFLAGS="-O2 -w $cflags" LDFLAGS="$libs" >"$log" 2>&1 || fail "configure failed"
        echo "$stamp" >"$objects/configured"
    fi
    cd "$objects"
    make -s -j "$jobs" -C src/backend generated-headers >>"$log" 2>&1 || fail "the headers could not be made"
    # enable_coverage=yes: only leaves out a check that libpq names nothing with "exit" in it, as the hooks are.
    for folder in "${folders[@]}"; do
        make -s -j "$jobs" -C "$folder" enable_coverage=yes all >>"$log" 2>&1 || fail "$folder does not build"
        make -s -C "$folder" enable_coverage=yes install >>"$log" 2>&1 || fail "$folder could not be installed"
    done
    cd "$root"
    rm -rf "$objects"
    echo "$stamp" >"$prefix/built"
}

while [ $# -gt 0 ]; do
    case $1 in
    --help)
        usage
        exit 0
        ;;
    --out)
        mkdir -p "${2:?postgres-build: --out wants a folder}"
        out=$(cd "$2" && pwd)
        shift 2
        ;;
    --jobs)
        jobs=${2:?postgres-build: --jobs wants a number}
        shift 2
        ;;
    *) break ;;
    esac
done
if [ $# -eq 0 ]; then
    usage >&2
    exit 2
fi
mkdir -p "$out"
exec 8>"$out/lock"
flock 8 # tests run side by side
unpack
for variant in "$@"; do
    build "$variant"
done
