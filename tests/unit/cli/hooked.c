/* SPDX-License-Identifier: Apache-2.0 */
/* A program to look at: built with the hooks, and once more with the probe. */
int main(void)
{
    return 0;
}
