/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/link.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define STEP_NS (20 * MR_SECOND_NS)

/* One command; its words are split at blanks. */
MR_PRINTF(2, 3)
static enum mr_status step(struct mr_error *error, const char *format, ...)
{
    struct mr_words argv = {0};
    struct mr_command command = {.argv = &argv, .timeout_ns = STEP_NS};
    enum mr_status status;
    va_list arguments;
    char line[256];

    va_start(arguments, format);
    (void)vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    mr_words_split(&argv, line);
    status = mr_command_run(&command, error);
    mr_command_fini(&command);
    mr_words_fini(&argv);
    return status;
}

static enum mr_status join(const struct mr_link *link, unsigned number, unsigned mbit_s,
                           struct mr_error *error)
{
    enum mr_status status =
        step(error, "ip link add mrb%ua type veth peer name mrb%ub netns %s", number,
             number, link->name);

    if (status == MR_OK)
        status = step(error, "ip address add %s/30 dev mrb%ua", link->host, number);
    if (status == MR_OK)
        status = step(error, "ip link set mrb%ua up", number);
    if (status == MR_OK)
        status = step(error, "ip -n %s address add 10.213.%u.2/30 dev mrb%ub", link->name,
                      number % 250, number);
    if (status == MR_OK)
        status = step(error, "ip -n %s link set mrb%ub up", link->name, number);
    if (status == MR_OK)
        status = step(error, "ip -n %s link set lo up", link->name);
    if (status == MR_OK)
        status = step(error,
                      "tc -n %s qdisc add dev mrb%ub root tbf rate %umbit burst 256kb "
                      "latency 20ms",
                      link->name, number, mbit_s);
    return status;
}

enum mr_status mr_link_up(struct mr_link *link, unsigned mbit_s, struct mr_error *error)
{
    unsigned number = (unsigned)getpid() % 100000;
    enum mr_status status;

    *link = (struct mr_link){.is_up = false};
    (void)snprintf(link->name, sizeof(link->name), "mrbench%u", number);
    (void)snprintf(link->host, sizeof(link->host), "10.213.%u.1", number % 250);
    status = step(error, "ip netns add %s", link->name);
    link->is_up = status == MR_OK;
    if (status == MR_OK)
        status = join(link, number, mbit_s, error);
    if (status == MR_OK || status == MR_END)
        return status;
    mr_link_down(link);
    return MR_ENOTFOUND;
}

void mr_link_words(const struct mr_link *link, struct mr_words *argv)
{
    mr_words_split(argv, "ip netns exec");
    mr_words_add(argv, "%s", link->name);
}

/* With the namespace its interface goes, and the other end with it. */
void mr_link_down(struct mr_link *link)
{
    if (link->is_up)
        (void)step(NULL, "ip netns del %s", link->name);
    *link = (struct mr_link){.is_up = false};
}
