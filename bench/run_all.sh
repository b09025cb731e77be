#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Renews every number of docs/BENCHMARKS.md, one part after the other, each with its progress, its time and about how long the
# rest takes. What fails is told at the end, and the rest is done. Hours; with --quick minutes, and numbers that only show that
# all of it runs: then what a self-check or a comparison of two runs says is told, and nothing has failed by it. Nor has it,
# in a whole run, where they say no more than that the machine was too noisy to tell.
#   bench/run_all.sh [--quick] [--only NAME,...] [--list] [OUT]        OUT: millrace.bench/all
# MILLRACE names the command; else build/release/bin/millrace.
# Ends with 0 if all was done, 1 if something failed or there is no command, 2 for wrong usage, 130 after Ctrl-C.
# Optional before: scripts/install-deps.sh bench (other tracers, a JDK), scripts/sqlite-fetch.sh
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
millrace=${MILLRACE:-$root/build/release/bin/millrace}
quick=()
out=millrace.bench/all

overhead() {
    local name=$1
    shift
    "$millrace" bench overhead "${quick[@]}" --out "$out/$name" "$@"
}

# Names in order; of each seconds that it takes about, whole and quick, what it is, and its command.
names=()
declare -A seconds quick_seconds what commands
part() {
    names+=("$1")
    seconds[$1]=$2 quick_seconds[$1]=$3 what[$1]=$4 commands[$1]=$5
}
# shellcheck disable=SC2016 # they are expanded when they run
{
    part self-check 60 10 'are 100 ns measured as 100 ns, in each phase?' 'overhead self-check --self-check'
    part probe-self-check 10 5 'the same of single calls' \
        '"$millrace" bench probe --self-check "${quick[@]}" --out "$out/probe-self-check"'
    part probe 1500 60 'what a call costs, by each door, clock and sink' \
        '"$millrace" bench probe "${quick[@]}" --out "$out/probe"'
    part pipeline 600 10 'what a worker costs an event' '"$millrace" bench pipeline "${quick[@]}" --out "$out/pipeline"'
    part chain 120 30 'what levels of workers cost' '"$millrace" bench chain "${quick[@]}" --out "$out/chain"'
    part overhead 120 12 'six phases, three doors' 'overhead overhead --door hooks,patchable,manual'
    part overhead-again 120 12 'the same again' 'overhead overhead-again --door hooks,patchable,manual'
    part agreement 1 1 'do these two agree?' \
        '"$millrace" bench overhead --compare "$out/overhead,$out/overhead-again"'
    part overhead-whole 40 3 'no root call is timed by itself' 'overhead overhead-whole --timing whole'
    part overhead-hybrid 40 5 'clock hybrid' 'overhead overhead-hybrid --clock hybrid'
    part overhead-peers 200 60 'other tracers, Kieker, OpenTelemetry' 'overhead overhead-peers --peer all --calls 500000'
    part overhead-sweeps 300 60 'depth, threads, method time, ring, a slow link' 'overhead overhead-sweeps --sweep all'
    part paper 240 20 'the table of the Kieker paper beside ours' \
        '"$root/bench/papers/kieker-high-throughput/run.sh" "$out/paper" "${quick[@]}"'
}
# Parts that end with 1 where they are in doubt about their own numbers: what they then say, and what is more than a doubt where
# the run was long enough.
declare -A doubtful=([self-check]=': (FAIL|too noisy)' [probe-self-check]=': (FAIL|too noisy)' [agreement]='cases agree')
declare -A wrong=([self-check]=': FAIL' [probe-self-check]=': FAIL' [agreement]='[1-9][0-9]* differ')

usage() {
    printf 'run_all.sh: %s\nusage: bench/run_all.sh [--quick] [--only NAME,...] [--list] [OUT]\n' "$1" >&2
    exit 2
}

list() {
    printf '%-18s %8s %8s  %s\n' part 'about s' '--quick' ''
    for name in "${names[@]}"; do
        printf '%-18s %8d %8d  %s\n' "$name" "${seconds[$name]}" "${quick_seconds[$name]}" "${what[$name]}"
    done
}

# Sets `chosen` to the parts named in $1, in the order that they are run in.
choose() {
    local wanted name
    declare -A is_wanted=()
    IFS=, read -ra wanted <<<"$1"
    [ ${#wanted[@]} != 0 ] || usage '--only: name at least one part'
    for name in "${wanted[@]}"; do
        [[ $name =~ ^[a-z-]+$ ]] && [ -n "${commands[$name]:-}" ] ||
            usage "--only: there is no part '$name' (there are: ${names[*]})"
        is_wanted[$name]=1
    done
    chosen=()
    for name in "${names[@]}"; do
        [ -z "${is_wanted[$name]:-}" ] || chosen+=("$name")
    done
}

chosen=("${names[@]}")
has_out=no
while [ $# != 0 ]; do
    case $1 in
    --quick) quick=(--quick) ;;
    --only)
        [ $# -gt 1 ] || usage '--only wants NAME,...'
        choose "$2"
        shift
        ;;
    --only=*) choose "${1#--only=}" ;;
    --list)
        list
        exit 0
        ;;
    -*) usage "unknown option '$1'" ;;
    *)
        [ $has_out = no ] || usage "one folder only, not '$1' too"
        [ -n "$1" ] || usage 'OUT is empty'
        out=$1 has_out=yes
        ;;
    esac
    shift
done
[ -x "$millrace" ] || { echo "no $millrace: cmake --preset release && cmake --build --preset release" >&2; exit 1; }
mkdir -p "$out" || exit 1

# Seconds that a part should take.
expected() {
    if [ ${#quick[@]} != 0 ]; then echo "${quick_seconds[$1]}"; else echo "${seconds[$1]}"; fi
}

# About how long the parts from number $1 on take: as expected, times what those before took of what was expected of them.
rest() {
    local sum=0 i
    for ((i = $1; i < ${#chosen[@]}; i++)); do
        sum=$((sum + $(expected "${chosen[i]}")))
    done
    [ "$expected_done" = 0 ] || sum=$((sum * (SECONDS - begun) / expected_done))
    if [ $sum -lt 120 ]; then echo "$sum s"; else echo "$(((sum + 59) / 60)) min"; fi
}

failed=()
doubts=()
begun=$SECONDS
expected_done=0

# Part $1, which ended with 1, only says that it cannot tell.
is_doubt() {
    local said=("$out/$1.log" "$out/$1.err")
    [ -n "${doubtful[$1]:-}" ] && grep -qE "${doubtful[$1]}" "${said[@]}" || return 1
    [ ${#quick[@]} != 0 ] || ! grep -qE "${wrong[$1]}" "${said[@]}"
}

# Part number $1: its output goes to OUT/NAME.log, what it says to OUT/NAME.err and here.
run() {
    local number=$1 name=${chosen[$1]} started=$SECONDS status
    local at="[$((number + 1))/${#chosen[@]}] $name"
    printf '%s: %s; about %s left\n' "$at" "${what[$name]}" "$(rest "$number")"
    eval "${commands[$name]}" 2>&1 >"$out/$name.log" | tee "$out/$name.err" >&2
    status=${PIPESTATUS[0]}
    expected_done=$((expected_done + $(expected "$name")))
    if [ "$status" = 0 ]; then
        printf '%s: done in %d s\n' "$at" $((SECONDS - started))
    elif [ "$status" = 130 ]; then
        stop
    elif [ "$status" = 1 ] && is_doubt "$name"; then
        printf '%s: in doubt after %d s\n' "$at" $((SECONDS - started))
        doubts+=("$name")
    else
        printf '%s: FAILED with %d after %d s; see %s\n' "$at" "$status" $((SECONDS - started)) "$out/$name.err"
        failed+=("$name")
    fi
}

stop() {
    echo "interrupted; what was measured is in $out" >&2
    exit 130
}

trap stop INT TERM
for number in "${!chosen[@]}"; do
    run "$number"
done
printf '%d parts in %d s: %d done, %d in doubt, %d failed\n' ${#chosen[@]} $((SECONDS - begun)) \
    $((${#chosen[@]} - ${#doubts[@]} - ${#failed[@]})) ${#doubts[@]} ${#failed[@]}
[ ${#doubts[@]} = 0 ] || printf 'in doubt (too noisy, or --quick): %s\n' "${doubts[*]}"
if [ ${#failed[@]} != 0 ]; then
    printf 'failed: %s\n' "${failed[*]}"
    exit 1
fi
printf 'all of it is in %s\n' "$out"
