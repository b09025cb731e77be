#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Renews every number of docs/BENCHMARKS.md, one command after the other, each with its progress and its time; what fails is
# told at the end, and the rest is done. Hours; with --quick minutes, and numbers that only show that all of it runs: then what
# a self-check or a comparison of two runs says is told, and nothing has failed by it.
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

names=(self-check probe-self-check probe pipeline chain overhead overhead-again agreement overhead-whole overhead-hybrid
    overhead-peers overhead-sweeps paper)
total=${#names[@]}
number=0
failed=()
doubts=()

# step NAME COMMAND...: its output goes to OUT/NAME.log, its progress here.
step() {
    local name=$1 started=$SECONDS status
    shift
    number=$((number + 1))
    printf '[%d/%d] %s: %s\n' "$number" "$total" "$name" "$*"
    "$@" 2>&1 >"$out/$name.log" | tee "$out/$name.err" >&2
    status=${PIPESTATUS[0]}
    if [ "$status" = 0 ]; then
        printf '[%d/%d] %s: done in %d s\n' "$number" "$total" "$name" $((SECONDS - started))
    else
        printf '[%d/%d] %s: FAILED with %d after %d s; see %s\n' "$number" "$total" "$name" "$status" $((SECONDS - started)) \
            "$out/$name.err"
        failed+=("$name")
    fi
    return "$status"
}

# The same of a command that ends with 1 where it is in doubt about its own numbers; $2: the words of all that it can say.
verdict() {
    local name=$1 words=$2
    shift 2
    step "$name" "$@" && return
    if [ ${#quick[@]} != 0 ] && grep -qE "$words" "$out/$name.log" "$out/$name.err"; then
        unset 'failed[-1]'
        doubts+=("$name")
    fi
}

overhead() {
    "$millrace" bench overhead "${quick[@]}" --out "$@"
}

trap 'echo "interrupted; what was measured is in $out" >&2; exit 130' INT TERM
verdict self-check ': (FAIL|too noisy)' "$millrace" bench overhead --self-check "${quick[@]}" --out "$out/self-check"
verdict probe-self-check ': (FAIL|too noisy)' "$millrace" bench probe --self-check "${quick[@]}" --out "$out/probe-self-check"
step probe "$millrace" bench probe "${quick[@]}" --out "$out/probe"
step pipeline "$millrace" bench pipeline "${quick[@]}" --out "$out/pipeline"
step chain "$millrace" bench chain "${quick[@]}" --out "$out/chain"
step overhead overhead "$out/overhead" --door hooks,patchable,manual
step overhead-again overhead "$out/overhead-again" --door hooks,patchable,manual
verdict agreement 'cases agree' "$millrace" bench overhead --compare "$out/overhead,$out/overhead-again"
step overhead-whole overhead "$out/overhead-whole" --timing whole
step overhead-hybrid overhead "$out/overhead-hybrid" --clock hybrid
step overhead-peers overhead "$out/overhead-peers" --peer all --calls 500000
step overhead-sweeps overhead "$out/overhead-sweeps" --sweep all
step paper "$root/bench/papers/kieker-high-throughput/run.sh" "$out/paper" "${quick[@]}"
if [ ${#doubts[@]} != 0 ]; then
    printf 'in doubt, as --quick may be: %s\n' "${doubts[*]}"
fi
if [ ${#failed[@]} != 0 ]; then
    printf 'failed: %s\n' "${failed[*]}"
    exit 1
fi
printf 'all of it is in %s\n' "$out"
