#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the three programs together: run.sh [ROUNDS [FOLDER OF THE PROGRAMS]]
# Where and how they are traced is a matter of the environment (MILLRACE_ENDPOINT, MILLRACE_POLICY, ...).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rounds=${1:-1}
programs=${2:-$here}
work=$(mktemp -d)
servers=()

finish() {
    [ ${#servers[@]} -eq 0 ] || kill "${servers[@]}" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

# The port that a server wrote once it listens; gives up after 10 s.
port_of() {
    local tries=1000
    until [ -s "$work/$1" ]; do
        ((tries--)) || { echo "run.sh: $1 does not start" >&2; return 1; }
        sleep 0.01
    done
    cat "$work/$1"
}

MILLRACE_APP=catalog "$programs/catalog" "$work/catalog" &
servers+=($!)
MILLRACE_APP=orders "$programs/orders" "$work/orders" &
servers+=($!)
catalog_port=$(port_of catalog)
orders_port=$(port_of orders)
MILLRACE_APP=storefront "$programs/storefront" "$catalog_port" "$orders_port" "$here/requests.txt" "$rounds"
wait "${servers[@]}" # told to end by the storefront
servers=()
