#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and runs all tests. Further arguments go to ctest, as in: ./test.sh -L unit
source "$(dirname "$0")/scripts/common.sh"

scripts/install-deps.sh test
say "build: preset dev"
build_preset dev
say "tests"
test_preset dev "$@"
