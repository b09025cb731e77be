#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches a Debian source package:
#
#     scripts/debian-source.sh PACKAGE       prints the folder that holds its .dsc and tarballs
#
# apt does the fetching and the checking (signed Release file, hashes of the index, hashes of the package), with lists,
# caches and sources of its own under build/cache/apt: the machine's apt configuration is read, never changed, and
# nothing here needs root. The sources are the machine's own Debian sources, asked for deb-src instead of deb. Once
# fetched, the package is taken from build/cache, without the network.
#
# Status 3 and one line on stderr when the package cannot be had.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
name=${1:?debian-source: which package?}
apt=$root/build/cache/apt
package=$root/build/cache/$name/package # what apt fetched

give_up() {
    echo "debian-source: Debian's $name source package cannot be had: $1" >&2
    exit 3
}

# One-line sources (`deb [options] uri suite component...`) of the file $1 that are Debian's main, as deb-src.
list_sources() {
    sed -n -E "s/^[[:space:]]*deb(-src)?[[:space:]]+((\[[^]]*\][[:space:]]+)?[^[:space:]]+[[:space:]]+(${suites})[^[:space:]]*[[:space:]]+(.*[[:space:]])?main([[:space:]].*)?)$/deb-src \2/p" "$1"
}

# Stanzas of the deb822 file $1 that are enabled and have a suite of this release with the component main, as deb-src.
stanza_sources() {
    awk -v suites="^($suites)" '
        function flush_stanza() {
            if (text != "" && suite && main && enabled)
                printf "%s\n", text
            text = ""; suite = main = 0; enabled = 1
        }
        BEGIN { enabled = 1 }
        /^[ \t]*$/ { flush_stanza(); next }
        /^#/ { next }
        { line = $0 }
        /^[^ \t]/ { field = tolower($1); sub(/^[^ \t]*[ \t]*/, "") }
        field == "types:" { if (/deb/) text = text "Types: deb-src\n"; next }
        field == "enabled:" && tolower($1) == "no" { enabled = 0 }
        field == "suites:" { for (i = 1; i <= NF; i++) suite = suite || $i ~ suites }
        field == "components:" { for (i = 1; i <= NF; i++) main = main || $i == "main" }
        { text = text line "\n" }
        END { flush_stanza() }' "$1"
}

# The machine's sources, as apt finds them, written into the folder $1.
derive_sources() {
    local parts list file
    eval "$(apt-config shell parts Dir::Etc::sourceparts/d list Dir::Etc::sourcelist/f)"
    mkdir -p "$1"
    rm -f "$1"/*
    for file in "$list" "$parts"*.list; do
        [ ! -r "$file" ] || list_sources "$file" >>"$1/derived.list"
    done
    for file in "$parts"*.sources; do
        [ ! -r "$file" ] || stanza_sources "$file" >>"$1/derived.sources"
    done
    cat "$1"/* 2>/dev/null | grep -q deb-src ||
        give_up "no Debian source for $codename with component main in this machine's apt configuration"
}

# An apt configuration for -c: read after the machine's own (proxies and keys are taken over), it moves everything that
# apt writes into build/cache/apt and drops the hooks.
write_configuration() {
    cat >"$apt/apt.conf" <<END
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$apt/sources";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt/cache";
APT::Sandbox::User "";
Acquire::Retries "2";
END
}

# The newest version that a source really has: one that is listed may be gone from a mirror already.
fetch_newest() {
    local version
    for version in $(apt-cache -c "$apt/apt.conf" showsrc --only-source "$name" | sed -n 's/^Version: //p' | sort -rVu); do
        (cd "$1" && apt-get -q -c "$apt/apt.conf" source --download-only "$name=$version" >>"$apt/log" 2>&1) && return
        rm -f "$1"/*
    done
    return 1
}

fetch_package() {
    local codename suites
    command -v apt-get >/dev/null || give_up "this machine has no apt"
    command -v dpkg-source >/dev/null || give_up "dpkg-source is missing (install dpkg-dev)"
    codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    [ -n "$codename" ] || give_up "/etc/os-release names no release"
    suites="$codename|stable|oldstable|testing|unstable|sid"
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$package.new"
    derive_sources "$apt/sources"
    write_configuration
    # A source without deb-src fails here and does no harm, as long as one of the others has the package.
    apt-get -q -c "$apt/apt.conf" update >"$apt/log" 2>&1 || true
    fetch_newest "$package.new" || give_up "$(grep '^[EW]:' "$apt/log" | tail -n 1) (log: build/cache/apt/log)"
    rm -rf "$package"
    mv "$package.new" "$package"
}

mkdir -p "$apt" "$(dirname "$package")"
exec 9>"$apt/lock"
flock 9 # tests run side by side
compgen -G "$package/${name}_*.dsc" >/dev/null || fetch_package
echo "$package"
