/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where C++ exceptions land, and what runs on the way:
 *
 *     landings nested      try in try, the inner one gives the exception on, or another one
 *     landings cleanup     destructors that throw and catch themselves while an exception is under way
 *     landings recursion   out of the tenth frame of a function into its third
 *     landings virtual     the same, called indirectly
 *     landings library     through frames of libc, and out of one of libstdc++
 *     landings thread      thrown in one thread, thrown again in another
 *     landings terminate   out of a function that may not throw
 *     landings exit        pthread_exit() below frames with destructors and catch (...)
 *     landings cancel      cancelled below such frames
 *     landings switched    recording is switched off and on while calls are open, and an exception under way
 */
#include "safety.h"

#include <millrace/probe.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

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

TRACED static void caught()
{
    HERE;
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

TRACED static void fall(int value)
{
    HERE;
    leaf();
    throw value;
}

TRACED static void guarded(int value)
{
    HERE;
    Guard guard;
    fall(value);
    KEEP;
}

/* --- nested ------------------------------------------------------------------------ */

TRACED static void inner()
{
    HERE;
    Guard guard;
    try {
        guarded(1);
    } catch (const std::exception &) {
        leaf(); /* not this one */
    }
    KEEP;
}

TRACED static void gives_another()
{
    HERE;
    try {
        inner();
    } catch (int) {
        caught();
        throw std::runtime_error("another");
    }
    KEEP;
}

TRACED static void nested()
{
    HERE;
    try {
        try {
            gives_another();
        } catch (const std::logic_error &) {
            leaf(); /* not this one */
        }
    } catch (const std::runtime_error &) {
        caught();
        try {
            guarded(2); /* while the first one is being handled */
        } catch (...) {
            caught();
        }
        leaf();
    }
    leaf();
    KEEP;
}

/* --- destructors that throw --------------------------------------------------------- */

TRACED static void cleans_hard()
{
    HERE;
    try {
        guarded(3);
    } catch (int) {
        caught();
    }
    leaf();
    KEEP;
}

struct HardGuard {
    PLAIN HardGuard()
    {
    }
    PLAIN ~HardGuard()
    {
        cleans_hard();
        clean();
    }
};

TRACED static void hard(int depth)
{
    HERE;
    HardGuard guard;
    if (depth == 0)
        fall(4);
    hard(depth - 1);
    KEEP;
}

TRACED static void cleanup()
{
    HERE;
    try {
        hard(1);
    } catch (int) {
        caught();
    }
    leaf();
    KEEP;
}

/* --- recursion ---------------------------------------------------------------------- */

TRACED static void dive(int depth)
{
    HERE;
    if (depth == 10)
        fall(depth);
    if (depth == 3) {
        try {
            dive(depth + 1);
        } catch (int) {
            caught();
        }
    } else if (depth == 6) {
        Guard guard;
        dive(depth + 1);
    } else {
        dive(depth + 1);
    }
    leaf();
    KEEP;
}

struct Node {
    PLAIN Node()
    {
    }
    PLAIN virtual ~Node()
    {
    }
    virtual void visit(int depth);
};

TRACED void Node::visit(int depth)
{
    HERE;
    if (depth == 10)
        fall(depth);
    if (depth == 3) {
        try {
            visit(depth + 1);
        } catch (int) {
            caught();
        }
    } else {
        Guard guard;
        visit(depth + 1);
    }
    leaf();
    KEEP;
}

struct Leaf : Node {
    PLAIN Leaf()
    {
    }
    PLAIN ~Leaf() override
    {
    }
    void visit(int depth) override;
};

TRACED void Leaf::visit(int depth)
{
    HERE;
    if (depth > 2)
        throw depth;
    leaf();
    KEEP;
}

/* Its catcher is not traced, what throws is called indirectly. */
PLAIN static void catch_plainly(Node *node)
{
    try {
        node->visit(5);
    } catch (int) {
        caught();
    }
    leaf();
    KEEP;
}

TRACED static void visits()
{
    Node *volatile nodes[] = {new Node, new Leaf};

    HERE;
    nodes[0]->visit(1);
    nodes[1]->visit(2);
    catch_plainly(nodes[1]);
    leaf();
    delete nodes[0];
    delete nodes[1];
    KEEP;
}

/* --- frames of libraries -------------------------------------------------------------- */

TRACED static int compare(const void *, const void *)
{
    HERE;
    Guard guard;
    fall(5);
    return 0;
}

TRACED static void library()
{
    int values[] = {2, 1};

    HERE;
    try {
        qsort(values, 2, sizeof(values[0]), compare);
    } catch (int) {
        caught();
    }
    try {
        Guard guard;
        (void)std::string("short").at(100);
    } catch (const std::out_of_range &) {
        caught();
    }
    leaf();
    KEEP;
}

/* --- threads -------------------------------------------------------------------------- */

static std::exception_ptr *carried;

TRACED static void *carries(void *)
{
    HERE;
    try {
        guarded(6);
    } catch (...) {
        *carried = std::current_exception();
        caught();
    }
    leaf();
    KEEP;
    return nullptr;
}

TRACED static void throws_carried()
{
    HERE;
    Guard guard;
    std::rethrow_exception(*carried);
}

PLAIN static void join(pthread_t thread)
{
    MUST(pthread_join(thread, nullptr) == 0);
}

TRACED static void thread()
{
    pthread_t other;

    HERE;
    carried = new std::exception_ptr;
    MUST(pthread_create(&other, nullptr, carries, nullptr) == 0);
    join(other);
    try {
        throws_carried();
    } catch (int) {
        caught();
    }
    leaf();
    delete carried;
    KEEP;
}

/* --- the end ------------------------------------------------------------------------- */

TRACED static void on_terminate()
{
    HERE;
    leaf();
    exit(0);
}

TRACED static void may_not_throw() noexcept
{
    HERE;
    guarded(7);
    KEEP;
}

TRACED static void terminate()
{
    HERE;
    (void)std::set_terminate(on_terminate);
    try {
        may_not_throw();
    } catch (...) {
        leaf();
    }
    KEEP;
}

static pthread_barrier_t barrier;

TRACED static void end_here()
{
    HERE;
    leaf();
    pthread_exit(nullptr);
}

TRACED static void wait_here()
{
    HERE;
    leaf();
    (void)pthread_barrier_wait(&barrier);
    for (;;)
        (void)sleep(1000);
}

TRACED static void down(int depth, void (*last)())
{
    HERE;
    Guard guard;
    if (depth == 0)
        last();
    else
        down(depth - 1, last);
    KEEP;
}

TRACED static void *ends(void *last)
{
    void (*function)();

    HERE;
    memcpy(&function, &last, sizeof(function));
    try {
        down(2, function);
    } catch (...) {
        caught();
        throw;
    }
    return nullptr;
}

TRACED static void end(void (*last)(), bool is_cancelled)
{
    pthread_t other;

    HERE;
    MUST(pthread_barrier_init(&barrier, nullptr, 2) == 0);
    MUST(pthread_create(&other, nullptr, ends, reinterpret_cast<void *>(last)) == 0);
    if (is_cancelled) {
        (void)pthread_barrier_wait(&barrier);
        MUST(pthread_cancel(other) == 0);
    }
    join(other);
    KEEP;
}

/* --- switched --------------------------------------------------------------------------- */

struct Switch {
    PLAIN explicit Switch(int is_on) : is_on(is_on)
    {
    }
    PLAIN ~Switch()
    {
        MUST(mr_probe_switch(is_on, nullptr) == 0);
    }
    int is_on;
};

/* Off on the way in, on again while the exception is under way. */
TRACED static void unseen()
{
    HERE;
    Switch on_later(1);
    MUST(mr_probe_switch(0, nullptr) == 0);
    guarded(8);
    KEEP;
}

/* On all the way in, off in the first destructor, on again in the second. */
TRACED static void half_seen()
{
    HERE;
    Switch on(1);
    Guard guard;
    Switch off(0);
    guarded(9);
    KEEP;
}

TRACED static void switched()
{
    HERE;
    try {
        Guard guard;
        unseen();
    } catch (int) {
        caught();
    }
    try {
        half_seen();
    } catch (int) {
        caught();
    }
    try {
        guarded(10); /* all of it seen */
    } catch (int) {
        caught();
    }
    leaf();
    KEEP;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";

    HERE;
    if (strcmp(mode, "nested") == 0)
        nested();
    else if (strcmp(mode, "cleanup") == 0)
        cleanup();
    else if (strcmp(mode, "recursion") == 0)
        dive(1);
    else if (strcmp(mode, "virtual") == 0)
        visits();
    else if (strcmp(mode, "library") == 0)
        library();
    else if (strcmp(mode, "thread") == 0)
        thread();
    else if (strcmp(mode, "terminate") == 0)
        terminate();
    else if (strcmp(mode, "exit") == 0)
        end(end_here, false);
    else if (strcmp(mode, "cancel") == 0)
        end(wait_here, true);
    else if (strcmp(mode, "switched") == 0)
        switched();
    else
        return 2;
    leaf();
    return 0;
}
