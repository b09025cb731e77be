/* SPDX-License-Identifier: Apache-2.0 */
/* Spans with names that no compiler would give: each once, in a function of its own. */
#include <millrace/probe.h>

static void controls(void)
{
    MR_SPAN("esc\x1b[31m\nLedger    forged");
}

static void bytes(void)
{
    MR_SPAN("\xc3\xa9\xff");
}

static void markup(void)
{
    MR_SPAN("<img src=x onerror=\"alert('1')\">");
}

static void direction(void)
{
    MR_SPAN("\xe2\x80\xaegpj.exe");
}

int main(void)
{
    controls();
    bytes();
    markup();
    direction();
    return 0;
}
