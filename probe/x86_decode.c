/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/x86_decode.h"

#include "base/compiler.h"

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

/* Room for whatever is read of bytes that are no instruction. */
#define READ_MAX 32
#define INSTRUCTION_MAX 15

/* Without prefixes but REX: a bit for ModRM, and the bytes behind it. */
#define HAS_MODRM 0x40
#define IS_PLAIN 0x80
static const uint8_t plain[128] = {
    ['.'] = IS_PLAIN,
    ['b'] = IS_PLAIN | 1,
    ['j'] = IS_PLAIN | 1,
    ['w'] = IS_PLAIN | 2,
    ['e'] = IS_PLAIN | 3,
    ['c'] = IS_PLAIN | 4,
    ['J'] = IS_PLAIN | 4,
    ['z'] = IS_PLAIN | 4,
    ['m'] = IS_PLAIN | HAS_MODRM,
    ['B'] = IS_PLAIN | HAS_MODRM | 1,
    ['Z'] = IS_PLAIN | HAS_MODRM | 4,
};

/* Behind ModRM: SIB and displacement, by mod and rm. A SIB of base 5 may have 4 more. */
static const uint8_t behind_modrm[4][8] = {
    {0, 0, 0, 0, 1, 4, 0, 0}, {1, 1, 1, 1, 2, 1, 1, 1}, {4, 4, 4, 4, 5, 4, 4, 4}, {0}};

/* Reads without looking at the end: there are READ_MAX bytes. */
struct walk {
    const uint8_t *at;
    bool has_66, has_67, is_wide;
};

static void skip_modrm(struct walk *walk)
{
    uint8_t modrm = *walk->at++, mod = modrm >> 6, rm = modrm & 7;

    if (mod == 0 && rm == 4 && (*walk->at & 7) == 5)
        walk->at += 4;
    walk->at += behind_modrm[mod][rm];
}

static size_t size_z(const struct walk *walk)
{
    return walk->has_66 && !walk->is_wide ? 2 : 4;
}

/* Of the group of f6 and f7 only the test has an operand behind ModRM. */
static void skip_test(struct walk *walk, size_t size)
{
    bool is_test = (*walk->at >> 3 & 7) < 2;

    skip_modrm(walk);
    walk->at += is_test ? size : 0;
}

static bool skip_operands(struct walk *walk, char operands)
{
    uint8_t shape = plain[(uint8_t)operands];

    switch (operands) {
    case 't':
        skip_test(walk, 1);
        return true;
    case 'T':
        skip_test(walk, size_z(walk));
        return true;
    case 'v':
        walk->at += walk->is_wide ? 8 : size_z(walk);
        return true;
    case 'a':
        walk->at += walk->has_67 ? 4 : 8;
        return true;
    case 'Z':
        skip_modrm(walk);
        walk->at += size_z(walk);
        return true;
    case 'z':
        walk->at += size_z(walk);
        return true;
    default:
        if (shape & HAS_MODRM)
            skip_modrm(walk);
        walk->at += shape & 7;
        return shape & IS_PLAIN;
    }
}

/* Opcode maps 1 to 3 and what came later, behind a VEX, EVEX or XOP prefix. */
static bool skip_vector(struct walk *walk, unsigned map)
{
    uint8_t opcode = *walk->at++;

    if (map == 1 && opcode == 0x77) /* vzeroupper, vzeroall */
        return true;
    if (map == 0 || map > 10 || map == 4 || map == 7)
        return false;
    skip_modrm(walk);
    if (map == 3 || map == 8 || (map == 1 && two_byte[opcode] == 'B'))
        walk->at += 1;
    else if (map == 10)
        walk->at += 4;
    return true;
}

static bool is_prefix(uint8_t byte)
{
    return byte == 0x66 || byte == 0x67 || byte == 0xf0 || byte == 0xf2 || byte == 0xf3 ||
           byte == 0x2e || byte == 0x36 || byte == 0x3e || byte == 0x26 || byte == 0x64 ||
           byte == 0x65;
}

/* Returns the opcode's first byte. */
static uint8_t skip_prefixes(struct walk *walk)
{
    const uint8_t *start = walk->at;
    uint8_t byte = *walk->at++;

    while (is_prefix(byte) && walk->at - start < INSTRUCTION_MAX) {
        walk->has_66 |= byte == 0x66;
        walk->has_67 |= byte == 0x67;
        byte = *walk->at++;
    }
    if (byte >= 0x40 && byte <= 0x4f) {
        walk->is_wide = byte & 8;
        byte = *walk->at++;
    }
    return byte;
}

static bool skip_escaped(struct walk *walk, char *operands)
{
    uint8_t opcode = *walk->at++;

    if (opcode == 0x38 || opcode == 0x3a) {
        walk->at++;
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
        walk->at++;
        return skip_vector(walk, 1);
    case 0xc4: {
        unsigned map = *walk->at & 0x1f;

        walk->at += 2;
        return map <= 3 && skip_vector(walk, map);
    }
    case 0x62: {
        unsigned map = *walk->at & 7;

        walk->at += 3;
        return skip_vector(walk, map);
    }
    default:
        if (opcode == 0x8f && (*walk->at & 0x1f) >= 8) {
            unsigned map = *walk->at & 0x1f;

            walk->at += 2;
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

/* `end`: of the instruction, its last operand before it. */
static void describe(struct mr_x86 *instruction, const uint8_t *at, const uint8_t *end,
                     char operands)
{
    *instruction = (struct mr_x86){.size = (uint8_t)(end - at)};
    if (operands == 'j' || operands == 'J' || operands == 'c') {
        instruction->kind = operands == 'c' ? MR_X86_CALL : MR_X86_JUMP;
        instruction->displacement =
            operands == 'j' ? signed_at(end - 1, 1) : signed_at(end - 4, 4);
    }
}

static bool decode_any(const uint8_t *at, struct mr_x86 *instruction)
{
    struct walk walk = {.at = at};
    uint8_t opcode = skip_prefixes(&walk);
    const uint8_t *behind = walk.at;
    char operands = '.';

    if (!skip_rest(&walk, opcode, &operands) || walk.at - at > INSTRUCTION_MAX)
        return false;
    describe(instruction, at, walk.at, operands);
    if (opcode == 0xff && *behind == 0x15) {
        instruction->kind = MR_X86_CALL_MEMORY;
        instruction->displacement = signed_at(walk.at - 4, 4);
    }
    return true;
}

/*
 * Nine of ten instructions have no prefix but REX and an opcode of one byte, or 0f and one
 * more. Branches, not sums: where the next instruction begins is then guessed by the
 * processor, and not waited for.
 */
static inline bool decode(const uint8_t *at, struct mr_x86 *instruction)
{
    const uint8_t *behind = at;
    uint8_t opcode = *behind++, shape;
    char operands;

    if ((opcode & 0xf0) == 0x40) {
        MR_KEEP_BRANCH(behind);
        opcode = *behind++;
    }
    operands = one_byte[opcode];
    if (opcode == 0x0f)
        operands = two_byte[*behind++];
    shape = plain[(uint8_t)operands];
    if (!(shape & IS_PLAIN) || opcode == 0xff || opcode == 0x8f)
        return decode_any(at, instruction);
    if (shape & HAS_MODRM) {
        uint8_t modrm = *behind++;

        if (modrm < 0xc0) {
            MR_KEEP_BRANCH(behind);
            if ((modrm & 0xc7) == 4 && (*behind & 7) == 5)
                behind += 4;
            behind += behind_modrm[modrm >> 6][modrm & 7];
        }
    }
    if (shape & 7) {
        MR_KEEP_BRANCH(behind);
        behind += shape & 7;
    }
    describe(instruction, at, behind, operands);
    return true;
}

bool mr_x86_decode(const uint8_t *at, const uint8_t *end, struct mr_x86 *instruction)
{
    uint8_t copy[READ_MAX] = {0};
    size_t room = (size_t)(end - at);

    if (room >= READ_MAX)
        return decode(at, instruction);
    memcpy(copy, at, room);
    return decode(copy, instruction) && instruction->size <= room;
}
