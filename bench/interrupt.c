/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/interrupt.h"

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
    struct sigaction action = {.sa_handler = on_signal}; /* without SA_RESTART */

    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

bool mr_interrupt_seen(void)
{
    return is_seen != 0;
}
