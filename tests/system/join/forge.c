/* SPDX-License-Identifier: Apache-2.0 */
/* Hand-offs as they should not be: tokens attached twice, made up, from while nothing was recorded; detaches of nothing. */
#include <millrace/probe.h>

#include <sys/wait.h>
#include <unistd.h>

static int work(int number)
{
    return number + 1;
}

static struct mr_token request(void)
{
    return mr_capture();
}

static void attach(struct mr_token token)
{
    mr_attach(token);
    (void)work(1);
    mr_detach();
}

int main(void)
{
    struct mr_token token = request(), none = {0, 0, 0}, made_up = {UINT64_MAX, 1, 1};

    mr_detach();
    attach(token);
    attach(token);
    attach(made_up);
    attach(none);
    for (int i = 0; i < 20; i++) /* past what nests */
        mr_attach(none);
    (void)work(2);
    for (int i = 0; i < 25; i++)
        mr_detach();
    token = request(); /* never attached */
    if (fork() == 0) { /* of another process */
        attach(token);
        return 0;
    }
    (void)wait(NULL);
    return 0;
}
