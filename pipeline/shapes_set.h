/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children of a call whose shape is a set (FORMAT.md section 7): which paths a trace touched, whatever the order, the number and the
 * distribution of its calls. So of several children of one site only one is kept, that has the children of all of
 * them, these in turn of one site each; else a loop over 20 items that go one of two ways each had 2^20 shapes.
 *
 *     f(a(x) a(y) b a(x z))  ->  f(a(x y z) b)
 *
 * Part of pipeline/shapes.h, which calls it before it looks a list up. Bounds: MR_SET_DEPTH_MAX levels below the list,
 * MR_SET_UNIONS_MAX pairs for one list; what is past them stands side by side, a rule of the children alone.
 */
#ifndef MR_PIPELINE_SHAPES_SET_H
#define MR_PIPELINE_SHAPES_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/shapes.h"

#define MR_SET_DEPTH_MAX 4096u   /* levels, as of a path */
#define MR_SET_UNIONS_MAX 65536u /* pairs */

/*
 * Makes `*count` nodes, in any order, with doubles, a set in place. False when there is no memory, or no room or budget
 * for a node that unites others: the list is as it was.
 */
bool mr_set_make(struct mr_nodes *nodes, uint64_t *children, uint32_t *count);

#endif
