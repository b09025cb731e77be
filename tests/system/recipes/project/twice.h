/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWICE_H
#define TWICE_H

#include "calls.h"

template <typename T> KEEP T twice(T value)
{
    return value + value;
}

#endif
