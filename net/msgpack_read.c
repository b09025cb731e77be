/* SPDX-License-Identifier: Apache-2.0 */
/* Specification: github.com/msgpack/msgpack/blob/master/spec.md */
#include "net/msgpack_read.h"

enum type { SCALAR, UINT, TEXT, BYTES, EXTENSION, ARRAY, MAP };

struct head {
    enum type type;
    uint64_t value; /* of a UINT; else bytes, objects or pairs that follow */
};

static bool take_be(struct mr_span *in, size_t size, uint64_t *value)
{
    struct mr_span bytes;

    if (!mr_span_take(in, size, &bytes))
        return false;
    *value = 0;
    for (size_t i = 0; i < size; i++)
        *value = *value << 8 | bytes.data[i];
    return true;
}

/* The first bytes 0xc0 .. 0xdf: type, and how many bytes of a number (0: none, `fixed` follows) come next. */
struct form {
    uint8_t type, number_size, fixed;
};

static const struct form forms[32] = {
    [0x00] = {SCALAR, 0, 0},    [0x02] = {SCALAR, 0, 0},    [0x03] = {SCALAR, 0, 0},
    [0x04] = {BYTES, 1, 0},     [0x05] = {BYTES, 2, 0},     [0x06] = {BYTES, 4, 0},
    [0x07] = {EXTENSION, 1, 0}, [0x08] = {EXTENSION, 2, 0}, [0x09] = {EXTENSION, 4, 0},
    [0x0a] = {SCALAR, 0, 4},    [0x0b] = {SCALAR, 0, 8},    [0x0c] = {UINT, 1, 0},
    [0x0d] = {UINT, 2, 0},      [0x0e] = {UINT, 4, 0},      [0x0f] = {UINT, 8, 0},
    [0x10] = {SCALAR, 0, 1},    [0x11] = {SCALAR, 0, 2},    [0x12] = {SCALAR, 0, 4},
    [0x13] = {SCALAR, 0, 8},    [0x14] = {EXTENSION, 0, 1}, [0x15] = {EXTENSION, 0, 2},
    [0x16] = {EXTENSION, 0, 4}, [0x17] = {EXTENSION, 0, 8}, [0x18] = {EXTENSION, 0, 16},
    [0x19] = {TEXT, 1, 0},      [0x1a] = {TEXT, 2, 0},      [0x1b] = {TEXT, 4, 0},
    [0x1c] = {ARRAY, 2, 0},     [0x1d] = {ARRAY, 4, 0},     [0x1e] = {MAP, 2, 0},
    [0x1f] = {MAP, 4, 0},
};

static bool take_form(struct mr_span *in, uint8_t first, struct head *head)
{
    const struct form *form = &forms[first & 0x1f];

    *head = (struct head){(enum type)form->type, form->fixed};
    if (first == 0xc1) /* never used, says the specification */
        return false;
    return form->number_size == 0 || take_be(in, form->number_size, &head->value);
}

static bool take_any_head(struct mr_span *in, struct head *head)
{
    uint8_t first;

    if (!mr_span_take_u8(in, &first))
        return false;
    if (first < 0x80)
        *head = (struct head){UINT, first};
    else if (first < 0x90)
        *head = (struct head){MAP, first & 0x0f};
    else if (first < 0xa0)
        *head = (struct head){ARRAY, first & 0x0f};
    else if (first < 0xc0)
        *head = (struct head){TEXT, first & 0x1f};
    else if (first < 0xe0)
        return take_form(in, first, head);
    else
        *head = (struct head){SCALAR, 0};
    return true;
}

/* As above, and what it says follows can be there: each object has a byte at least. */
static bool take_head(struct mr_span *in, struct head *head)
{
    if (!take_any_head(in, head))
        return false;
    switch (head->type) {
    case UINT:
        return true;
    case EXTENSION:
        head->value++; /* the byte of its type */
        return head->value <= in->size;
    case MAP:
        return head->value <= in->size / 2;
    default:
        return head->value <= in->size;
    }
}

static bool is_container(const struct head *head)
{
    return head->type == ARRAY || head->type == MAP;
}

/* Passes over what follows a head that is not of a container; take_head() has seen that it is there. */
static void skip_body(struct mr_span *in, const struct head *head)
{
    if (head->type != UINT)
        (void)mr_span_skip(in, head->value);
}

bool mr_msgpack_skip(struct mr_span *in)
{
    uint64_t left[MR_MSGPACK_DEPTH_MAX + 1] = {1}; /* objects to come, per level */
    uint32_t depth = 0;
    struct head head;

    for (;;) {
        for (; left[depth] == 0; depth--) {
            if (depth == 0)
                return true;
        }
        left[depth]--;
        if (!take_head(in, &head))
            return false;
        if (!is_container(&head)) {
            skip_body(in, &head);
        } else {
            if (++depth > MR_MSGPACK_DEPTH_MAX)
                return false;
            left[depth] = head.type == MAP ? 2 * head.value : head.value;
        }
    }
}

static bool take_head_of(struct mr_span *in, enum type type, uint64_t *value)
{
    struct head head;

    if (!take_head(in, &head) || head.type != type)
        return false;
    *value = head.value;
    return true;
}

bool mr_msgpack_uint(struct mr_span *in, uint64_t *value)
{
    return take_head_of(in, UINT, value);
}

bool mr_msgpack_text(struct mr_span *in, struct mr_span *text)
{
    uint64_t size;

    return take_head_of(in, TEXT, &size) && mr_span_take(in, size, text);
}

bool mr_msgpack_bytes(struct mr_span *in, struct mr_span *bytes)
{
    uint64_t size;

    return take_head_of(in, BYTES, &size) && mr_span_take(in, size, bytes);
}

static bool take_count(struct mr_span *in, enum type type, uint32_t *count)
{
    uint64_t value;

    if (!take_head_of(in, type, &value) || value > UINT32_MAX)
        return false;
    *count = (uint32_t)value;
    return true;
}

bool mr_msgpack_array(struct mr_span *in, uint32_t *count)
{
    return take_count(in, ARRAY, count);
}

bool mr_msgpack_map(struct mr_span *in, uint32_t *count)
{
    return take_count(in, MAP, count);
}
