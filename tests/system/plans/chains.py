# SPDX-License-Identifier: Apache-2.0
"""Chains of workers that plans run through. Each: start(chain, forward) gives the endpoints of programs, and workers in the order in
which they are stopped."""
import os

import balancer

# What threads begin with is an outer frame by itself; but where a sanitizer's library starts them it is not seen to be.
OUTER = ["--outer", "listen_to_peers,work_traced"] if os.environ.get("MR_SANITIZE") else []


def worker(chain, forward, *options, **more):
    return chain.worker(forward, *OUTER, *options, **more)


def one_worker(*options):
    def start(chain, forward):
        only = worker(chain, forward, *options)
        return [only.endpoint], [only]
    return start


def one_each(chain, forward):
    """Each program has a worker of its own."""
    workers = [worker(chain, forward) for _ in range(3)]
    return [at.endpoint for at in workers], workers


def behind_haproxy(chain, forward):
    workers = [worker(chain, forward) for _ in range(2)]
    return [balancer.start(chain, workers)], workers


def two_levels_behind_haproxy(chain, forward):
    upper = worker(chain, forward, level=2)
    workers = [worker(chain, upper.endpoint, "--lanes", "2") for _ in range(3)]
    return [balancer.start(chain, workers)], [*workers, upper]


def few_parts(chain, forward):
    """Parts leave before they have met."""
    upper = worker(chain, forward, "--max-parts", "16", level=2)
    workers = [worker(chain, upper.endpoint, "--max-parts", "16", "--delta-interval", "1ms") for _ in range(2)]
    return [at.endpoint for at in workers], [*workers, upper]


ROOTS = ("f1*", "s2")

CHAINS = {
    "one-worker": one_worker(),
    "six-lanes": one_worker("--lanes", "6", "--drivers", "2", "--lane-of", "sender"),
    "filter-per-thread": one_worker("--lanes", "2", "--placement", "threads"),
    "no-custody": one_worker("--custody", "none"),
    "roots": one_worker("--root", ",".join(ROOTS), "--lanes", "2"),
    "exact": one_worker("--shapes", "exact"),
    "set": one_worker("--shapes", "set"),
    "one-each": one_each,
    "few-parts": few_parts,
    "haproxy": behind_haproxy,
    "two-levels-behind-haproxy": two_levels_behind_haproxy,
}
NEED_HAPROXY = {"haproxy", "two-levels-behind-haproxy"}
# What of that the oracle has to know (replay.Stream).
OPTIONS = {"roots": {"roots": ROOTS}, "exact": {"shapes": "exact"}, "set": {"shapes": "set"}}
