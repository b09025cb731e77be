/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In the static library: a pthread_create() of ours in the program itself could not find
 * libc's in a fully static link, so there is none. Start functions of threads stay
 * unknown; the worker still learns outer frames from what threads do.
 */
#include "probe/registry.h"

void mr_interpose_after_fork(void)
{
}
