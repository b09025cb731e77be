#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Traces every call of a real program, live, through two levels of workers.
#
#     ./demo.sh [--once] [--json] [--size N] [--programs N] [--build DIR]
#
#     speedtest1 --+               +-- worker, level 1 --+
#     speedtest1 --+-- HAProxy ----+                     +-- worker, level 2 -- master -- page
#                                  +-- worker, level 1 --+
#
# speedtest1 is SQLite's own benchmark, built from Debian's source package with every function instrumented. Where that
# package cannot be had, the bookstore of docs/examples runs instead. All of it listens on loopback alone. The page stays
# up until Ctrl-C.
#
#     --once         end by itself when everything is told
#     --json         exactly one JSON object on stdout, all words on stderr; implies --once
#     --size N       speedtest1's --size (default 30, about 280 million events per program)
#     --programs N   how many run side by side (default 2)
#     --build DIR    use this build of millrace, instead of building the preset release
#     --help         this text
#
# Status 0 when nothing was lost and the ledger balances, else 1; 2 for a mistake in the options.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly ready_tries=600 # of 50 ms, for a server to listen
readonly settle_s=60     # for the last events to reach the master
readonly outer='testset_*,speedtest1_*' # the benchmark's own loops: call trees start at what they call, SQLite's interface
readonly top_rows=15     # functions and entry points that are shown

once=no json=no size=30 programs=2 build=
work=         # private folder: ready files, logs, store, HAProxy's configuration
declare -A pid_of address_of
exec 3>&1     # the JSON object goes here

usage() {
    sed -n '4,/^set/ { /^set/d; s/^# \{0,1\}//; p }' "${BASH_SOURCE[0]}"
}

say() {
    printf '%s\n' "$*"
}

fail() {
    printf 'demo.sh: %s\n' "$*" >&2
    exit 1
}

misused() {
    printf 'demo.sh: %s (see ./demo.sh --help)\n' "$*" >&2
    exit 2
}

number_of() {
    [[ ${2:-} =~ ^[1-9][0-9]{0,6}$ ]] || misused "$1 wants a number from 1"
    printf '%s' "$2"
}

parse_options() {
    while [ $# -gt 0 ]; do
        case $1 in
        --once) once=yes ;;
        --json) json=yes once=yes ;;
        --size) size=$(number_of "$@") && shift ;;
        --programs) programs=$(number_of "$@") && shift ;;
        --build) build=$(cd "${2:?demo.sh: --build wants a folder}" && pwd) && shift ;;
        --help | -h)
            usage
            exit 0
            ;;
        *) misused "unknown option '$1'" ;;
        esac
        shift
    done
}

# --- processes: only what was started here is ended, by its id ------------------------------------------------------------

# start NAME COMMAND...: in the background, its words in $work/NAME.log.
start() {
    local name=$1
    shift
    "$@" >"$work/$name.log" 2>&1 3>&- &
    pid_of[$name]=$!
}

# As the shell knows it: a number alone could belong to another process by now.
runs() {
    jobs -rp | grep -qx "$1"
}

is_running() {
    runs "${pid_of[$1]}"
}

# Waits until CONDITION (a function and its arguments) holds, as long as process NAME lives.
wait_for() {
    local name=$1 tries=$ready_tries
    shift
    until "$@"; do
        is_running "$name" || fail "$name ended at its start: $(tail -n 3 "$work/$name.log")"
        ((tries-- > 0)) || fail "$name does not get ready"
        sleep 0.05
    done
}

# start_server NAME COMMAND...: a millrace server on free ports; its address is in address_of[NAME] when it listens.
start_server() {
    local name=$1
    start "$@" --ready-file "$work/$name.ready"
    wait_for "$name" test -s "$work/$name.ready"
    address_of[$name]=$(jq -r .listen "$work/$name.ready")
}

is_ready_server() {
    local name
    for name in "${!address_of[@]}"; do
        [ "${pid_of[$name]}" != "$1" ] || return 0
    done
    return 1
}

# The end of process PID. A server that listens hands on what it has, then ends. Whatever else runs may not even be the
# program yet that it is to become, in which a TERM can get lost: it is told until it has ended.
end_process() {
    local tries
    if is_ready_server "$1"; then
        kill -TERM "$1" 2>/dev/null || true
    else
        for ((tries = 30; tries > 0; tries--)); do
            kill -TERM "$1" 2>/dev/null || true
            sleep 0.1
            runs "$1" || return 0
        done
        kill -KILL "$1" 2>/dev/null || true
    fi
    wait "$1" 2>/dev/null || true
}

# The last started first: programs, then HAProxy, then the workers from level 1 on, then the master. As the shell has
# them: the signal may have come before a new one was noted here.
clean_up() {
    local status=$? index pids
    trap - EXIT
    trap '' INT TERM USR1
    mapfile -t pids < <(jobs -rp)
    for ((index = ${#pids[@]} - 1; index >= 0; index--)); do
        end_process "${pids[index]}"
    done
    [ -z "$work" ] || rm -rf "$work"
    exit "$status"
}

# --- what is needed -------------------------------------------------------------------------------------------------------

prepare_millrace() {
    if [ -z "$build" ]; then
        "$root/scripts/install-deps.sh" run || fail "packages are missing"
        say "building millrace (preset release)"
        # shellcheck disable=SC1091
        (source "$root/scripts/common.sh" && build_preset release) || fail "millrace does not build"
        build=$root/build/release
    fi
    export PKG_CONFIG_PATH=$build/lib/pkgconfig
    PATH=$PATH:/usr/sbin:/sbin # where Debian has haproxy
    command -v haproxy >/dev/null || fail "haproxy is missing (scripts/install-deps.sh installs it)"
}

# Sets `workload` to sqlite or bookstore.
prepare_programs() {
    local status=0
    say "building speedtest1 from Debian's sqlite3 source package, plain and instrumented"
    "$root/scripts/sqlite-build.sh" --out "$build/sqlite" plain instrumented || status=$?
    if [ "$status" -eq 0 ]; then
        workload=sqlite
        return
    fi
    [ "$status" -eq 3 ] || fail "speedtest1 does not build"
    say "so the bookstore of docs/examples runs instead"
    workload=bookstore
    mkdir -p "$build/bookstore/plain"
    make -s -C "$root/docs/examples/bookstore" OUT="$build/bookstore"
    make -s -C "$root/docs/examples/bookstore" OUT="$build/bookstore/plain" TRACED=
}

# --- the chain --------------------------------------------------------------------------------------------------------------

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

write_haproxy_configuration() {
    cat >"$work/haproxy.cfg" <<END
global
    stats socket $work/haproxy.sock mode 600
defaults
    mode tcp
    balance leastconn
    timeout connect 5s
    timeout client 1h
    timeout server 1h
frontend probes
    bind 127.0.0.1:$1
    default_backend workers
backend workers
    server worker-1a ${address_of[worker-1a]}
    server worker-1b ${address_of[worker-1b]}
END
}

haproxy_listens() {
    (exec 4<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# The port was free a moment ago; should another process have taken it since, another one is tried.
start_haproxy() {
    local port attempt
    for attempt in 1 2 3 4 5; do
        port=$(free_port)
        write_haproxy_configuration "$port"
        start haproxy haproxy -db -f "$work/haproxy.cfg"
        until haproxy_listens "$port" || ! is_running haproxy; do
            sleep 0.05
        done
        if is_running haproxy; then
            address_of[haproxy]=127.0.0.1:$port
            return
        fi
        say "haproxy did not start (attempt $attempt): $(tail -n 1 "$work/haproxy.log")"
    done
    fail "haproxy does not start"
}

start_chain() {
    start_server master "$build/bin/millrace" master --listen tcp://127.0.0.1:0 --http 127.0.0.1:0 \
        --store "$work/store"
    page=http://$(jq -r .http "$work/master.ready")
    start_server worker-2 "$build/bin/millrace" worker --level 2 --listen tcp://127.0.0.1:0 \
        --forward "tcp://${address_of[master]}"
    for name in worker-1a worker-1b; do
        start_server "$name" "$build/bin/millrace" worker --level 1 --listen tcp://127.0.0.1:0 \
            --forward "tcp://${address_of[worker-2]}" --stats-file "$work/$name.json" --outer "$outer"
    done
    start_haproxy
    say "chain: HAProxy ${address_of[haproxy]} -> worker-1a ${address_of[worker-1a]}, worker-1b ${address_of[worker-1b]}" \
        "-> worker-2 ${address_of[worker-2]} -> master ${address_of[master]}"
    say "page: $page/"
}

# --- the run ------------------------------------------------------------------------------------------------------------------

now_ms() {
    date +%s%3N
}

seconds_since() {
    awk -v ms=$(($(now_ms) - $1)) 'BEGIN { printf "%.3f", ms / 1000 }'
}

# run_programs VARIANT: starts all of them in the background.
run_programs() {
    local index
    for ((index = 1; index <= programs; index++)); do
        if [ "$workload" = sqlite ]; then
            start "program-$1-$index" "$build/sqlite/speedtest1.$1" --memdb --size "$size"
        elif [ "$1" = plain ]; then
            start "program-$1-$index" "$root/docs/examples/bookstore/run.sh" "$((size * 100))" "$build/bookstore/plain"
        else
            start "program-$1-$index" "$root/docs/examples/bookstore/run.sh" "$((size * 100))" "$build/bookstore"
        fi
    done
}

# Whether one of the programs of the variant is still running.
any_runs() {
    local index
    for ((index = 1; index <= programs; index++)); do
        ! is_running "program-$1-$index" || return 0
    done
    return 1
}

# Every program of the variant has ended well, or the demo has failed.
check_programs() {
    local index name
    for ((index = 1; index <= programs; index++)); do
        name=program-$1-$index
        wait "${pid_of[$name]}" || fail "$name ended with status $?: $(tail -n 3 "$work/$name.log")"
    done
}

run_plain() {
    local began
    began=$(now_ms)
    run_programs plain
    check_programs plain
    plain_seconds=$(seconds_since "$began")
}

# ask PATH: what the master answers.
ask() {
    curl -sf --max-time 10 "$page$1"
}

# progress_line SECONDS BEFORE, /metrics on stdin: the number of events reduced, and a line about them.
progress_line() {
    awk -v seconds="$1" -v before="$2" '
        /^millrace_events_reduced_total/ { reduced = $2 }
        /^millrace_events_lost_total/ { lost += $2 }
        /^millrace_paths / { paths = $2 }
        /^millrace_shapes / { shapes = $2 }
        END {
            printf "%.0f %3d s: %7.1f M events, %6.1f M/s, %d lost, %d paths, %d shapes\n", reduced, seconds, reduced / 1e6,
                (reduced - before) / 1e6, lost, paths, shapes
        }'
}

# One line for each second: events at the master, what the last second brought, what was lost, paths and shapes.
show_progress() {
    local before=0 began=$SECONDS line
    while any_runs instrumented; do
        sleep 1 # the pace of the lines; nothing waits for it
        line=$(ask /metrics | progress_line $((SECONDS - began)) "$before") || continue
        before=${line%% *}
        say "${line#* }"
    done
}

is_settled() {
    ask '/api/v1/ledger?limit=1' | jq -e '.ledger | .balanced and .held == 0 and .streams > 0' >/dev/null
}

run_traced() {
    local began tries=$((settle_s * 10))
    began=$(now_ms)
    MILLRACE_ENDPOINT=tcp://${address_of[haproxy]} MILLRACE_POLICY=block MILLRACE_BLOCK_TIMEOUT=60s \
        MILLRACE_EXIT_TIMEOUT=60s run_programs instrumented
    show_progress
    check_programs instrumented
    seconds=$(seconds_since "$began")
    until is_settled; do
        ((tries-- > 0)) || break # told in the report: the ledger does not balance
        sleep 0.1
    done
}

# The report reads the store, which has an event up to one commit after the page shows it.
report_is_settled() {
    "$build/bin/millrace" report "$work/store" --json --functions "$top_rows" --entries "$top_rows" >"$work/report.json"
    jq -e '.ledger | .balanced and .held == 0 and .streams > 0' "$work/report.json" >/dev/null
}

make_report() {
    local tries=$settle_s
    until report_is_settled; do
        ((tries-- > 0)) || break
        sleep 0.1
    done
    "$build/bin/millrace" report "$work/store" --functions "$top_rows" --entries "$top_rows" || true
}

print_summary() {
    jq -r --arg seconds "$seconds" --arg plain "$plain_seconds" '
        def percent($part; $all): if $all > 0 then ($part / $all * 1000 | round / 10 | tostring) + " %" else "-" end;
        (.coverage_time_ns | add) as $all |
        "",
        "coverage (share of time): whole shapes \(percent(.coverage_time_ns.whole; $all)), folded \(percent(.coverage_time_ns.folded; $all)), paths only \(percent(.coverage_time_ns.paths; $all)), incomplete \(percent(.coverage_time_ns.incomplete; $all))",
        "ledger: \(.ledger.last) events written = \(.ledger.reduced) reduced + \(.ledger.held) held + \(.ledger.lost) lost, \(.ledger.streams_balanced) of \(.ledger.streams) streams balanced",
        "time: \($seconds) s traced, \($plain) s plain, \(($seconds | tonumber) / ($plain | tonumber) * 10 | round / 10) times; \(.ledger.last / ($seconds | tonumber) / 1e6 * 10 | round / 10) M events/s"' \
        "$work/report.json"
    say "page: $page/"
}

# Resident memory of a server in KiB.
rss_of() {
    awk '/^VmRSS:/ { print $2 }' "/proc/${pid_of[$1]}/status"
}

print_json() {
    jq -c --arg workload "$workload" --argjson size "$size" --argjson programs "$programs" \
        --argjson seconds "$seconds" --argjson plain "$plain_seconds" --arg page "$page/" \
        --argjson rss "[$(rss_of worker-1a), $(rss_of worker-1b)]" '{
            events_written: .ledger.last,
            events_reduced: .ledger.reduced,
            events_dropped: .ledger.lost,
            traces: .traces,
            calls: .calls,
            shapes: .shapes,
            paths: .paths,
            functions: .function_total,
            ledger_balanced: .ledger.balanced,
            seconds: $seconds,
            plain_seconds: $plain,
            slowdown: ($seconds / $plain),
            events_per_second: (.ledger.last / $seconds | floor),
            coverage_time_ns: .coverage_time_ns,
            worker_rss_kib: $rss,
            workload: $workload,
            size: $size,
            programs: $programs}' "$work/report.json" >&3
}

is_good() {
    jq -e '.ledger.balanced and .ledger.held == 0 and .ledger.lost == 0 and .ledger.last > 0' "$work/report.json" >/dev/null
}

# Everything, in a background process of its own. USR1 is Ctrl-C, as supervise() hands it on.
run_demo() {
    trap clean_up EXIT
    trap 'exit 130' USR1
    trap 'exit 143' TERM
    work=$(mktemp -d "${TMPDIR:-/tmp}/millrace-demo-XXXXXX")
    prepare_millrace
    prepare_programs
    start_chain
    say "plain: $programs x $workload"
    run_plain
    say "traced: $programs x $workload, policy block"
    run_traced
    make_report
    print_summary
    [ "$json" = no ] || print_json
    if [ "$once" = no ]; then
        trap 'is_good; exit' USR1
        say "the page stays up until Ctrl-C"
        wait "${pid_of[master]}" || fail "the master ended: $(tail -n 3 "$work/master.log")"
    fi
    is_good || fail "events were lost, or the ledger does not balance"
}

# end_by STATUS SIGNAL: this process was asked to end.
end_by() {
    ended_by=$1 hand_on=$2
    [ -z "$demo" ] || kill "-$hand_on" "$demo" 2>/dev/null || true
}

# A shell that waits for a foreground command can lose a SIGINT that comes just as the command ends. So what gets the
# signals does nothing but wait, and what works gets signals that no shell treats specially.
supervise() {
    local status=0
    demo='' ended_by='' hand_on=''
    trap 'end_by 130 USR1' INT
    trap 'end_by 143 TERM' TERM
    run_demo &
    demo=$!
    [ -z "$ended_by" ] || kill "-$hand_on" "$demo" 2>/dev/null || true # came before it had a number
    wait "$demo" || status=$?
    while jobs -rp | grep -qx "$demo"; do # that was our own signal
        status=0
        wait "$demo" || status=$?
    done
    [ -z "$ended_by" ] || [ "$status" -le 128 ] || status=$ended_by
    exit "$status"
}

parse_options "$@"
[ "$json" = no ] || exec 1>&2
supervise
