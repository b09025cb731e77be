/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main() of a program of very many functions, none of which it calls. It prints what
 * the start left behind, "start NOW_NS PRIVATE_KIB": CLOCK_MONOTONIC when main() begins, and
 * memory that is this process' alone: pages that no file has. (Private_Dirty would count
 * those of a file that was written a moment ago.)
 */
#include <stdio.h>
#include <time.h>

static unsigned long private_kib(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    unsigned long sum = 0, value;
    char line[256];

    if (!file)
        return 0;
    while (fgets(line, sizeof(line), file))
        if (sscanf(line, "Anonymous: %lu", &value) == 1)
            sum = value;
    (void)fclose(file);
    return sum;
}

int main(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    printf("start %llu %lu\n",
           (unsigned long long)time.tv_sec * 1000000000 +
               (unsigned long long)time.tv_nsec,
           private_kib());
    return 0;
}
