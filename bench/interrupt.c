/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/interrupt.h"

#include "base/compiler.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t is_seen;

static void on_signal(int number)
{
    (void)number;
    is_seen = 1;
}

void mr_interrupt_catch(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal}; /* without SA_RESTART */

    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < MR_ARRAY_COUNT(numbers); i++) {
        struct sigaction before;

        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            (void)sigaction(numbers[i], &action, NULL);
    }
}

bool mr_interrupt_seen(void)
{
    return is_seen != 0;
}
