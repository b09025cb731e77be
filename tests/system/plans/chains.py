# SPDX-License-Identifier: Apache-2.0
"""Chains of workers that plans run through. Each: start(chain, forward) gives the endpoints of programs, and workers in the order in
which they are stopped."""
import balancer


def one_worker(*options):
    def start(chain, forward):
        worker = chain.worker(forward, *options)
        return [worker.endpoint], [worker]
    return start


def one_each(chain, forward):
    """Each program has a worker of its own."""
    workers = [chain.worker(forward) for _ in range(3)]
    return [worker.endpoint for worker in workers], workers


def behind_haproxy(chain, forward):
    workers = [chain.worker(forward) for _ in range(2)]
    return [balancer.start(chain, workers)], workers


def two_levels_behind_haproxy(chain, forward):
    upper = chain.worker(forward, level=2)
    workers = [chain.worker(upper.endpoint, "--lanes", "2") for _ in range(3)]
    return [balancer.start(chain, workers)], [*workers, upper]


def few_parts(chain, forward):
    """Parts leave before they have met."""
    upper = chain.worker(forward, "--max-parts", "16", level=2)
    workers = [chain.worker(upper.endpoint, "--max-parts", "16", "--delta-interval", "1ms") for _ in range(2)]
    return [worker.endpoint for worker in workers], [*workers, upper]


ROOTS = ("f1*", "s2")  # with --root

CHAINS = {
    "one-worker": one_worker(),
    "six-lanes": one_worker("--lanes", "6", "--drivers", "2", "--lane-of", "sender"),
    "filter-per-thread": one_worker("--lanes", "2", "--placement", "threads"),
    "no-custody": one_worker("--custody", "none"),
    "roots": one_worker("--root", ",".join(ROOTS), "--lanes", "2"),
    "one-each": one_each,
    "few-parts": few_parts,
    "haproxy": behind_haproxy,
    "two-levels-behind-haproxy": two_levels_behind_haproxy,
}
NEED_HAPROXY = {"haproxy", "two-levels-behind-haproxy"}
