/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LANES_MAX 64

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
    return count > LANES_MAX ? LANES_MAX : (uint64_t)count;
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
            "tcp://127.0.0.1:7400");
    if (mr_endpoints_parse(options->forward, &options->forward_at, &why) != MR_OK ||
        mr_endpoints_resolve(&options->forward_at, options->addresses,
                             &options->address_count, &why) != MR_OK)
        return mr_error_set(error, MR_EUSAGE, "--forward: %s", why.text);
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
        status = mr_token_read(options->token_file, options->token, error);
    if (status == MR_OK && options->outbox < 2 * options->max_frame)
        status = mr_error_set(error, MR_EUSAGE,
                              "--outbox: must be at least twice --max-frame (%" PRIu64
                              " bytes)",
                              options->max_frame);
    if (status == MR_OK)
        status = mr_globs_parse(options->outer, "--outer", &options->outer_globs, error);
    if (status == MR_OK)
        status = mr_globs_parse(options->root, "--root", &options->root_globs, error);
    if (options->lanes == 0)
        options->lanes = processor_count();
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
