# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts: the project's folder, messages, and the files that are ours.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
jobs=${MR_JOBS:-2}
# System tests wait for most of their time (for a third or two they compute): twice as many as there are processors.
test_jobs=${MR_TEST_JOBS:-$((2 * jobs))}

say() {
    printf '== %s\n' "$*"
}

fail() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# The C and C++ files of the project, one per line.
source_files() {
    local folder
    for folder in base net probe pipeline worker master scale cli bench docs tests; do
        [ -d "$folder" ] || continue
        find "$folder" -name '*.[ch]' -o -name '*.cc' -o -name '*.cpp'
    done | sort
}

# Configures and builds a preset, all of it or the targets that are named; the compiler's words are shown only if it fails.
build_preset() {
    local preset=$1 log targets=()
    shift
    [ $# = 0 ] || targets=(--target "$@")
    mkdir -p build
    log=build/$preset.log
    if ! { cmake --preset "$preset" && cmake --build --preset "$preset" -j "$jobs" "${targets[@]}"; } >"$log" 2>&1; then
        grep -E -A8 '^FAILED|error:|CMake Error|undefined reference' "$log" | head -80 >&2 || tail -40 "$log" >&2
        fail "preset $preset does not build (all of it: $log)"
    fi
}

# Runs the tests of a preset's build; further arguments go to ctest. With MR_SECOND_TRY set, of at most five tests that fail
# each is run once more, alone: what passes then is told as unsteady, what fails twice fails.
test_preset() {
    local preset=$1 failed=build/$1/Testing/Temporary/LastTestsFailed.log names
    shift
    local run=(ctest --test-dir "build/$preset" --output-on-failure)
    rm -f "$failed"
    "${run[@]}" --no-tests=error -j "$test_jobs" "$@" && return
    [ -n "${MR_SECOND_TRY:-}" ] && [ -s "$failed" ] && [ "$(wc -l <"$failed")" -le 5 ] || return 1
    names=$(sed 's/^[0-9]*://' "$failed" | tr '\n' ' ')
    say "once more, alone: $names"
    "${run[@]}" --rerun-failed -j 1 || return 1
    say "unsteady, passed when run again: $names"
}
