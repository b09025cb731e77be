// SPDX-License-Identifier: Apache-2.0
#include "twice.hpp"

KEEP int first_unit(int value)
{
    return twice(value) + 1;
}
