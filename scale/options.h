/* SPDX-License-Identifier: Apache-2.0 */
/* What `millrace scale` was told: parsed once (scale/options.def), checked, then const. Strings are borrowed from argv. */
#ifndef MR_SCALE_OPTIONS_H
#define MR_SCALE_OPTIONS_H

#include "base/log.h"
#include "base/options.h"

struct mr_scale_options {
#define MR_OPTION MR_OPTION_FIELD
#include "scale/options.def"
#undef MR_OPTION
};

/* -1 to go on, else the exit status: 0 after help, 2 after one line that says what is wrong. */
int mr_scale_options_read(int argc, char **argv, struct mr_scale_options *options);

#endif
