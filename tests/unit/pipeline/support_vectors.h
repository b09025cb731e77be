/* SPDX-License-Identifier: Apache-2.0 */
/* All vectors that templates can be found and counted with on this machine; not for others than tests of reduce. */
#ifndef MR_TESTS_SUPPORT_VECTORS_H
#define MR_TESTS_SUPPORT_VECTORS_H

#include "pipeline/filters/reduce_private.h"

#if defined(TEST_HAS_EMULATED_VECTORS)
/* emulated_vectors.c; its instructions are AVX2. */
extern const struct mr_template_vectors test_vectors_emulated;
#endif

#define TEST_VECTORS 4

/* Of 0 .. TEST_VECTORS - 1; NULL is none, as is 0. */
static inline const struct mr_template_vectors *test_vectors(int which)
{
    switch (which) {
    case 1:
        return mr_templates_vectors(MR_VECTORS_WIDE);
    case 2:
        return mr_templates_vectors(MR_VECTORS_WIDER);
#if defined(TEST_HAS_EMULATED_VECTORS)
    case 3:
        return MR_CPU_IS_WIDE() ? &test_vectors_emulated : NULL;
#endif
    default:
        return NULL;
    }
}

#endif
