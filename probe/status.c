/* SPDX-License-Identifier: Apache-2.0 */
/* The status of the innermost call, as the program tells it: a record of kind status (docs/FORMAT.md section 6.1). No state. */
#include "probe/hook.h"
#include "probe/include/millrace/probe.h"
#include "probe/registry.h"

#include <errno.h>

MR_EXPORT void mr_probe_status(int is_failed)
{
    struct mr_thread *thread = &mr_thread_self;
    uint32_t clock = mr_load_relaxed(&mr_hook_state.clock);
    struct mr_event event = {.bits = mr_word_record(MR_RECORD_STATUS, 1, 0, 0),
                             .payload = is_failed != 0,
                             .words = 2};
    int saved_errno = errno;

    if (clock == 0) /* recording ended meanwhile */
        return;
    if (mr_hook_state.counted & MR_COUNTED_DEPTH &&
        !mr_depth_is_recorded(&mr_probe->depth))
        return;
    if (thread->words)
        mr_ring_event_slow(thread, &event, mr_clock_read((enum mr_clock_mode)clock),
                           MR_INDEX_NONE);
    else
        mr_thread_event(thread, &event);
    errno = saved_errno;
}
