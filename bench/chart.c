/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/chart.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LABEL_WIDTH 250.0 /* at least; the longest case makes it wider */
#define LETTER_WIDTH 6.2  /* of a case at 11 px, about */
#define PLOT_WIDTH 520.0
#define VALUE_WIDTH 110.0
#define MARGIN 16.0
#define ROW_HEIGHT 20.0
#define BAR_HEIGHT 13.0
#define GROUP_HEIGHT 28.0
#define TITLE_HEIGHT 44.0
#define GROUPS_MAX 64
#define GROUP_SIZE 32
#define TICKS_MAX 6
#define NUMBER_SIZE 32

struct drawing {
    const struct mr_chart *chart;
    const struct mr_results *results;
    struct mr_buffer *out;
    char groups[GROUPS_MAX][GROUP_SIZE];
    size_t group_count, row_count;
    double label_width;
    double top_value; /* at the right edge of the plot */
    double y;
};

/* Part `part` of a case's name, or "" for none. */
static void part_of(const char *name, int part, char out[GROUP_SIZE])
{
    size_t size;

    out[0] = '\0';
    if (part < 0)
        return;
    for (; part > 0 && name; part--) {
        name = strchr(name, '/');
        name = name ? name + 1 : NULL;
    }
    if (!name)
        return;
    size = strcspn(name, "/");
    size = size < GROUP_SIZE - 1 ? size : GROUP_SIZE - 1;
    memcpy(out, name, size);
    out[size] = '\0';
}

static bool is_drawn(const struct drawing *drawing, size_t index)
{
    const struct mr_result *item = &drawing->results->items[index];

    return isfinite(item->value.median) && item->value.median >= 0 &&
           strcmp(item->metric, drawing->chart->metric) == 0 &&
           mr_results_find(drawing->results, item->name, item->metric, NULL) == item;
}

static void note_group(struct drawing *drawing, const char *group)
{
    for (size_t i = 0; i < drawing->group_count; i++)
        if (strcmp(drawing->groups[i], group) == 0)
            return;
    if (drawing->group_count < GROUPS_MAX)
        (void)snprintf(drawing->groups[drawing->group_count++], GROUP_SIZE, "%s", group);
}

/* 1, 2 or 5 times a power of ten, for at most TICKS_MAX ticks. */
static double tick_step(double top)
{
    double step = pow(10, floor(log10(top / TICKS_MAX)));

    if (step * TICKS_MAX >= top)
        return step;
    if (2 * step * TICKS_MAX >= top)
        return 2 * step;
    return 5 * step * TICKS_MAX >= top ? 5 * step : 10 * step;
}

static void survey(struct drawing *drawing)
{
    double top = isfinite(drawing->chart->line) ? drawing->chart->line : 0;

    for (size_t i = 0; i < drawing->results->count; i++) {
        const struct mr_result *item = &drawing->results->items[i];
        char group[GROUP_SIZE];

        if (!is_drawn(drawing, i))
            continue;
        part_of(item->name, drawing->chart->group_part, group);
        note_group(drawing, group);
        drawing->row_count++;
        drawing->label_width =
            fmax(drawing->label_width, LETTER_WIDTH * (double)strlen(item->name) + 6);
        top = fmax(top, fmax(item->value.median, item->value.high));
    }
    drawing->top_value = top > 0 ? top * 1.02 : 1;
}

static double x_of(const struct drawing *drawing, double value)
{
    return MARGIN + drawing->label_width + PLOT_WIDTH * value / drawing->top_value;
}

static enum mr_status escape(struct mr_buffer *out, const char *text)
{
    enum mr_status status = MR_OK;

    for (; *text && status == MR_OK; text++)
        status = *text == '<'   ? mr_buffer_append_text(out, "&lt;")
                 : *text == '&' ? mr_buffer_append_text(out, "&amp;")
                 : *text == '>' ? mr_buffer_append_text(out, "&gt;")
                                : mr_buffer_append_byte(out, (uint8_t)*text);
    return status;
}

static enum mr_status label(struct drawing *drawing, double x, double y,
                            const char *class_name, const char *anchor, const char *text)
{
    enum mr_status status = mr_buffer_append_format(
        drawing->out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">", x,
        y, class_name, anchor);

    if (status == MR_OK)
        status = escape(drawing->out, text);
    return status == MR_OK ? mr_buffer_append_text(drawing->out, "</text>\n") : status;
}

static enum mr_status vertical(struct drawing *drawing, double x, double y1, double y2,
                               const char *class_name)
{
    return mr_buffer_append_format(
        drawing->out,
        "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x, x,
        y1, y2, class_name);
}

static enum mr_status draw_interval(struct drawing *drawing, const struct mr_stats *value)
{
    double middle = drawing->y + BAR_HEIGHT / 2;
    enum mr_status status;

    if (!isfinite(value->low) || !isfinite(value->high))
        return MR_OK;
    status = mr_buffer_append_format(
        drawing->out,
        "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" class=\"interval\"/>\n",
        x_of(drawing, value->low), x_of(drawing, value->high), middle, middle);
    if (status == MR_OK)
        status = vertical(drawing, x_of(drawing, value->low), middle - 3, middle + 3,
                          "interval");
    if (status == MR_OK)
        status = vertical(drawing, x_of(drawing, value->high), middle - 3, middle + 3,
                          "interval");
    return status;
}

/* Four digits or, where they do not reach to the point, all of a whole number. */
static void number_text(double value, char text[NUMBER_SIZE])
{
    bool is_large = fabs(value) >= 1e4 && fabs(value) < 1e15;

    (void)snprintf(text, NUMBER_SIZE, is_large ? "%.0f" : "%.4g", value);
}

static enum mr_status draw_bar(struct drawing *drawing, const struct mr_result *item)
{
    double x = MARGIN + drawing->label_width, baseline = drawing->y + BAR_HEIGHT - 2;
    char number[NUMBER_SIZE], text[64];
    enum mr_status status = label(drawing, x - 6, baseline, "case", "end", item->name);

    number_text(item->value.median, number);
    (void)snprintf(text, sizeof(text), "%s %s", number, drawing->chart->unit);
    if (status == MR_OK)
        status = mr_buffer_append_format(
            drawing->out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
            "class=\"bar\"/>\n",
            x, drawing->y, x_of(drawing, item->value.median) - x, BAR_HEIGHT);
    if (status == MR_OK)
        status = draw_interval(drawing, &item->value);
    if (status == MR_OK)
        status =
            label(drawing, x_of(drawing, fmax(item->value.median, item->value.high)) + 6,
                  baseline, "value", "start", text);
    drawing->y += ROW_HEIGHT;
    return status;
}

static enum mr_status draw_group(struct drawing *drawing, const char *name)
{
    char group[GROUP_SIZE];
    enum mr_status status = MR_OK;

    if (*name)
        status = label(drawing, MARGIN, drawing->y + GROUP_HEIGHT - 10, "group", "start",
                       name);
    drawing->y += *name ? GROUP_HEIGHT : 0;
    for (size_t i = 0; i < drawing->results->count && status == MR_OK; i++) {
        if (!is_drawn(drawing, i))
            continue;
        part_of(drawing->results->items[i].name, drawing->chart->group_part, group);
        if (strcmp(group, name) == 0)
            status = draw_bar(drawing, &drawing->results->items[i]);
    }
    return status;
}

static enum mr_status draw_axis(struct drawing *drawing, double bottom)
{
    double step = tick_step(drawing->top_value);
    enum mr_status status = MR_OK;

    for (int i = 0; i * step <= drawing->top_value && status == MR_OK; i++) {
        double value = i * step;
        char text[NUMBER_SIZE];

        number_text(value, text);
        status = vertical(drawing, x_of(drawing, value), TITLE_HEIGHT, bottom, "grid");
        if (status == MR_OK)
            status = label(drawing, x_of(drawing, value), bottom + 14, "value", "middle",
                           text);
    }
    if (status == MR_OK && isfinite(drawing->chart->line)) {
        double x = x_of(drawing, drawing->chart->line);

        status = vertical(drawing, x, TITLE_HEIGHT, bottom, "line");
        if (status == MR_OK)
            status = label(drawing, x, TITLE_HEIGHT - 4, "value", "middle",
                           drawing->chart->line_name);
    }
    return status;
}

static enum mr_status draw_head(struct drawing *drawing, double width, double height)
{
    enum mr_status status = mr_buffer_append_format(
        drawing->out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
        "width=\"%.0f\" height=\"%.0f\" font-family=\"sans-serif\" font-size=\"11\">\n"
        "<style>.title{font-size:15px;font-weight:bold}.group{font-weight:bold;"
        "font-size:12px}.value{fill:#444}.bar{fill:#4a7ba6}.grid{stroke:#ddd}"
        ".interval{stroke:#111}.line{stroke:#b03030;stroke-dasharray:4 3}</style>\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
        width, height, width, height);

    if (status == MR_OK)
        status =
            label(drawing, MARGIN, MARGIN + 8, "title", "start", drawing->chart->title);
    if (status == MR_OK && drawing->results->is_partial)
        status = label(drawing, MARGIN, MARGIN + 22, "value", "start",
                       "INTERRUPTED: this is what was measured until then.");
    return status;
}

enum mr_status mr_chart_draw(const struct mr_chart *chart,
                             const struct mr_results *results, struct mr_buffer *out)
{
    struct drawing drawing = {.chart = chart,
                              .results = results,
                              .out = out,
                              .label_width = LABEL_WIDTH,
                              .y = TITLE_HEIGHT + 4};
    double width, bottom;
    enum mr_status status;

    survey(&drawing);
    width = 2 * MARGIN + drawing.label_width + PLOT_WIDTH + VALUE_WIDTH;
    bottom = TITLE_HEIGHT + 4 + ROW_HEIGHT * (double)drawing.row_count;
    if (chart->group_part >= 0)
        bottom += GROUP_HEIGHT * (double)drawing.group_count;
    status = draw_head(&drawing, width, bottom + 2 * MARGIN);
    if (status == MR_OK)
        status = draw_axis(&drawing, bottom);
    for (size_t i = 0; i < drawing.group_count && status == MR_OK; i++)
        status = draw_group(&drawing, drawing.groups[i]);
    return status == MR_OK ? mr_buffer_append_text(out, "</svg>\n") : status;
}
