/* SPDX-License-Identifier: Apache-2.0 */
/* slow FILE [CALLS]: makes FILE, then calls a millisecond long, without end or so many. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((noipa)) static void work(void)
{
    (void)usleep(1000);
}

int main(int argc, char **argv)
{
    long calls = argc > 2 ? atol(argv[2]) : -1;

    if (argc < 2 || open(argv[1], O_CREAT | O_WRONLY, 0600) < 0)
        return 1;
    for (long i = 0; i != calls; i++)
        work();
    return 0;
}
