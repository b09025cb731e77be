/* SPDX-License-Identifier: Apache-2.0 */
#include "scale/options.h"

#include "net/endpoint.h"
#include "scale/fetch.h"
#include "scale/template.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct mr_option_spec specs[] = {
#define MR_OPTION(...) MR_OPTION_SPEC(struct mr_scale_options, __VA_ARGS__)
#include "scale/options.def"
#undef MR_OPTION
};

static const struct mr_option_table table = {
    .command = "millrace scale",
    .summary =
        "starts and stops workers of a level by how busy they are, through commands "
        "of yours",
    .specs = specs,
    .spec_count = MR_ARRAY_COUNT(specs)};

static enum mr_status check_needed(const char *flag, const char *text,
                                   struct mr_error *error)
{
    char option[32];

    (void)snprintf(option, sizeof(option), "--%s", flag);
    if (!text || !*text)
        return mr_error_set(error, MR_EUSAGE, "%s is needed", option);
    return mr_template_check(option, text, error);
}

static enum mr_status check_places(const struct mr_scale_options *options,
                                   struct mr_error *error)
{
    /* A text for all workers is the same for each: the first would be started again and again. */
    if (!strstr(options->metrics, "{n"))
        return mr_error_set(error, MR_EUSAGE,
                            "--metrics: '%s' has no {n}: every worker has one of its own",
                            options->metrics);
    if (!strstr(options->start, "{n") && !strstr(options->start, "{count}"))
        return mr_error_set(error, MR_EUSAGE, "--start: '%s' has no {n} and no {count}",
                            options->start);
    return MR_OK;
}

static enum mr_status check_address(const char *option, const char *address,
                                    struct mr_error *error)
{
    struct mr_error why = MR_ERROR_NONE;
    struct mr_endpoints endpoints;

    if (mr_endpoints_parse(address, &endpoints, &why) != MR_OK)
        return mr_error_set(error, MR_EUSAGE, "%s: %s", option, why.text);
    if (endpoints.count > 1)
        return mr_error_set(error, MR_EUSAGE, "%s: '%.80s' is more than one", option,
                            address);
    if (strspn(endpoints.items[0].port, "0") == strlen(endpoints.items[0].port))
        return mr_error_set(error, MR_EUSAGE,
                            "%s: '%.80s': nobody can be reached at port 0", option,
                            address);
    return MR_OK;
}

/* Workers that can never answer would be started again and again. */
static enum mr_status check_addresses(const struct mr_scale_options *options,
                                      struct mr_error *error)
{
    char address[MR_FETCH_ADDRESS_MAX];
    enum mr_status status = MR_OK;

    for (uint32_t n = 1; n <= options->max && status == MR_OK; n++) {
        const struct mr_template_values values = {n, 0, (uint32_t)options->level};

        if (!mr_template_fill(options->metrics, &values, address, sizeof(address)))
            return mr_error_set(error, MR_EUSAGE, "--metrics: too long");
        status = check_address("--metrics", address, error);
    }
    if (status == MR_OK && strlen(options->master) >= sizeof(address))
        return mr_error_set(error, MR_EUSAGE, "--master: too long");
    if (status == MR_OK && *options->master)
        status = check_address("--master", options->master, error);
    return status;
}

static enum mr_status check(void *context, struct mr_error *error)
{
    const struct mr_scale_options *options = context;
    enum mr_status status = check_needed("metrics", options->metrics, error);

    if (status == MR_OK)
        status = check_needed("start", options->start, error);
    if (status == MR_OK)
        status = check_needed("drain", options->drain, error);
    if (status == MR_OK)
        status = check_needed("stop", options->stop, error);
    if (status == MR_OK)
        status = check_places(options, error);
    if (status == MR_OK)
        status = check_addresses(options, error);
    if (status == MR_OK)
        status = mr_template_check("--add-level", options->add_level, error);
    if (status == MR_OK && options->min > options->max)
        status = mr_error_set(error, MR_EUSAGE,
                              "--min: %" PRIu64 " is more than --max, %" PRIu64,
                              options->min, options->max);
    if (status == MR_OK && options->low >= options->high)
        status = mr_error_set(error, MR_EUSAGE,
                              "--low: %" PRIu64 " is not below --high, %" PRIu64,
                              options->low, options->high);
    if (status == MR_OK && *options->add_level && !*options->master)
        status = mr_error_set(error, MR_EUSAGE,
                              "--add-level needs --master, whose use it goes by");
    return status;
}

int mr_scale_options_read(int argc, char **argv, struct mr_scale_options *options)
{
    return mr_options_read(&table, options, sizeof(*options), argc, argv, check);
}
