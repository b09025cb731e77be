#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checks custody.pml with spin: the protocol as it is has no fault with up to 2 breaks, and each rule that is taken away is found
# out. MR_MODEL_FAULTS=3 checks 114 million states (3 minutes, 6 GiB).
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# run FAULTS MACRO...: the number of errors that the checker found
run() {
    local faults=$1 macros=()
    shift
    [ $# = 0 ] || macros=("${@/#/-D}")
    spin -a -DN=2 "-DFAULTS=$faults" "${macros[@]}" "$folder/custody.pml" >/dev/null
    gcc -O2 -w -DSAFETY -DHC4 -DMEMLIM=8000 -o pan pan.c
    ./pan -m100000 -w26 >pan.out
    if grep -qE 'max search depth too small|out of memory|aborted' pan.out; then
        echo "the search did not end:" >&2
        tail -20 pan.out >&2
        exit 1
    fi
    sed -n 's/.*errors: \([0-9]*\)$/\1/p' pan.out
}

faults=${MR_MODEL_FAULTS:-2}
errors=$(run "$faults")
states=$(sed -n 's/ *\([0-9.e+]*\) states, stored/\1/p' pan.out)
echo "custody, $faults breaks: $states states, $errors errors"
[ "$errors" = 0 ] || exit 1
# The last two need three breaks to go wrong.
for rule in 2:NO_REGISTER 2:NO_SETTLE 2:NO_ATTEMPT 3:NO_ASKED 3:NO_CLOSE; do
    errors=$(run "${rule%%:*}" "${rule#*:}")
    echo "custody, ${rule%%:*} breaks, ${rule#*:}: $errors errors"
    [ "$errors" != 0 ] || { echo "a protocol without this rule was not found out" >&2; exit 1; }
done
