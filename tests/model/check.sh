#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checks custody.pml and spool.pml with spin: the protocols as they are have no fault with up to 2 breaks, and 4 faults, and each rule that
# is taken away is found out. MR_MODEL_FAULTS=3 checks 114 million states of the first (3 minutes, 6 GiB).
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# run MODEL N FAULTS MACRO...: the number of errors that the checker found. Most of the checkers of a rule are done in a moment, and gcc
# needs several times as long as they do; -O1 makes them as fast as -O2 in half of the time. The longest finds its error sooner from behind.
run() {
    local model=$1 frames=$2 faults=$3 macros=() optimise=-O1
    shift 3
    [ $# = 0 ] || macros=("${@/#/-D}")
    if [ $# != 0 ]; then
        [ "$frames$faults" = 23 ] && optimise="-O1 -DREVERSE" || optimise=-O0
    fi
    spin -a "-DN=$frames" "-DFAULTS=$faults" "${macros[@]}" "$folder/$model.pml" >/dev/null
    gcc $optimise -w -DSAFETY -DHC4 -DMEMLIM=8000 -o pan pan.c
    ./pan -m100000 -w26 >pan.out
    if grep -qE 'max search depth too small|out of memory|aborted' pan.out; then
        echo "the search did not end:" >&2
        tail -20 pan.out >&2
        exit 1
    fi
    sed -n 's/.*errors: \([0-9]*\)$/\1/p' pan.out
}

# holds MODEL N FAULTS
holds() {
    local errors
    errors=$(run "$@")
    echo "$1, $3 faults: $(sed -n 's/ *\([0-9.e+]*\) states, stored/\1/p' pan.out) states, $errors errors"
    [ "$errors" = 0 ]
}

# fails MODEL N FAULTS RULE
fails() {
    local errors
    errors=$(run "$@")
    echo "$1, $3 faults, $4: $errors errors"
    [ "$errors" != 0 ] || { echo "a protocol without this rule was not found out" >&2; exit 1; }
}

holds custody 2 "${MR_MODEL_FAULTS:-2}"
for rule in NO_REGISTER NO_SETTLE NO_ATTEMPT; do
    fails custody 2 2 "$rule"
done
# These need three breaks to go wrong; the first goes wrong with one frame, too, in a twentieth of the states.
fails custody 1 3 NO_ASKED
fails custody 2 3 NO_CLOSE
holds spool 4 4
for rule in NO_DEDUP NO_DEDUP_ABOVE NO_TRANSACTION NO_KEEP NO_OUTBOX; do
    fails spool 3 3 "$rule"
done
