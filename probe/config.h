/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probe's configuration: read from the environment once, copied (programs overwrite
 * their environment), then constant. The table is probe/options.def.
 *
 *     if (mr_config_is_wanted(environ) &&
 *         mr_config_parse(environ, "/usr/bin/prog", &config, &error) == MR_OK) ...
 *
 * One thread, before tracing starts. mr_config_is_wanted() allocates nothing and makes
 * no system call.
 */
#ifndef MR_PROBE_CONFIG_H
#define MR_PROBE_CONFIG_H

#include "net/control.h"
#include "net/endpoint.h"
#include "net/token.h"
#include "net/wire.h"
#include "probe/clock.h"
#include "probe/ring.h"
#include "probe/sites.h"

#define MR_CONFIG_TEXT_SIZE 256
#define MR_CONFIG_ATTRIBUTES_SIZE 4096
#define MR_CONFIG_PATH_SIZE 512

struct mr_config {
    struct mr_endpoints endpoints; /* none: not until one is told by `attach` */
    bool is_discarding; /* in their stead: frames are made, counted and thrown away */
    bool starts_on;     /* records from the start, where there is an endpoint */
    bool is_controlled;
    char control_dir[MR_CONFIG_TEXT_SIZE]; /* "": where there is room */
    char runtime_dir[MR_CONFIG_TEXT_SIZE]; /* XDG_RUNTIME_DIR, or "" */
    enum mr_policy policy;
    enum mr_clock_mode clock; /* as wanted, then what probe/clock.h made of it */
    uint64_t block_timeout_ns;
    uint64_t ring_bytes; /* a power of two */
    uint64_t memory_bytes;
    uint64_t exit_timeout_ns;
    bool is_encoding_auto;
    enum mr_encoding encoding; /* else */
    uint32_t recorder_keep;    /* policy overwrite: files of dead programs that stay */
    char counters[MR_CONFIG_TEXT_SIZE]; /* names with commas, or "" */
    bool is_counting_functions;
    bool is_exit_timeout_given; /* by the user: waited for even if nobody ever answers */
    char app[MR_CONFIG_TEXT_SIZE];
    char version[MR_CONFIG_TEXT_SIZE]; /* attribute service.version, or "" */
    char token[MR_TOKEN_SIZE];
    char recorder_dir[MR_CONFIG_PATH_SIZE]; /* absolute, or "": where there is room */
    struct mr_site_globs only, except; /* functions that are recorded; probe/sites.h */
    uint64_t min_size;
    uint32_t depth;    /* levels; 0: no limit */
    uint64_t prune_ns; /* 0: off; probe/prune.h */
    struct mr_site_globs prune_except;
    bool has_landings;
    uint32_t attribute_count;
    struct mr_attribute attributes[MR_ATTRIBUTES_MAX]; /* point into the next */
    char attribute_text[MR_CONFIG_ATTRIBUTES_SIZE];
};

/* What is recorded has somewhere to go, or is to be thrown away. */
static inline bool mr_config_has_endpoint(const struct mr_config *config)
{
    return config->is_discarding || config->endpoints.count > 0;
}
/*
 * Where events go: receivers, or discard, which stands alone. MR_EUSAGE where it is
 * neither; the caller names the option.
 */
enum mr_status mr_config_parse_endpoint(const char *text, struct mr_endpoints *endpoints,
                                        bool *is_discarding);

/* Turned off by the user: MILLRACE_DISABLED or OTEL_SDK_DISABLED. */
bool mr_config_is_disabled(char *const *env);
/*
 * Tracing (a receiver, or policy overwrite), or to be controlled, was asked for and not
 * turned off.
 */
bool mr_config_is_wanted(char *const *env);

/*
 * MR_OK, or MR_EUSAGE / MR_EIO with the variable, its value and what is allowed. `exe`
 * is the executable's path, for the name. `config` stays where it is: it points into
 * itself.
 */
enum mr_status mr_config_parse(char *const *env, const char *exe,
                               struct mr_config *config, struct mr_error *error);

#endif
