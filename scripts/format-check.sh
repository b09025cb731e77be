#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fails if clang-format would change a file. --fix changes them instead.
source "$(dirname "$0")/common.sh"
# The version decides the layout, so it is named.
command -v clang-format-14 >/dev/null || fail "clang-format-14 is missing (scripts/install-deps.sh test)"

mode=(--dry-run -Werror)
[ "${1:-}" = --fix ] && mode=(-i)
source_files | xargs clang-format-14 "${mode[@]}" || fail "run scripts/format-check.sh --fix"
say "format: $(source_files | wc -l) files"
