/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++ exceptions through frames that are traced and frames that are not; caught, caught and thrown again, in a
 * thread. Guards have destructors that make calls on the way.
 */
#include "safety.h"

#include <millrace/probe.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <pthread.h>
#include <stdexcept>

TRACED static void leaf()
{
    HERE;
}

TRACED static void clean()
{
    HERE;
    leaf();
    KEEP;
}

struct Guard {
    PLAIN Guard()
    {
    }
    PLAIN ~Guard()
    {
        clean();
    }
};

TRACED static void fall()
{
    HERE;
    leaf();
    throw std::runtime_error("fall");
}

TRACED static void through(int depth)
{
    HERE;
    Guard guard;
    if (depth == 0)
        fall();
    else
        through(depth - 1);
    KEEP;
}

PLAIN static void through_plain(int depth)
{
    Guard guard;
    if (depth == 0)
        through(1);
    else
        through_plain(depth - 1);
    KEEP;
}

TRACED static void catch_here()
{
    HERE;
    try {
        through(2);
    } catch (const std::exception &) {
        leaf();
    }
    leaf();
    clean();
    KEEP;
}

PLAIN static void catch_in_plain()
{
    try {
        through_plain(2);
    } catch (const std::exception &) {
        leaf();
    }
    clean();
    KEEP;
}

TRACED static void above_plain()
{
    HERE;
    catch_in_plain();
    leaf();
    KEEP;
}

TRACED static void throw_again()
{
    HERE;
    try {
        through(1);
    } catch (...) {
        leaf();
        throw;
    }
}

TRACED static void catch_again()
{
    HERE;
    try {
        throw_again();
    } catch (const std::exception &) {
        leaf();
    }
    clean();
    KEEP;
}

TRACED static void *in_thread(void *)
{
    HERE;
    try {
        through(0);
    } catch (const std::exception &) {
        leaf();
    }
    leaf();
    KEEP;
    return nullptr;
}

int main()
{
    pthread_t thread;

    HERE;
    catch_here();
    above_plain();
    catch_again();
    MUST(pthread_create(&thread, nullptr, in_thread, nullptr) == 0);
    MUST(pthread_join(thread, nullptr) == 0);
    return 0;
}
