#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The experiment of the high-throughput Kieker paper, with millrace in Kieker's place and Kieker of today beside it.
#   bench/papers/kieker-high-throughput/run.sh [OUT [OPTION of millrace bench overhead ...]]
# MILLRACE names the command; else build/release/bin/millrace. Then: compare.py OUT
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
millrace=${MILLRACE:-$here/../../../build/release/bin/millrace}
out=${1:-millrace.bench/kieker-high-throughput}
[ $# = 0 ] || shift
[ -x "$millrace" ] || { echo "no $millrace: cmake --preset release && cmake --build --preset release" >&2; exit 1; }
# As in the paper: one thread, method time 0, nothing dropped, each filter on a thread of its own, the first half warm-up.
"$millrace" bench overhead --phase all --door hooks --clock tsc --policy block --placement threads --threads 1 --method-time 0 \
    --depth 10 --sweep link --peer kieker --out "$out" "$@"
python3 "$here/compare.py" "$out"
