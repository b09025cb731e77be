/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWICE_HPP
#define TWICE_HPP

#include "calls.h"

template <typename T> KEEP T twice(T value)
{
    return value + value;
}

#endif
