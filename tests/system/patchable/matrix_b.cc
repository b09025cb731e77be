/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix.h"

int other_unit(int value)
{
    return twice(value) + 1;
}
