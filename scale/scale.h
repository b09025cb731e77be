/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `millrace scale`: looks at the workers of a level every few seconds (their /metrics), and starts, drains and stops them by the rules
 * of scale/rules.h through commands of the user's. It keeps nothing: what runs is what answers, so it may be killed and
 * started again at any time.
 */
#ifndef MR_SCALE_SCALE_H
#define MR_SCALE_SCALE_H

int mr_scale_command(int argc, char **argv);

#endif
