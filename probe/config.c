/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/config.h"

#include "base/options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

struct options {
#define MR_OPTION MR_OPTION_FIELD
#include "probe/options.def"
#undef MR_OPTION
};

static const struct mr_option_spec specs[] = {
#define MR_OPTION(...) MR_OPTION_SPEC(struct options, __VA_ARGS__)
#include "probe/options.def"
#undef MR_OPTION
};

static const struct mr_option_table table = {
    .command = "millrace probe",
    .summary = "what a traced program reads from its environment",
    .specs = specs,
    .spec_count = MR_ARRAY_COUNT(specs),
};

static const char *variable(char *const *env, const char *name)
{
    size_t size = strlen(name);

    for (; env && *env; env++)
        if (strncmp(*env, name, size) == 0 && (*env)[size] == '=')
            return *env + size + 1;
    return "";
}

static bool is_true(const char *text)
{
    return strcmp(text, "1") == 0 || strcasecmp(text, "true") == 0 ||
           strcasecmp(text, "yes") == 0 || strcasecmp(text, "on") == 0;
}

static bool is_false(const char *text)
{
    return *text == '\0' || strcmp(text, "0") == 0 || strcasecmp(text, "false") == 0 ||
           strcasecmp(text, "no") == 0 || strcasecmp(text, "off") == 0;
}

bool mr_config_is_disabled(char *const *env)
{
    return is_true(variable(env, "MILLRACE_DISABLED")) ||
           is_true(variable(env, "OTEL_SDK_DISABLED"));
}

bool mr_config_is_wanted(char *const *env)
{
    return !mr_config_is_disabled(env) &&
           (variable(env, "MILLRACE_ENDPOINT")[0] != '\0' ||
            strcmp(variable(env, "MILLRACE_POLICY"), "overwrite") == 0 ||
            !is_false(variable(env, "MILLRACE_CONTROL")));
}

static void copy_text(char *out, size_t capacity, const char *text)
{
    size_t size = strnlen(text, capacity - 1);

    memcpy(out, text, size);
    out[size] = '\0';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Percent-decodes in place (W3C Baggage, which OpenTelemetry refers to) and trims. */
static char *decode(char *text)
{
    char *out = text, *end = text + strlen(text);

    while (end > text && isspace((unsigned char)end[-1]))
        *--end = '\0';
    while (isspace((unsigned char)*text))
        text++;
    out = text;
    for (char *in = text; *in; in++) {
        int high = *in == '%' ? hex_digit(in[1]) : -1;
        int low = high >= 0 ? hex_digit(in[2]) : -1;

        if (low >= 0 && (low | high) != 0) { /* not %00: texts end there */
            *out++ = (char)(high << 4 | low);
            in += 2;
        } else {
            *out++ = *in;
        }
    }
    *out = '\0';
    return text;
}

static enum mr_status bad_attributes(const char *text, struct mr_error *error)
{
    return mr_error_set(error, MR_EUSAGE,
                        "OTEL_RESOURCE_ATTRIBUTES=%.100s: expected KEY=VALUE,... with at "
                        "most %d attributes and %d bytes",
                        text, MR_ATTRIBUTES_MAX, MR_CONFIG_ATTRIBUTES_SIZE - 1);
}

static enum mr_status parse_attributes(const char *text, struct mr_config *config,
                                       struct mr_error *error)
{
    char *rest = config->attribute_text, *item;

    if (strlen(text) >= MR_CONFIG_ATTRIBUTES_SIZE)
        return bad_attributes(text, error);
    copy_text(config->attribute_text, MR_CONFIG_ATTRIBUTES_SIZE, text);
    while ((item = strsep(&rest, ",")) != NULL) {
        char *value = strchr(item, '=');

        if (item[strspn(item, " \t")] == '\0')
            continue;
        if (!value || value == item || config->attribute_count == MR_ATTRIBUTES_MAX)
            return bad_attributes(text, error);
        *value++ = '\0';
        config->attributes[config->attribute_count++] =
            (struct mr_attribute){.key = decode(item), .value = decode(value)};
    }
    return MR_OK;
}

static const char *attribute(const struct mr_config *config, const char *key)
{
    for (uint32_t i = 0; i < config->attribute_count; i++)
        if (strcmp(config->attributes[i].key, key) == 0)
            return config->attributes[i].value;
    return "";
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void set_names(const struct options *options, const char *exe,
                      struct mr_config *config)
{
    const char *candidates[] = {options->app, options->service_name,
                                attribute(config, "service.name"), base_name(exe),
                                "unknown"};
    size_t i = 0;

    while (!candidates[i] || candidates[i][0] == '\0')
        i++;
    copy_text(config->app, sizeof(config->app), candidates[i]);
    copy_text(config->version, sizeof(config->version),
              attribute(config, "service.version"));
}

/* Absolute, because the program may go elsewhere before its end. */
static enum mr_status set_recorder_dir(const char *path, struct mr_config *config,
                                       struct mr_error *error)
{
    char absolute[PATH_MAX];
    size_t size;

    if (path[0] == '\0')
        return MR_OK;
    if (!realpath(path, absolute))
        return mr_error_set_errno(error, MR_EIO, errno, "MILLRACE_RECORDER_DIR=%s", path);
    size = strlen(absolute);
    if (size >= sizeof(config->recorder_dir))
        return mr_error_set(
            error, MR_EUSAGE,
            "MILLRACE_RECORDER_DIR=%.100s...: a path has at most %d bytes", path,
            MR_CONFIG_PATH_SIZE - 1);
    memcpy(config->recorder_dir, absolute, size + 1);
    return MR_OK;
}

static uint64_t round_up_to_power(uint64_t bytes)
{
    uint64_t power = MR_RING_BYTES_MIN;

    while (power < bytes)
        power *= 2;
    return power;
}

static enum mr_status parse_globs(const char *name, const char *text,
                                  struct mr_site_globs *globs, struct mr_error *error)
{
    struct mr_error cause = MR_ERROR_NONE;

    if (text && mr_site_globs_parse(globs, text, &cause) != MR_OK)
        return mr_error_set(error, cause.status, "%s=%s", name, cause.text);
    return MR_OK;
}

enum mr_status mr_config_parse_endpoint(const char *text, struct mr_endpoints *endpoints,
                                        bool *is_discarding)
{
    endpoints->count = 0;
    *is_discarding = strcmp(text, MR_ENDPOINT_DISCARD) == 0;
    return *is_discarding ? MR_OK : mr_endpoints_parse(text, endpoints, NULL);
}

static enum mr_status check(const struct options *options, struct mr_config *config,
                            struct mr_error *error)
{
    bool has_endpoint = options->endpoint && options->endpoint[0];
    enum mr_status status = MR_OK;

    if (has_endpoint || (config->policy != MR_POLICY_OVERWRITE && !options->control))
        status = mr_config_parse_endpoint(has_endpoint ? options->endpoint : "",
                                          &config->endpoints, &config->is_discarding);
    if (status != MR_OK)
        return mr_error_set(error, MR_EUSAGE,
                            "MILLRACE_ENDPOINT=%.100s: expected tcp://host:port, several "
                            "with commas, or discard alone",
                            has_endpoint ? options->endpoint : "");
    if (options->recorder_dir)
        status = set_recorder_dir(options->recorder_dir, config, error);
    if (status == MR_OK && options->counters &&
        strlen(options->counters) >= sizeof(config->counters))
        status = mr_error_set(error, MR_EUSAGE,
                              "MILLRACE_COUNTERS=%.100s...: at most %d bytes",
                              options->counters, MR_CONFIG_TEXT_SIZE - 1);
    if (status == MR_OK && options->attributes)
        status = parse_attributes(options->attributes, config, error);
    if (status == MR_OK && options->token_file && options->token_file[0])
        status = mr_token_read("MILLRACE_TOKEN_FILE", options->token_file, config->token,
                               error);
    if (status == MR_OK)
        status = parse_globs("MILLRACE_ONLY", options->only, &config->only, error);
    if (status == MR_OK)
        status = parse_globs("MILLRACE_EXCEPT", options->except, &config->except, error);
    if (status == MR_OK)
        status = parse_globs("MILLRACE_PRUNE_EXCEPT", options->prune_except,
                             &config->prune_except, error);
    return status;
}

enum mr_status mr_config_parse(char *const *env, const char *exe,
                               struct mr_config *config, struct mr_error *error)
{
    static const enum mr_clock_mode clocks[] = {
        MR_CLOCK_MODE_COUNTER, MR_CLOCK_MODE_HYBRID, MR_CLOCK_MODE_MONOTONIC};
    char name[] = "millrace", *argv[] = {name, NULL};
    struct options options;
    enum mr_options_action action;
    enum mr_status status;
    int first;

    memset(config, 0, sizeof(*config));
    status = mr_options_parse(&table, &options, 1, argv, env, &first, &action, error);
    if (status != MR_OK)
        return status;
    config->policy = (enum mr_policy)options.policy; /* in the order of the table */
    status = check(&options, config, error);
    if (status != MR_OK)
        return status;
    config->clock = clocks[options.clock];
    config->starts_on = options.start == 0;
    config->is_controlled = options.control;
    if (options.control_dir)
        copy_text(config->control_dir, sizeof(config->control_dir), options.control_dir);
    copy_text(config->runtime_dir, sizeof(config->runtime_dir),
              variable(env, "XDG_RUNTIME_DIR"));
    if (options.counters)
        copy_text(config->counters, sizeof(config->counters), options.counters);
    config->depth = (uint32_t)options.depth;
    config->prune_ns = options.prune_ns;
    config->has_landings = options.landings == 0;
    config->is_counting_functions = options.counters_on == 1; /* as the table has it */
    config->block_timeout_ns = options.block_timeout_ns;
    config->ring_bytes = round_up_to_power(options.ring_bytes);
    config->memory_bytes = options.memory_bytes;
    config->recorder_keep = (uint32_t)options.recorder_keep;
    config->min_size = options.min_size;
    config->is_encoding_auto = options.encoding == 0;
    config->encoding = /* in the order of the table, behind auto */
        (enum mr_encoding)(options.encoding ? options.encoding - 1 : 0);
    config->exit_timeout_ns = options.exit_timeout_ns;
    config->is_exit_timeout_given = variable(env, "MILLRACE_EXIT_TIMEOUT")[0] != '\0';
    set_names(&options, exe, config);
    return MR_OK;
}
