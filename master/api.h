/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the HTTP paths answer, without HTTP: a route's function makes JSON (or text) from
 * one version of the model. Numbers that are not known are null or absent, never 0; every
 * list has a limit and tells how many there are.
 *
 *     /api/v1/paths       ?entry=ID ?scope=ID ?depth= ?limit= ?form=tree|list
 *     /api/v1/functions   ?limit= ?sort=self|total|calls ?find=PART-OF-NAME-OR-MODULE
 *     /api/v1/entries     ?limit= ?sort=time|count|max
 *     /api/v1/open        ?limit=
 *     /api/v1/shapes      ?entry=ID ?limit= ?sort=time|count
 *     /api/v1/shapes/ID   ?depth= ?limit=
 *     /api/v1/exemplars   ?entry=ID ?shape=ID ?limit=
 *     /api/v1/exemplars/ID
 *     /api/v1/exemplars/wanted                 also POST {"path", "shape", "min_ns", "count", "ttl_s"}
 *     /api/v1/exemplars/wanted/ID              DELETE alone
 *     /api/v1/landscape   ?limit=
 *     /api/v1/ledger      ?source=ID ?limit=
 *     /api/v1/shares
 *     /metrics  /healthz  /readyz
 *
 * Threads: any that called mr_model_thread_enter(); no state is kept.
 *
 * Use:
 *     struct mr_api_reply reply;
 *     mr_api_answer(&api, "/api/v1/functions", params, count, &reply);
 *     ... reply.status, reply.type, reply.body (malloc), reply.size
 */
#ifndef MR_MASTER_API_H
#define MR_MASTER_API_H

#include "base/span.h"
#include "base/status.h"
#include "master/ingest.h"
#include "master/model.h"
#include "master/store.h"

#include <stddef.h>
#include <stdint.h>

#define MR_API_PARAMS_MAX 16
#define MR_API_LIMIT_MAX 10000 /* rows or nodes of one answer */
#define MR_API_LIMIT_DEFAULT 1000
#define MR_API_DEPTH_MAX 256
#define MR_API_READY_NS (UINT64_C(5) * 1000000000) /* progress within, to be ready */

struct mr_api { /* pointers are borrowed; store and ingest may be NULL (no readiness) */
    struct mr_model *model;
    struct mr_store *store;
    struct mr_ingest *ingest;
    uint64_t start_ns;             /* CLOCK_REALTIME */
    uint64_t gone_ns;              /* struct mr_summary_limits */
    struct mr_wanted_book *wanted; /* NULL: no requests for exemplars are taken */
    uint64_t http_gave_way;        /* clients; written by the thread that answers */
};

struct mr_api_param {
    const char *name, *value; /* value "" where none is given */
};

struct mr_api_reply {
    unsigned status; /* of HTTP: 200, 201, 400, 404, 429, 503 */
    const char *type;
    char *body; /* the caller's, by free() */
    size_t size;
};

/* MR_ENOMEM; everything else is in reply->status with a JSON body that says why. */
enum mr_status mr_api_answer(const struct mr_api *api, const char *path,
                             const struct mr_api_param *params, size_t param_count,
                             struct mr_api_reply *reply);
/* Whether mr_api_change() does something at the path: "POST" or "DELETE". */
bool mr_api_takes(const char *method, const char *path);
/* The same for what changes something; `body` is that of a POST. */
enum mr_status mr_api_change(const struct mr_api *api, const char *path,
                             const char *method, struct mr_span body,
                             struct mr_api_reply *reply);
/* A JSON body {"error": ...} for what HTTP itself refuses. MR_ENOMEM. */
enum mr_status mr_api_error(unsigned status, const char *text,
                            struct mr_api_reply *reply);

#endif
