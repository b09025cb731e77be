/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MR_TESTS_DIFFERENTIAL_PLANTED_H
#define MR_TESTS_DIFFERENTIAL_PLANTED_H

/*
 * Runs `tests`, whose exit status is 0 when all pass, in a process of its own. 0 when they do what they should: find the
 * fault `name` or, if that is "none", nothing. Tells the first difference.
 */
int planted_run(const char *name, int (*tests)(void));

#endif
