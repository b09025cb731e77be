/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LANES_MAX 256
#define DRIVERS_MAX 64
/* So that what is moved is a quarter of a driver's senders, and few senders have a lane each: docs/why/2026-11-23-lanes.md. */
#define LANES_PER_DRIVER 4

static const struct mr_option_spec specs[] = {
#define MR_OPTION(...) MR_OPTION_SPEC(struct mr_worker_options, __VA_ARGS__)
#include "worker/options.def"
#undef MR_OPTION
};

static const struct mr_option_table table = {
    .command = "millrace worker",
    .summary = "takes events from probes, or deltas from workers, reduces them and sends "
               "what it gained to the next level",
    .specs = specs,
    .spec_count = MR_ARRAY_COUNT(specs)};

static uint64_t processor_count(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);

    if (count < 1)
        return 1;
    return count > DRIVERS_MAX ? DRIVERS_MAX : (uint64_t)count;
}

static enum mr_status read_endpoint(const char *flag, const char *text,
                                    struct mr_endpoint *endpoint, struct mr_error *error)
{
    struct mr_endpoints endpoints;
    struct mr_error why = MR_ERROR_NONE;

    if (mr_endpoints_parse(text, &endpoints, &why) != MR_OK)
        return mr_error_set(error, MR_EUSAGE, "--%s: %s", flag, why.text);
    if (endpoints.count != 1)
        return mr_error_set(error, MR_EUSAGE, "--%s: %s: give one endpoint", flag, text);
    *endpoint = endpoints.items[0];
    return MR_OK;
}

static enum mr_status read_peers(struct mr_worker_options *options,
                                 struct mr_error *error)
{
    struct mr_error why = MR_ERROR_NONE;

    if (!*options->peers ||
        mr_endpoints_parse(options->peers, &options->peers_at, &why) == MR_OK)
        return MR_OK;
    return mr_error_set(error, MR_EUSAGE, "--peers: %s", why.text);
}

static enum mr_status read_forward(struct mr_worker_options *options,
                                   struct mr_error *error)
{
    struct mr_error why = MR_ERROR_NONE;

    if (!options->forward)
        return mr_error_set(
            error, MR_EUSAGE,
            "--forward is needed: the endpoint of the next level, such as "
            "tcp://127.0.0.1:7420");
    if (mr_endpoints_parse(options->forward, &options->forward_at, &why) != MR_OK ||
        mr_endpoints_resolve(&options->forward_at, options->addresses,
                             &options->address_count, &why) != MR_OK)
        return mr_error_set(error, MR_EUSAGE, "--forward: %s", why.text);
    for (uint32_t i = 0; i < options->forward_at.count; i++)
        if (strtoul(options->forward_at.items[i].port, NULL, 10) == 0)
            return mr_error_set(error, MR_EUSAGE,
                                "--forward: %s: nobody can be reached at port 0",
                                options->forward);
    return MR_OK;
}

/* One where nothing can be moved, or where each lane has threads of its own that do most of the work. */
static uint64_t lanes_per_driver(const struct mr_worker_options *options)
{
    if (options->drivers == 1 || options->placement == MR_WORKER_THREADS)
        return 1;
    return LANES_PER_DRIVER;
}

/* As many as are asked for, else by the processors. */
static enum mr_status count_lanes(struct mr_worker_options *options,
                                  struct mr_error *error)
{
    uint64_t lanes_max = options->lanes ? options->lanes : LANES_MAX;

    if (options->drivers > lanes_max)
        return mr_error_set(error, MR_EUSAGE,
                            "--drivers: %" PRIu64 " are more than the %" PRIu64
                            " lanes (--lanes), some would have nothing to do",
                            options->drivers, lanes_max);
    if (options->drivers == 0)
        options->drivers = processor_count() < lanes_max ? processor_count() : lanes_max;
    if (options->lanes == 0)
        options->lanes = options->drivers * lanes_per_driver(options);
    if (options->lanes > LANES_MAX)
        options->lanes = LANES_MAX;
    return MR_OK;
}

static enum mr_status check(void *context, struct mr_error *error)
{
    struct mr_worker_options *options = context;
    enum mr_status status =
        read_endpoint("listen", options->listen, &options->listen_at, error);

    if (status == MR_OK && *options->metrics)
        status = read_endpoint("metrics", options->metrics, &options->metrics_at, error);
    if (status == MR_OK && *options->agent)
        status = read_endpoint("agent", options->agent, &options->agent_at, error);
    if (status == MR_OK)
        status = read_peers(options, error);
    if (status == MR_OK)
        status = read_forward(options, error);
    if (status == MR_OK && *options->token_file)
        status =
            mr_token_read("--token-file", options->token_file, options->token, error);
    if (status == MR_OK && options->outbox < 2 * options->max_frame)
        status = mr_error_set(error, MR_EUSAGE,
                              "--outbox: must be at least twice --max-frame (%" PRIu64
                              " bytes)",
                              options->max_frame);
    if (status == MR_OK)
        status = mr_globs_parse(options->outer, "--outer", &options->outer_globs, error);
    if (status == MR_OK)
        status = mr_globs_parse(options->root, "--root", &options->root_globs, error);
    if (status == MR_OK)
        status = count_lanes(options, error);
    return status;
}

void mr_worker_options_fini(struct mr_worker_options *options)
{
    mr_globs_fini(&options->outer_globs);
    mr_globs_fini(&options->root_globs);
}

int mr_worker_options_read(int argc, char **argv, struct mr_worker_options *options)
{
    return mr_options_read(&table, options, sizeof(*options), argc, argv, check);
}
