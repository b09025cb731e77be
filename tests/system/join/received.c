/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that answers from its cache in functions that are not traced: no call tree takes what was received. Then it is done
 * with the request, or gets one without a header, or one whose header is damaged; and what is called next is of no earlier one.
 * With `undetached`: so it is where an attach of before has no detach.
 */
#include <millrace/probe.h>

#include <stdbool.h>
#include <string.h>

#define REQUESTS 30

static volatile int sink;

static void request(struct mr_traceparent *parent)
{
    (void)mr_send(parent);
}

static void tick(void)
{
    sink++;
}

static void answer(void)
{
    sink++;
}

MR_NEVER_TRACE static void serve(int number)
{
    struct mr_traceparent parent;

    request(&parent);
    mr_receive(&parent);
    if (number % 3 == 0) {
        mr_detach();
        tick();
        return;
    }
    if (number % 3 == 1) {
        mr_receive(NULL);
    } else {
        (void)mr_traceparent_parse("damaged", strlen("damaged"), &parent);
        mr_receive(&parent);
    }
    answer();
    mr_detach();
}

MR_NEVER_TRACE static void serve_undetached(int number)
{
    struct mr_traceparent parent;

    mr_attach(mr_capture()); /* left out: its detach */
    mr_attach(mr_capture());
    mr_detach();
    request(&parent);
    mr_receive(&parent);
    if (number % 2 == 0)
        mr_detach();
    else
        mr_receive(NULL);
    tick();
    mr_detach();
}

int main(int count, char **arguments)
{
    bool is_undetached = count > 1 && strcmp(arguments[1], "undetached") == 0;

    for (int i = 0; i < REQUESTS; i++)
        (is_undetached ? serve_undetached : serve)(i);
    return 0;
}
