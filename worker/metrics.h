/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's HTTP (--metrics HOST:PORT): GET and HEAD of
 *
 *     /metrics   connections, the link upward, every filter with its busy share and the fill of the pipe before it, memory
 *     /healthz   200: this process turns
 *     /readyz    200: every filter made progress lately and the next level is there; else 503 and why
 *
 * libmicrohttpd is driven from the worker's main loop: its epoll descriptor is one of those that are waited for. One thread, the
 * main one; what it reads of others are their counters, a moment old.
 *
 *     mr_worker_metrics_open(&stats, fd, &metrics, &error);     // takes the listening socket; stats is borrowed
 *     epoll_ctl(..., mr_worker_metrics_fd(metrics), ...);
 *     mr_worker_metrics_run(metrics);                           // when it is readable, and each turn
 *     mr_worker_metrics_close(metrics);
 */
#ifndef MR_WORKER_METRICS_H
#define MR_WORKER_METRICS_H

#include "base/buffer.h"
#include "base/error.h"
#include "worker/stats.h"

#define MR_WORKER_METRICS_CONNECTIONS_MAX 32
#define MR_WORKER_METRICS_READY_NS                                                       \
    (UINT64_C(5) * 1000000000) /* progress within, to be ready */

struct mr_worker_metrics;

/* `listen_fd` is taken, also when it fails. MR_ENOMEM, MR_EIO. */
enum mr_status mr_worker_metrics_open(const struct mr_worker_stats *stats, int listen_fd,
                                      struct mr_worker_metrics **metrics,
                                      struct mr_error *error);
void mr_worker_metrics_close(struct mr_worker_metrics *metrics); /* NULL allowed */
int mr_worker_metrics_fd(const struct mr_worker_metrics *metrics);
void mr_worker_metrics_run(struct mr_worker_metrics *metrics, uint64_t now_ns);

#endif
