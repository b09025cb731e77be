/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three requests of the same two functions: a a b, a b, b a. The probe asks this gethostname(): a program on a host of the name in
 * HOST_NAME, without privileges.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile unsigned sink;

int gethostname(char *name, size_t size)
{
    const char *given = getenv("HOST_NAME");

    if (!given || strlen(given) >= size)
        return -1;
    memcpy(name, given, strlen(given) + 1);
    return 0;
}

static void a(void)
{
    sink++;
}

static void b(void)
{
    sink--;
}

static void request(const char *calls)
{
    for (; *calls; calls++) {
        if (*calls == 'a')
            a();
        else
            b();
    }
}

int main(void)
{
    request("aab");
    request("ab");
    request("ba");
    return 0;
}
