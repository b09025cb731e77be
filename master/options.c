/* SPDX-License-Identifier: Apache-2.0 */
#include "master/options.h"

#include "base/compiler.h"

static const struct mr_option_spec specs[] = {
#define MR_OPTION(...) MR_OPTION_SPEC(struct mr_master_options, __VA_ARGS__)
#include "master/options.def"
#undef MR_OPTION
};

static const struct mr_option_table table = {
    .command = "millrace master",
    .summary = "hold the model that workers make, keep it on disk, show it",
    .specs = specs,
    .spec_count = MR_ARRAY_COUNT(specs),
};

static enum mr_status read_endpoint(const char *flag, const char *text,
                                    struct mr_endpoint *endpoint, struct mr_error *error)
{
    struct mr_endpoints endpoints;
    struct mr_error cause = MR_ERROR_NONE;

    if (mr_endpoints_parse(text, &endpoints, &cause) != MR_OK)
        return mr_error_set(error, MR_EUSAGE, "--%s: %s", flag, cause.text);
    if (endpoints.count != 1)
        return mr_error_set(error, MR_EUSAGE, "--%s: one address is needed", flag);
    *endpoint = endpoints.items[0];
    return MR_OK;
}

static enum mr_status check(void *context, struct mr_error *error)
{
    struct mr_master_options *options = context;
    enum mr_status status =
        read_endpoint("listen", options->listen, &options->listen_at, error);

    if (status == MR_OK)
        status = read_endpoint("http", options->http, &options->http_at, error);
    if (status == MR_OK && *options->token_file)
        status =
            mr_token_read("--token-file", options->token_file, options->token, error);
    if (status == MR_OK && !*options->store)
        status = mr_error_set(error, MR_EUSAGE, "--store: a directory is needed");
    if (status == MR_OK && options->store_max &&
        options->store_max < MR_MASTER_STORE_MAX_MIN)
        status = mr_error_set(error, MR_EUSAGE,
                              "--store-max: it must be at least 16M, or 0 for no limit");
    return status;
}

int mr_master_options_read(int argc, char **argv, struct mr_master_options *options)
{
    return mr_options_read(&table, options, sizeof(*options), argc, argv, check);
}
