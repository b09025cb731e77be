/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/x86_decode.h"

#include <stddef.h>
#include <string.h>

/*
 * What follows an opcode, one letter each: . nothing, m ModRM, b a byte, w two bytes,
 * z two or four by operand size, B and Z the same behind ModRM, v four or eight by
 * REX.W, a an address, e two and one, t ModRM and a byte if it is a test, T likewise z,
 * j jump of a byte, J jump of four, c call of four, x none in 64-bit mode; prefixes and
 * escapes never get here.
 */
static const char one_byte[257] = "mmmmbzxxmmmmbzxxmmmmbzxxmmmmbzxx"  /* 00 */
                                  "mmmmbzxxmmmmbzxxmmmmbzxxmmmmbzxx"  /* 20 */
                                  "xxxxxxxxxxxxxxxx................"  /* 40 */
                                  "xxxmxxxxzZbB....jjjjjjjjjjjjjjjj"  /* 60 */
                                  "BZxBmmmmmmmmmmmm..........x....."  /* 80 */
                                  "aaaa....bz......bbbbbbbbvvvvvvvv"  /* a0 */
                                  "BBw.xxBZe.w..bx.mmmmxxx.mmmmmmmm"  /* c0 */
                                  "jjjjbbbbcJxj....x.xx..tT......mm"; /* e0 */

static const char two_byte[257] = "mmmmx.......xmxBmmmmmmmmmmmmmmmm"  /* 00 */
                                  "mmmmxxxxmmmmmmmm........xxxxxxxx"  /* 20 */
                                  "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm"  /* 40 */
                                  "mmmmmmmmmmmmmmmmBBBBmmm.mmxxmmmm"  /* 60 */
                                  "JJJJJJJJJJJJJJJJmmmmmmmmmmmmmmmm"  /* 80 */
                                  "...mBmxx...mBmmmmmmmmmmmmmBmmmmm"  /* a0 */
                                  "mmBmBBBm........mmmmmmmmmmmmmmmm"  /* c0 */
                                  "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm"; /* e0 */

struct walk {
    const uint8_t *at, *end;
    bool has_66, has_67, is_wide;
    bool is_short; /* ran into the end */
};

static uint8_t next(struct walk *walk)
{
    if (walk->at < walk->end)
        return *walk->at++;
    walk->is_short = true;
    return 0;
}

static void skip(struct walk *walk, size_t size)
{
    if ((size_t)(walk->end - walk->at) < size)
        walk->is_short = true;
    else
        walk->at += size;
}

/* The ModRM byte, with SIB and displacement behind it. */
static uint8_t skip_modrm(struct walk *walk)
{
    uint8_t modrm = next(walk), mod = modrm >> 6, rm = modrm & 7, base = rm;

    if (mod == 3)
        return modrm;
    if (rm == 4)
        base = next(walk) & 7;
    if (mod == 1)
        skip(walk, 1);
    else if (mod == 2 || base == 5)
        skip(walk, 4);
    return modrm;
}

static size_t size_z(const struct walk *walk)
{
    return walk->has_66 && !walk->is_wide ? 2 : 4;
}

static void skip_test(struct walk *walk, size_t size)
{
    if ((skip_modrm(walk) >> 3 & 7) < 2)
        skip(walk, size);
}

static bool skip_operands(struct walk *walk, char operands)
{
    switch (operands) {
    case '.':
        return true;
    case 'm':
        (void)skip_modrm(walk);
        return true;
    case 'B':
        (void)skip_modrm(walk);
        skip(walk, 1);
        return true;
    case 'Z':
        (void)skip_modrm(walk);
        skip(walk, size_z(walk));
        return true;
    case 't':
        skip_test(walk, 1);
        return true;
    case 'T':
        skip_test(walk, size_z(walk));
        return true;
    case 'b':
    case 'j':
        skip(walk, 1);
        return true;
    case 'w':
        skip(walk, 2);
        return true;
    case 'e':
        skip(walk, 3);
        return true;
    case 'z':
        skip(walk, size_z(walk));
        return true;
    case 'v':
        skip(walk, walk->is_wide ? 8 : size_z(walk));
        return true;
    case 'a':
        skip(walk, walk->has_67 ? 4 : 8);
        return true;
    case 'c':
    case 'J':
        skip(walk, 4);
        return true;
    default:
        return false;
    }
}

/* Opcode maps 1 to 3 and what came later, behind a VEX, EVEX or XOP prefix. */
static bool skip_vector(struct walk *walk, unsigned map)
{
    uint8_t opcode = next(walk);

    if (map == 1 && opcode == 0x77) /* vzeroupper, vzeroall */
        return true;
    if (map == 0 || map > 10 || map == 4 || map == 7)
        return false;
    (void)skip_modrm(walk);
    if (map == 3 || map == 8 || (map == 1 && two_byte[opcode] == 'B'))
        skip(walk, 1);
    else if (map == 10)
        skip(walk, 4);
    return true;
}

static bool is_prefix(uint8_t byte)
{
    return byte == 0x66 || byte == 0x67 || byte == 0xf0 || byte == 0xf2 || byte == 0xf3 ||
           byte == 0x2e || byte == 0x36 || byte == 0x3e || byte == 0x26 || byte == 0x64 ||
           byte == 0x65;
}

static uint8_t skip_prefixes(struct walk *walk)
{
    uint8_t byte = next(walk);

    while (is_prefix(byte) && !walk->is_short) {
        walk->has_66 |= byte == 0x66;
        walk->has_67 |= byte == 0x67;
        byte = next(walk);
    }
    if (byte >= 0x40 && byte <= 0x4f) {
        walk->is_wide = byte & 8;
        byte = next(walk);
    }
    return byte;
}

static bool skip_escaped(struct walk *walk, char *operands)
{
    uint8_t opcode = next(walk);

    if (opcode == 0x38 || opcode == 0x3a) {
        (void)next(walk);
        return skip_operands(walk, opcode == 0x3a ? 'B' : 'm');
    }
    *operands = two_byte[opcode];
    return skip_operands(walk, *operands);
}

static bool skip_rest(struct walk *walk, uint8_t opcode, char *operands)
{
    switch (opcode) {
    case 0x0f:
        return skip_escaped(walk, operands);
    case 0xc5:
        skip(walk, 1);
        return skip_vector(walk, 1);
    case 0xc4: {
        unsigned map = next(walk) & 0x1f;

        skip(walk, 1);
        return map <= 3 && skip_vector(walk, map);
    }
    case 0x62: {
        unsigned map = next(walk) & 7;

        skip(walk, 2);
        return skip_vector(walk, map);
    }
    default:
        if (opcode == 0x8f && walk->at < walk->end && (*walk->at & 0x1f) >= 8) {
            unsigned map = next(walk) & 0x1f;

            skip(walk, 1);
            return skip_vector(walk, map);
        }
        *operands = one_byte[opcode];
        return skip_operands(walk, *operands);
    }
}

static int32_t signed_at(const uint8_t *at, size_t size)
{
    int32_t value;

    if (size == 1)
        return (int8_t)*at;
    memcpy(&value, at, sizeof(value));
    return value;
}

bool mr_x86_decode(const uint8_t *at, const uint8_t *end, struct mr_x86 *instruction)
{
    struct walk walk = {.at = at, .end = end};
    uint8_t opcode = skip_prefixes(&walk);
    const uint8_t *behind = walk.at; /* the opcode's first byte */
    char operands = '.';

    if (walk.is_short || !skip_rest(&walk, opcode, &operands) || walk.is_short ||
        walk.at - at > 15)
        return false;
    *instruction = (struct mr_x86){.size = (uint8_t)(walk.at - at)};
    if (operands == 'j' || operands == 'J' || operands == 'c') {
        instruction->kind = operands == 'c' ? MR_X86_CALL : MR_X86_JUMP;
        instruction->displacement =
            operands == 'j' ? signed_at(walk.at - 1, 1) : signed_at(walk.at - 4, 4);
    } else if (opcode == 0xff && *behind == 0x15) {
        instruction->kind = MR_X86_CALL_MEMORY;
        instruction->displacement = signed_at(walk.at - 4, 4);
    }
    return true;
}
