#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The version before this one, built: prints its build folder. Exit 77 where its commit is not there (a shallow clone).
#
#     previous.sh FOLDER      where it is checked out and built, and kept for the next time
source "$(dirname "$0")/../../../scripts/common.sh"

[ $# -eq 1 ] || fail "usage: previous.sh FOLDER"
commit=$(grep -v '^#' tests/system/versions/previous)
folder=$(readlink -m "$1")
build=$folder/build/release

if ! git cat-file -e "$commit^{commit}" 2>/dev/null; then
    echo "previous.sh: commit $commit is not in this clone" >&2
    exit 77
fi
if [ "$(cat "$folder/built" 2>/dev/null)" != "$commit" ]; then
    rm -rf "$folder"
    mkdir -p "$folder"
    git archive "$commit" | tar -x -C "$folder"
    (
        cd "$folder"
        cmake --preset release
        cmake --build --preset release --target millrace lib/libmillrace.so lib/libmillrace.a
    ) >"$folder.log" 2>&1 || fail "commit $commit does not build: $folder.log"
    echo "$commit" >"$folder/built"
fi
echo "$build"
