#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian 12 packages that millrace needs. Does nothing, and needs no network, if all are there.
#   scripts/install-deps.sh [run|test|bench]     run: to build and to run ./demo.sh; test (default): also what ./test.sh
#                                                and .ci/run need; bench: run, and the tracers that millrace bench
#                                                measures beside ours
source "$(dirname "$0")/common.sh"

run_packages=(build-essential cmake ninja-build pkg-config libck-dev liburcu-dev libzstd-dev libmsgpack-dev
    libpfm4-dev libmicrohttpd-dev libjansson-dev libdw-dev libelf-dev libsqlite3-dev libcmocka-dev libxxhash-dev
    haproxy node-typescript dpkg-dev tcl curl jq python3 scdoc)
test_packages=(iproute2 nftables dnsmasq-base spin meson autoconf automake lld-14 clang clang-14 clang-tidy-14 clang-format-14 libclang-rt-14-dev strace elfutils
    gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross libsimde-dev)
bench_packages=(uftrace lttng-tools liblttng-ust1 clang libclang-rt-14-dev openjdk-17-jdk-headless maven iproute2)

is_installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing_of() {
    local package
    for package in "$@"; do
        is_installed "$package" || printf '%s\n' "$package"
    done
}

# Waits for another package manager rather than failing on its lock.
as_root_apt() {
    local sudo=()
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || fail "to install ${missing[*]} be root, or install sudo"
        sudo=(sudo)
    fi
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 -q "$@"
}

case ${1:-test} in
run) wanted=("${run_packages[@]}") ;;
test) wanted=("${run_packages[@]}" "${test_packages[@]}") ;;
bench) wanted=("${run_packages[@]}" "${bench_packages[@]}") ;;
*) fail "unknown group '$1': run, test or bench" ;;
esac

command -v dpkg-query >/dev/null || fail "this is no Debian system; install by hand: ${wanted[*]}"
mapfile -t missing < <(missing_of "${wanted[@]}")
if [ ${#missing[@]} = 0 ]; then
    say "packages: all ${#wanted[@]} are installed"
    exit 0
fi
say "packages: installing ${missing[*]}"
as_root_apt update >/dev/null || fail "apt-get update failed; still missing: ${missing[*]}"
as_root_apt install -y --no-install-recommends "${missing[@]}" || fail "apt-get could not install: ${missing[*]}"
