#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Cross-compiles everything for aarch64. The arm64 -dev packages are downloaded with a private apt configuration, made
# from this machine's own sources, and unpacked under build/; the machine's apt is not touched and nothing is run.
source "$(dirname "$0")/common.sh"

sysroot=$root/build/aarch64-sysroot
apt_folder=$root/build/aarch64-apt
packages=(libck-dev libck0 liburcu-dev liburcu8 libzstd-dev libzstd1 libmsgpack-dev libmsgpackc2 libpfm4-dev libpfm4
    libmicrohttpd-dev libmicrohttpd12 libjansson-dev libjansson4 libdw-dev libdw1 libelf-dev libelf1 libsqlite3-dev
    libsqlite3-0 libcmocka-dev libcmocka0 libxxhash-dev)

private_apt() {
    local command=$1
    shift
    "$command" -q -o APT::Architecture=arm64 -o APT::Architectures::=arm64 \
        -o Dir::State="$apt_folder/state" -o Dir::State::status="$apt_folder/status" \
        -o Dir::Cache="$apt_folder/cache" -o Dir::Etc::sourcelist="$apt_folder/sources.list" \
        -o Dir::Etc::sourceparts="$apt_folder/sources.d" -o APT::Sandbox::User= \
        -o Acquire::Languages=none -o Acquire::AllowInsecureRepositories=false "$@"
}

# Only sources that have the distribution's own packages; others seldom know arm64, and are not needed.
copy_sources() {
    local codename file
    codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
    [ -n "$codename" ] || fail "this machine's distribution has no code name in /etc/os-release"
    rm -rf "$apt_folder/sources.d"
    mkdir -p "$apt_folder"/{state/lists/partial,cache/archives/partial,sources.d}
    touch "$apt_folder/status"
    : >"$apt_folder/sources.list"
    if [ -f /etc/apt/sources.list ]; then
        grep -E "^deb .* $codename(-updates|-security)? .*main" /etc/apt/sources.list |
            sed 's/ arch=[^] ]*//; s/\[ *\]//' >>"$apt_folder/sources.list" || true
    fi
    for file in /etc/apt/sources.list.d/*.list; do
        [ -f "$file" ] || continue
        grep -E "^deb .* $codename(-updates|-security)? .*main" "$file" |
            sed 's/ arch=[^] ]*//; s/\[ *\]//' >>"$apt_folder/sources.list" || true
    done
    for file in /etc/apt/sources.list.d/*.sources; do
        [ -f "$file" ] || continue
        if grep -Eq "^Suites:.*\b$codename" "$file" && grep -Eq '^Components:.*\bmain\b' "$file"; then
            grep -v '^Architectures:' "$file" >"$apt_folder/sources.d/$(basename "$file")"
        fi
    done
}

make_sysroot() {
    local log=build/aarch64-apt.log wanted="${packages[*]}" package
    if [ "$(cat "$sysroot/.packages" 2>/dev/null)" = "$wanted" ]; then
        say "aarch64: packages are there"
        return
    fi
    rm -rf "$sysroot"
    mkdir -p "$sysroot"
    copy_sources
    private_apt apt-get update >"$log" 2>&1 ||
        { tail -5 "$log" >&2; fail "aarch64: the arm64 package lists cannot be had ($log)"; }
    mkdir -p "$apt_folder/debs"
    (cd "$apt_folder/debs" && rm -f ./*.deb && private_apt apt-get download "${packages[@]}") >>"$log" 2>&1 ||
        { tail -5 "$log" >&2; fail "aarch64: the arm64 packages cannot be had ($log)"; }
    for package in "$apt_folder"/debs/*.deb; do
        dpkg -x "$package" "$sysroot"
    done
    # What a package needs only to be linked statically is not there, and pkg-config must not ask for it.
    find "$sysroot" -name '*.pc' -exec sed -i '/^Requires.private:/d' {} +
    # Written last: a sysroot that was cut short is made anew.
    printf '%s' "$wanted" >"$sysroot/.packages"
}

for tool in aarch64-linux-gnu-gcc aarch64-linux-gnu-g++ apt-get dpkg; do
    command -v $tool >/dev/null || fail "$tool is missing (scripts/install-deps.sh test)"
done
mkdir -p build
make_sysroot
build_preset aarch64
say "aarch64: everything compiles"
