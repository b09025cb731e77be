/* SPDX-License-Identifier: Apache-2.0 */
/* `millrace master` alone, so that these tests need nothing but the master. */
#include "master/master.h"

int main(int argc, char **argv)
{
    return mr_master_command(argc, argv);
}
