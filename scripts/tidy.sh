#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy over the project's own files as the preset clang-dev (or $1) compiles them. Needs a configured build.
# Nearly all of its time goes to the analyzer, which follows a function's paths up to a number of states: clang's own
# limit of 225,000 takes three times as long as ours. MR_TIDY_STATES=225000 looks as deep as clang does.
source "$(dirname "$0")/common.sh"
preset=${1:-clang-dev}
states=${MR_TIDY_STATES:-50000}
[ -f "build/$preset/compile_commands.json" ] || fail "configure first: cmake --preset $preset"
command -v run-clang-tidy-14 >/dev/null || fail "run-clang-tidy-14 is missing (scripts/install-deps.sh test)"

log=build/tidy.log
# Products in full; of the tests only that they compile, which their builds tell.
pattern="^$root/(base|net|probe|pipeline|worker|master|cli|bench)/.*\\.c\$"
limit=(-extra-arg=-Xclang -extra-arg=-analyzer-config -extra-arg=-Xclang "-extra-arg=max-nodes=$states")
if ! run-clang-tidy-14 -quiet -j "$jobs" -p "build/$preset" "${limit[@]}" "$pattern" >"$log" 2>&1; then
    grep -E 'warning:|error:' "$log" | sort -u | head -60 >&2
    fail "clang-tidy finds faults (all of it: $log)"
fi
say "clang-tidy: $(grep -cE '^clang-tidy|clang-tidy-14 ' "$log") files clean"
