#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzz target of the built preset fuzz for a number of executions, from its corpus.
#   scripts/fuzz.sh [EXECUTIONS]     default 1000000; MR_FUZZ_SECONDS (default 240) bounds each target
# A target that does not reach the number within its time has failed, as has one that finds a fault; its input is left in
# build/fuzz/artifacts and belongs, once the fault is repaired, into the corpus.
source "$(dirname "$0")/common.sh"
executions=${1:-1000000}
seconds=${MR_FUZZ_SECONDS:-240}
targets=build/fuzz/fuzz_targets.txt
[ -f "$targets" ] || fail "build first: cmake --preset fuzz && cmake --build --preset fuzz"
[ -s "$targets" ] || fail "there is no fuzz target"

run_target() {
    local target=$1 corpus=$2 log=build/fuzz/$1.log work=build/fuzz/corpus/$1 started=$SECONDS
    mkdir -p "$work" build/fuzz/artifacts
    if ! timeout "$seconds" "build/fuzz/bin/$target" -runs="$executions" -max_len=4096 -timeout=10 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="build/fuzz/artifacts/$target-" "$work" "$corpus" >"$log" 2>&1; then
        tail -40 "$log" >&2
        printf '%s: a fault, or fewer than %s executions in %s s (%s)\n' "$target" "$executions" "$seconds" "$log" >&2
        return 1
    fi
    local done_count
    done_count=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    if [ "${done_count:-0}" -lt "$executions" ]; then
        printf '%s: only %s of %s executions (%s)\n' "$target" "${done_count:-0}" "$executions" "$log" >&2
        return 1
    fi
    printf '%-32s %9s executions %4s s\n' "$target" "$done_count" $((SECONDS - started))
}
export -f run_target
export executions seconds

# Each target is one thread; as many at once as there are jobs. xargs fails if one does.
xargs -L 1 -P "$jobs" bash -c 'run_target "$@"' _ <"$targets" || fail "fuzzing failed"
