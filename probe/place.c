/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/place.h"

#include "base/clock.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux takes 0.1 to 100 ms. */
#define SLICE_NS (100 * MR_MICROSECOND_NS)
#define MOVE_MIN_NS (10 * MR_MILLISECOND_NS)
#define RETURN_NS MR_SECOND_NS

/* The first of the kernel's versions of it; sched.h of some libcs has one, of others none. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
};

/* EINVAL: a kernel without filters. */
static bool is_allowed(void)
{
    int mode = prctl(PR_GET_SECCOMP);

    return mode == 0 || (mode < 0 && errno == EINVAL);
}

/* Before Linux 6.12 the kernel keeps to its own slices. */
void mr_place_shorten_slices(void)
{
    struct attributes attributes = {.size = sizeof(attributes)};

    if (!is_allowed() ||
        syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0 ||
        attributes.policy != SCHED_OTHER)
        return;
    attributes.size = sizeof(attributes);
    attributes.runtime_ns = SLICE_NS;
    (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

void mr_place_yield_to_all(void)
{
    const struct sched_param none = {.sched_priority = 0};

    if (is_allowed())
        (void)syscall(SYS_sched_setscheduler, 0, SCHED_IDLE, &none);
}

/* libc's wrapper reads less of the mask than the kernel may have. */
static bool read_mask(int32_t tid, struct mr_cpu_mask *mask)
{
    memset(mask, 0, sizeof(*mask));
    return syscall(SYS_sched_getaffinity, tid, sizeof(*mask), mask) > 0;
}

static bool write_mask(int32_t tid, const struct mr_cpu_mask *mask)
{
    return syscall(SYS_sched_setaffinity, tid, sizeof(*mask), mask) == 0;
}

static bool is_same(const struct mr_cpu_mask *a, const struct mr_cpu_mask *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

void mr_place_begin(struct mr_place *place)
{
    place->tid = 0;
    place->cpu = sched_getcpu();
    memset(&place->busy, 0, sizeof(place->busy));
}

void mr_place_begin_of(struct mr_place *place, int32_t tid)
{
    if (place->tid != tid)
        *place = (struct mr_place){.tid = tid};
    place->cpu = -1;
    memset(&place->busy, 0, sizeof(place->busy));
}

void mr_place_meet(struct mr_place *place, int cpu)
{
    if (cpu >= 0 && cpu < MR_PLACE_CPUS)
        place->busy.bits[cpu / 64] |= UINT64_C(1) << cpu % 64;
}

static bool may_be_beside(const struct mr_place *place)
{
    bool is_apart = place->is_moved;

    for (size_t i = 0; i < MR_PLACE_WORDS && is_apart; i++)
        is_apart = (place->chosen.bits[i] & place->busy.bits[i]) == 0;
    return !is_apart;
}

static bool is_beside(const struct mr_place *place)
{
    int cpu = place->cpu;

    if (place->tid != 0)
        return may_be_beside(place);
    return cpu >= 0 && cpu < MR_PLACE_CPUS &&
           (place->busy.bits[cpu / 64] >> cpu % 64 & 1) != 0;
}

/* What we were given, where nobody has changed what we made of it. */
static bool read_given(struct mr_place *place)
{
    struct mr_cpu_mask now;

    if (!read_mask(place->tid, &now))
        return false;
    if (!place->is_moved || !is_same(&now, &place->chosen))
        place->given = now;
    return true;
}

static void move_back(struct mr_place *place)
{
    struct mr_cpu_mask now;

    place->is_moved = false;
    if (is_allowed() && read_mask(place->tid, &now) && is_same(&now, &place->chosen))
        (void)write_mask(place->tid, &place->given);
}

static void move(struct mr_place *place, uint64_t now_ns)
{
    struct mr_cpu_mask chosen;
    bool is_any = false;

    if (!is_allowed() || !read_given(place))
        return;
    for (size_t i = 0; i < MR_PLACE_WORDS; i++) {
        chosen.bits[i] = place->given.bits[i] & ~place->busy.bits[i];
        is_any |= chosen.bits[i] != 0;
    }
    /* Where none is better, what was chosen before is not kept for good. */
    if (!is_any && place->is_moved)
        move_back(place);
    if (is_any) {
        place->chosen = chosen;
        place->is_moved = write_mask(place->tid, &chosen);
    }
    place->return_ns = now_ns + RETURN_NS;
}

void mr_place_settle(struct mr_place *place, uint64_t now_ns)
{
    if (is_beside(place) && now_ns >= place->next_ns) {
        place->next_ns = now_ns + MOVE_MIN_NS;
        move(place, now_ns);
    } else if (place->is_moved && now_ns >= place->return_ns) {
        move_back(place);
    }
}
