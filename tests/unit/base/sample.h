/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sample table (sample.def) as a struct and as specs.
 *
 * Use:
 *     struct sample_options options;
 *     mr_options_parse(&sample_table, &options, ...);
 */
#ifndef MR_TESTS_UNIT_BASE_SAMPLE_H
#define MR_TESTS_UNIT_BASE_SAMPLE_H

#include "base/clock.h"
#include "base/compiler.h"
#include "base/options.h"

struct sample_options {
#define MR_OPTION MR_OPTION_FIELD
#include "tests/unit/base/sample.def"
#undef MR_OPTION
};

static const struct mr_option_spec sample_specs[] = {
#define MR_OPTION(...) MR_OPTION_SPEC(struct sample_options, __VA_ARGS__)
#include "tests/unit/base/sample.def"
#undef MR_OPTION
};

static const struct mr_option_table sample_table = {
    .command = "millrace sample",
    .summary = "show what a table of options can do",
    .positionals = "[FILE...]",
    .specs = sample_specs,
    .spec_count = MR_ARRAY_COUNT(sample_specs),
};

#endif
