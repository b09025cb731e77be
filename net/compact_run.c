/* SPDX-License-Identifier: Apache-2.0 */
/* The hot loop of who reads compact chunks; all that it leaves is mr_record_next()'s, which also says what is wrong. */
#include "net/bytes.h"
#include "net/compact.h"

/* Bytes that must be there: read at once, though two varints of at most two bytes are used. */
enum { READ_SIZE = 8 };

/*
 * The varint of one or two bytes at the low end of `bytes`, and its size; without asking which, as jitter makes that
 * unpredictable (7 ns an event became 4). 0: it is longer.
 */
static inline uint32_t short_varint(uint64_t bytes, uint32_t *value)
{
    uint32_t is_long = bytes >> 7 & 1;

    *value = ((uint32_t)bytes & 0x7f) | ((uint32_t)bytes >> 1 & 0x3f80 & (0 - is_long));
    return is_long & (uint32_t)(bytes >> 15) ? 0 : 1 + is_long;
}

uint32_t mr_record_next_run(struct mr_record_reader *reader, struct mr_record_event *out,
                            uint32_t capacity)
{
    struct mr_compact_stack *const stack = &reader->stack;
    const uint8_t *at = reader->at, *const end = reader->end;
    /* Without the last: mr_record_next() sees to it that nothing stands behind it. */
    uint32_t count = reader->left <= capacity ? reader->left - 1 : capacity, done = 0;
    uint32_t head, number, size, number_size;
    uint64_t ticks = reader->ticks;

    if (reader->encoding != MR_CHUNK_COMPACT || reader->left == 0)
        return 0;
    for (; done < count && end - at >= READ_SIZE; done++, at += size) {
        uint64_t bytes = mr_get_u64(at);

        size = short_varint(bytes, &head);
        if (size == 0 || (head & 3) > MR_COMPACT_EXIT_TOP)
            break;
        if (head & MR_COMPACT_EXIT_TOP) {
            number = mr_compact_top(stack);
            if (number == 0)
                break;
            stack->open[number]--;
            stack->depth--;
        } else {
            number_size = short_varint(bytes >> 8 * size, &number);
            if (number_size == 0 || number - 1 >= reader->site_count)
                break;
            size += number_size;
            mr_compact_enter(stack, (uint16_t)number);
        }
        ticks += head >> 2;
        out[done] = (struct mr_record_event){.ticks = ticks,
                                             .site = reader->sites[number],
                                             .is_exit = head & MR_COMPACT_EXIT_TOP};
    }
    reader->left -= done;
    reader->at = at;
    reader->ticks = ticks;
    return done;
}
