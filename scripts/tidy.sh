#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy over the project's own files as the preset clang-dev (or $1) compiles them. Needs a configured build.
source "$(dirname "$0")/common.sh"
preset=${1:-clang-dev}
[ -f "build/$preset/compile_commands.json" ] || fail "configure first: cmake --preset $preset"
command -v run-clang-tidy-14 >/dev/null || fail "run-clang-tidy-14 is missing (scripts/install-deps.sh test)"

log=build/tidy.log
# Products in full; of the tests only that they compile, which their builds tell.
pattern="^$root/(base|net|probe|pipeline|worker|master|cli|bench)/.*\\.c\$"
if ! run-clang-tidy-14 -quiet -j "$jobs" -p "build/$preset" "$pattern" >"$log" 2>&1; then
    grep -E 'warning:|error:' "$log" | sort -u | head -60 >&2
    fail "clang-tidy finds faults (all of it: $log)"
fi
say "clang-tidy: $(grep -cE '^clang-tidy|clang-tidy-14 ' "$log") files clean"
