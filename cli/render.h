/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text for people: numbers with units at a fixed precision, and grids of aligned columns. Widths are
 * counted in characters (UTF-8 code points). Nothing here prints: it appends to a buffer. One thread.
 *
 *     static const struct mr_column columns[] = {{"self", MR_RIGHT}, {"function", MR_LEFT_CUT}};
 *     struct mr_grid grid;
 *     mr_grid_init(&grid, columns, MR_ARRAY_COUNT(columns));
 *     mr_grid_cell(&grid, "%s", mr_render_ns(1234567, text));        // "1.23 ms"
 *     mr_grid_cell(&grid, "%s", "sqlite3VdbeExec");
 *     mr_grid_render(&grid, 100, &out);                              // takes at most 100 columns
 *     mr_grid_fini(&grid);
 */
#ifndef MR_CLI_RENDER_H
#define MR_CLI_RENDER_H

#include "base/buffer.h"
#include "base/compiler.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_RENDER_SIZE 64 /* of one rendered number */

/* Three significant digits and a unit: "0 ns", "999 ns", "1.23 µs", "12.3 ms", "123 s". */
const char *mr_render_ns(uint64_t ns, char text[MR_RENDER_SIZE]);
/* All digits, with commas: "1,234,567". */
const char *mr_render_count(uint64_t value, char text[MR_RENDER_SIZE]);
/* Three significant digits: "0 B", "999 B", "1.21 KiB", "64.0 MiB". */
const char *mr_render_bytes(uint64_t bytes, char text[MR_RENDER_SIZE]);
/*
 * One decimal: "12.3 %"; "0.0 %" only for zero: what would round to it is "< 0.1 %", and what would
 * round to 100 without being it is "> 99.9 %". "-" when whole is 0.
 */
const char *mr_render_share(uint64_t part, uint64_t whole, char text[MR_RENDER_SIZE]);
/*
 * A value known to lie in [low, high]: "1.23 ms ±1.1 %", or without the error where there is none.
 */
const char *mr_render_range_ns(double value, double low, double high,
                               char text[MR_RENDER_SIZE]);

enum mr_align {
    MR_RIGHT,
    MR_LEFT,
    MR_LEFT_CUT, /* shortened in its middle where the line would be too long */
};

struct mr_column {
    const char *title;
    enum mr_align align;
};

#define MR_GRID_COLUMNS_MAX 16
#define MR_CELL_WIDTH_MAX 500

struct mr_grid {
    const struct mr_column *columns;
    size_t column_count;
    char **cells; /* row by row; owned */
    size_t cell_count, cell_capacity;
    bool failed; /* no memory; render says so */
};

/* `columns` is borrowed until fini. */
void mr_grid_init(struct mr_grid *grid, const struct mr_column *columns, size_t count);
void mr_grid_fini(struct mr_grid *grid);
/*
 * The next cell; a row is full after as many as there are columns. What is not plain becomes '?'; of more than
 * MR_CELL_WIDTH_MAX characters both ends are kept.
 */
MR_PRINTF(2, 3) void mr_grid_cell(struct mr_grid *grid, const char *format, ...);
/*
 * A line of titles and one per row; columns whose cells are all empty are left out. Where a line would be longer than
 * `width` (0: any), MR_LEFT_CUT columns are cut, down to 16 characters. The buffer's failures.
 */
enum mr_status mr_grid_render(const struct mr_grid *grid, size_t width,
                              struct mr_buffer *out);

/*
 * Adds formatted text, such as names of other people's programs: what is not plain in it (base/text.h) becomes '?', but for a
 * line feed that ends the format. The buffer's failures.
 */
MR_PRINTF(2, 3)
enum mr_status mr_render_line(struct mr_buffer *out, const char *format, ...);
MR_PRINTF(2, 0)
enum mr_status mr_render_values(struct mr_buffer *out, const char *format,
                                va_list values);

/* Characters of UTF-8 text. */
size_t mr_text_width(const char *text);

/* Columns of the terminal that `fd` is, or 0: it is none, so nothing is cut. */
size_t mr_terminal_width(int fd);

#endif
