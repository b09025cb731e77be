/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/render.h"

#include "base/assert.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define GAP 2      /* spaces between columns */
#define CUT_MIN 16 /* characters that a cut column keeps */
#define TITLE_SIZE 128
#define CELL_BYTES_MAX ((size_t)1 << 20)

/* Three significant digits: 1.23, 12.3, 123. `value` is below 999.5, or the unit is the last. */
static void put_value(double value, const char *unit, char text[MR_RENDER_SIZE])
{
    int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

    (void)snprintf(text, MR_RENDER_SIZE, "%.*f %s", decimals, value, unit);
}

static const char *put_scaled(double value, double step, const char *const *units,
                              size_t count, char text[MR_RENDER_SIZE])
{
    size_t at = 0;

    while (at + 1 < count && value >= 999.5) {
        value /= step;
        at++;
    }
    if (at == 0)
        (void)snprintf(text, MR_RENDER_SIZE, "%.0f %s", value, units[0]);
    else
        put_value(value, units[at], text);
    return text;
}

const char *mr_render_ns(uint64_t ns, char text[MR_RENDER_SIZE])
{
    static const char *const units[] = {"ns", "µs", "ms", "s"};

    return put_scaled((double)ns, 1000, units, MR_ARRAY_COUNT(units), text);
}

const char *mr_render_bytes(uint64_t bytes, char text[MR_RENDER_SIZE])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};

    return put_scaled((double)bytes, 1024, units, MR_ARRAY_COUNT(units), text);
}

const char *mr_render_count(uint64_t value, char text[MR_RENDER_SIZE])
{
    char digits[MR_RENDER_SIZE];
    size_t size = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, value);
    size_t at = 0;

    for (size_t i = 0; i < size; i++) {
        if (i > 0 && (size - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
    return text;
}

const char *mr_render_share(uint64_t part, uint64_t whole, char text[MR_RENDER_SIZE])
{
    double percent = whole ? 100.0 * (double)part / (double)whole : 0;

    if (whole == 0)
        (void)snprintf(text, MR_RENDER_SIZE, "-");
    else if (part > 0 && percent < 0.05)
        (void)snprintf(text, MR_RENDER_SIZE, "< 0.1 %%");
    else if (part < whole && percent >= 99.95)
        (void)snprintf(text, MR_RENDER_SIZE, "> 99.9 %%");
    else
        (void)snprintf(text, MR_RENDER_SIZE, "%.1f %%", percent);
    return text;
}

const char *mr_render_range_ns(double value, double low, double high,
                               char text[MR_RENDER_SIZE])
{
    double error = value > 0 ? 100 * fmax(value - low, high - value) / value : 0;
    char number[MR_RENDER_SIZE];

    mr_render_ns((uint64_t)llround(fmax(value, 0)), number);
    if (error < 0.05)
        (void)snprintf(text, MR_RENDER_SIZE, "%s", number);
    else
        (void)snprintf(text, MR_RENDER_SIZE, "%.16s ±%.*f %%", number,
                       error < 9.95 ? 1 : 0, fmin(error, 999));
    return text;
}

size_t mr_text_width(const char *text)
{
    size_t width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

enum mr_status mr_render_values(struct mr_buffer *out, const char *format, va_list values)
{
    size_t before = out->size, size = strlen(format);
    bool is_line = size > 0 && format[size - 1] == '\n';
    enum mr_status status = mr_buffer_append_values(out, format, values);

    if (status != MR_OK || out->size == before)
        return status;
    size = mr_text_make_plain((char *)out->data + before, out->size - before);
    mr_buffer_truncate(out, before + size);
    if (is_line)
        out->data[out->size - 1] = '\n';
    return MR_OK;
}

enum mr_status mr_render_line(struct mr_buffer *out, const char *format, ...)
{
    enum mr_status status;
    va_list values;

    va_start(values, format);
    status = mr_render_values(out, format, values);
    va_end(values);
    return status;
}

size_t mr_terminal_width(int fd)
{
    struct winsize size = {0};

    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void mr_grid_init(struct mr_grid *grid, const struct mr_column *columns, size_t count)
{
    MR_ASSERT(columns && count > 0 && count <= MR_GRID_COLUMNS_MAX);
    *grid = (struct mr_grid){.columns = columns, .column_count = count};
}

void mr_grid_fini(struct mr_grid *grid)
{
    for (size_t i = 0; i < grid->cell_count; i++)
        free(grid->cells[i]);
    free(grid->cells);
    *grid =
        (struct mr_grid){.columns = grid->columns, .column_count = grid->column_count};
}

static const char *skip_characters(const char *text, size_t count)
{
    while (*text && count > 0) {
        text++;
        while (((unsigned char)*text & 0xc0) == 0x80)
            text++;
        count--;
    }
    return text;
}

/* Both ends of a name tell more than its middle. */
static enum mr_status put_cut(const char *text, size_t width, struct mr_buffer *out)
{
    size_t head = (width - 1) / 2;
    size_t tail = width - 1 - head;
    const char *head_end = skip_characters(text, head);

    return mr_buffer_append_format(out, "%.*s…%s", (int)(head_end - text), text,
                                   skip_characters(text, mr_text_width(text) - tail));
}

/* The text as a cell, which the caller frees; NULL without memory. */
static char *copy_cell(struct mr_buffer *text)
{
    struct mr_buffer cut;
    char *copy = NULL;
    size_t plain = text->size ? mr_text_make_plain((char *)text->data, text->size) : 0;

    mr_buffer_truncate(text, plain);
    if (mr_buffer_append_byte(text, '\0') != MR_OK)
        return NULL;
    if (mr_text_width((const char *)text->data) <= MR_CELL_WIDTH_MAX)
        return strdup((const char *)text->data);
    mr_buffer_init(&cut, CELL_BYTES_MAX);
    if (put_cut((const char *)text->data, MR_CELL_WIDTH_MAX, &cut) == MR_OK &&
        mr_buffer_append_byte(&cut, '\0') == MR_OK)
        copy = strdup((const char *)cut.data);
    mr_buffer_fini(&cut);
    return copy;
}

static bool grow(struct mr_grid *grid)
{
    size_t capacity = grid->cell_capacity ? 2 * grid->cell_capacity : 64;
    char **cells;

    if (grid->cell_count < grid->cell_capacity)
        return true;
    cells = realloc(grid->cells, capacity * sizeof(*cells));
    if (!cells)
        return false;
    grid->cells = cells;
    grid->cell_capacity = capacity;
    return true;
}

void mr_grid_cell(struct mr_grid *grid, const char *format, ...)
{
    struct mr_buffer text;
    char *copy = NULL;
    va_list values;

    mr_buffer_init(&text, CELL_BYTES_MAX);
    va_start(values, format);
    if (mr_buffer_append_values(&text, format, values) == MR_OK)
        copy = copy_cell(&text);
    va_end(values);
    mr_buffer_fini(&text);
    if (!copy || !grow(grid)) {
        free(copy);
        grid->failed = true;
        return;
    }
    grid->cells[grid->cell_count++] = copy;
}

/* Natural width; 0 for a column whose cells are all empty, which is left out. */
static size_t natural_width(const struct mr_grid *grid, size_t column)
{
    size_t title = mr_text_width(grid->columns[column].title);
    size_t widest = 0;

    for (size_t i = column; i < grid->cell_count; i += grid->column_count) {
        size_t cell = mr_text_width(grid->cells[i]);

        widest = cell > widest ? cell : widest;
    }
    if (widest == 0 && grid->cell_count > 0)
        return 0;
    return widest > title ? widest : title;
}

/* Natural widths; then the widest cut column gives until the line fits. */
static void measure(const struct mr_grid *grid, size_t width, size_t *widths)
{
    size_t total = 0;

    for (size_t c = 0; c < grid->column_count; c++) {
        widths[c] = natural_width(grid, c);
        total += widths[c] ? widths[c] + (total ? GAP : 0) : 0;
    }
    while (width != 0 && total > width) {
        size_t widest = grid->column_count;

        for (size_t c = 0; c < grid->column_count; c++) {
            if (grid->columns[c].align == MR_LEFT_CUT && widths[c] > CUT_MIN &&
                (widest == grid->column_count || widths[c] > widths[widest]))
                widest = c;
        }
        if (widest == grid->column_count)
            return; /* no more to give: the line is too long */
        widths[widest]--;
        total--;
    }
}

static enum mr_status put_cell(const char *text, size_t width, enum mr_align align,
                               bool is_last, struct mr_buffer *out)
{
    size_t size = mr_text_width(text);
    int pad = size < width ? (int)(width - size) : 0;

    if (size > width)
        return put_cut(text, width, out);
    if (align == MR_RIGHT)
        return mr_buffer_append_format(out, "%*s%s", pad, "", text);
    return mr_buffer_append_format(out, "%s%*s", text, is_last ? 0 : pad, "");
}

/* A title may be a name, too. */
static enum mr_status put_title(const struct mr_column *column, size_t width,
                                bool is_last, struct mr_buffer *out)
{
    char title[TITLE_SIZE];
    int size = snprintf(title, sizeof(title), "%s", column->title);

    MR_ASSERT(size >= 0);
    title[mr_text_make_plain(title, strlen(title))] = '\0';
    return put_cell(title, width, column->align, is_last, out);
}

static enum mr_status put_row(const struct mr_grid *grid, const size_t *widths,
                              char *const *cells, struct mr_buffer *out)
{
    enum mr_status status = MR_OK;
    size_t last = grid->column_count - 1;
    bool is_first = true;

    while (last > 0 && widths[last] == 0)
        last--;
    for (size_t c = 0; status == MR_OK && c < grid->column_count; c++) {
        if (widths[c] == 0)
            continue;
        if (!is_first)
            status = mr_buffer_append_format(out, "%*s", GAP, "");
        if (status == MR_OK)
            status = cells ? put_cell(cells[c], widths[c], grid->columns[c].align,
                                      c == last, out)
                           : put_title(&grid->columns[c], widths[c], c == last, out);
        is_first = false;
    }
    return status == MR_OK ? mr_buffer_append_byte(out, '\n') : status;
}

enum mr_status mr_grid_render(const struct mr_grid *grid, size_t width,
                              struct mr_buffer *out)
{
    size_t widths[MR_GRID_COLUMNS_MAX];
    enum mr_status status;

    if (grid->failed)
        return MR_ENOMEM;
    MR_ASSERT(grid->cell_count % grid->column_count == 0);
    measure(grid, width, widths);
    status = put_row(grid, widths, NULL, out);
    for (size_t i = 0; status == MR_OK && i < grid->cell_count; i += grid->column_count)
        status = put_row(grid, widths, grid->cells + i, out);
    return status;
}
