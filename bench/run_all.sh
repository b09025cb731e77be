#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Renews every number of docs/BENCHMARKS.md, one command after the other, each with its progress and its time; what fails is
# told at the end, and the rest is done. Hours; with --quick minutes, and numbers that only show that all of it runs.
#   bench/run_all.sh [--quick] [OUT]        OUT: millrace.bench/all
# Optional before: scripts/install-deps.sh bench (other tracers, a JDK), scripts/sqlite-fetch.sh
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
quick=()
if [ "${1:-}" = --quick ]; then
    quick=(--quick)
    shift
fi
out=${1:-millrace.bench/all}
millrace=${MILLRACE:-$root/build/release/bin/millrace}
[ -x "$millrace" ] || { echo "no $millrace: cmake --preset release && cmake --build --preset release" >&2; exit 1; }
mkdir -p "$out" || exit 1

names=(self-check probe-self-check probe pipeline overhead overhead-again agreement overhead-whole overhead-hybrid overhead-peers
    overhead-sweeps paper)
total=${#names[@]}
number=0
failed=()

# step NAME COMMAND...: its output goes to OUT/NAME.log, its progress here.
step() {
    local name=$1 started=$SECONDS
    shift
    number=$((number + 1))
    printf '[%d/%d] %s: %s\n' "$number" "$total" "$name" "$*"
    if "$@" >"$out/$name.log" 2> >(tee "$out/$name.err" >&2); then
        printf '[%d/%d] %s: done in %d s\n' "$number" "$total" "$name" $((SECONDS - started))
    else
        printf '[%d/%d] %s: FAILED with %d after %d s; see %s\n' "$number" "$total" "$name" $? $((SECONDS - started)) "$out/$name.err"
        failed+=("$name")
    fi
}

overhead() {
    "$millrace" bench overhead "${quick[@]}" --out "$@"
}

trap 'echo "interrupted; what was measured is in $out" >&2; exit 130' INT TERM
step self-check "$millrace" bench overhead --self-check "${quick[@]}" --out "$out/self-check"
step probe-self-check "$millrace" bench probe --self-check "${quick[@]}" --out "$out/probe-self-check"
step probe "$millrace" bench probe "${quick[@]}" --out "$out/probe"
step pipeline "$millrace" bench pipeline "${quick[@]}" --out "$out/pipeline"
step overhead overhead "$out/overhead" --door hooks,patchable,manual
step overhead-again overhead "$out/overhead-again" --door hooks,patchable,manual
step agreement "$millrace" bench overhead --compare "$out/overhead,$out/overhead-again"
step overhead-whole overhead "$out/overhead-whole" --timing whole
step overhead-hybrid overhead "$out/overhead-hybrid" --clock hybrid
step overhead-peers overhead "$out/overhead-peers" --peer all --calls 500000
step overhead-sweeps overhead "$out/overhead-sweeps" --sweep all
step paper "$root/bench/papers/kieker-high-throughput/run.sh" "$out/paper" "${quick[@]}"
if [ ${#failed[@]} != 0 ]; then
    printf 'failed: %s\n' "${failed[*]}"
    exit 1
fi
printf 'all of it is in %s\n' "$out"
