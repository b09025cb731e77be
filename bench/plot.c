/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/plot.h"

#include "base/compiler.h"

#include <math.h>

#define LABEL_WIDTH 330.0
#define PLOT_WIDTH 560.0
#define MARGIN 16.0
#define TOP 44.0
#define ROW_HEIGHT 24.0
#define BOX_HEIGHT 14.0
#define SHARES_HEIGHT 320.0
#define POINTS 240

struct drawing {
    const struct mr_plot *plot;
    struct mr_buffer *out;
    double first, last; /* powers of ten at the ends of the axis */
    size_t rows;
};

static const char *const colours[] = {"#4a7ba6", "#c0504d", "#6a9a3a", "#8064a2",
                                      "#d08a2e", "#2f9aa0", "#777777", "#b05a8c"};

static double x_of(const struct drawing *drawing, double value)
{
    double power = log10(value > 1 ? value : 1);

    power = fmin(fmax(power, drawing->first), drawing->last);
    return MARGIN + LABEL_WIDTH +
           (power - drawing->first) / (drawing->last - drawing->first) * PLOT_WIDTH;
}

static void survey(struct drawing *drawing)
{
    double least = INFINITY, most = 1;

    for (size_t i = 0; i < drawing->plot->count; i++) {
        const struct mr_spread *spread = drawing->plot->items[i].spread;

        if (spread->count == 0)
            continue;
        drawing->rows++;
        least = fmin(least, mr_spread_quantile(spread, 0.01));
        most = fmax(most, mr_spread_quantile(spread, 0.999));
    }
    drawing->first = isfinite(least) && least > 1 ? floor(log10(least)) : 0;
    drawing->last = fmax(ceil(log10(most)), drawing->first + 1);
}

static enum mr_status head(const struct drawing *drawing, double height)
{
    double width = 2 * MARGIN + LABEL_WIDTH + PLOT_WIDTH + 40;

    return mr_buffer_append_format(
        drawing->out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
        "width=\"%.0f\" height=\"%.0f\" font-family=\"sans-serif\" font-size=\"11\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
        "<text x=\"%.0f\" y=\"24\" font-size=\"15\" font-weight=\"bold\">%s</text>\n",
        width, height, width, height, MARGIN, drawing->plot->title);
}

static enum mr_status axis(const struct drawing *drawing, double bottom)
{
    enum mr_status status = MR_OK;

    for (int i = 0; drawing->first + i <= drawing->last && status == MR_OK; i++) {
        double power = drawing->first + i;
        double x = x_of(drawing, pow(10, power));

        status = mr_buffer_append_format(
            drawing->out,
            "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.0f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n"
            "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" fill=\"#444\">%.0f "
            "%s</text>\n",
            x, x, TOP, bottom, x, bottom + 14, pow(10, power), drawing->plot->unit);
    }
    return status;
}

static enum mr_status box(const struct drawing *drawing, const struct mr_plot_item *item,
                          double y)
{
    static const double shares[] = {0.01, 0.25, 0.5, 0.75, 0.99};
    double x[MR_ARRAY_COUNT(shares)], middle = y + BOX_HEIGHT / 2;

    for (size_t i = 0; i < MR_ARRAY_COUNT(shares); i++)
        x[i] = x_of(drawing, mr_spread_quantile(item->spread, shares[i]));
    return mr_buffer_append_format(
        drawing->out,
        "<text x=\"%.0f\" y=\"%.1f\">%s</text>\n"
        "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#111\"/>\n"
        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" "
        "stroke=\"#111\"/>\n"
        "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#111\" "
        "stroke-width=\"2\"/>\n",
        MARGIN, middle + 4, item->name, x[0], x[4], middle, middle, x[1], y,
        fmax(x[3] - x[1], 1), BOX_HEIGHT, colours[0], x[2], x[2], y, y + BOX_HEIGHT);
}

enum mr_status mr_plot_boxes(const struct mr_plot *plot, struct mr_buffer *out)
{
    struct drawing drawing = {.plot = plot, .out = out};
    double bottom, y = TOP + 4;
    enum mr_status status;

    survey(&drawing);
    bottom = TOP + 4 + ROW_HEIGHT * (double)drawing.rows;
    status = head(&drawing, bottom + 2 * MARGIN);
    if (status == MR_OK)
        status = axis(&drawing, bottom);
    for (size_t i = 0; i < plot->count && status == MR_OK; i++) {
        if (plot->items[i].spread->count == 0)
            continue;
        status = box(&drawing, &plot->items[i], y);
        y += ROW_HEIGHT;
    }
    return status == MR_OK ? mr_buffer_append_text(out, "</svg>\n") : status;
}

static enum mr_status curve(const struct drawing *drawing,
                            const struct mr_plot_item *item, size_t number)
{
    const char *colour = colours[number % MR_ARRAY_COUNT(colours)];
    enum mr_status status = mr_buffer_append_format(
        drawing->out,
        "<text x=\"%.0f\" y=\"%.1f\" fill=\"%s\">%s</text>\n"
        "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"",
        MARGIN, TOP + 14 + 16 * (double)number, colour, item->name, colour);

    for (int i = 0; i <= POINTS && status == MR_OK; i++) {
        double value =
            pow(10, drawing->first + (drawing->last - drawing->first) * i / POINTS);
        double share = mr_spread_share(item->spread, value);

        status = mr_buffer_append_format(drawing->out, "%.1f,%.1f ", x_of(drawing, value),
                                         TOP + SHARES_HEIGHT * (1 - share));
    }
    return status == MR_OK ? mr_buffer_append_text(drawing->out, "\"/>\n") : status;
}

static enum mr_status share_lines(const struct drawing *drawing)
{
    enum mr_status status = MR_OK;

    for (int i = 0; i <= 4 && status == MR_OK; i++) {
        double y = TOP + SHARES_HEIGHT * (1 - i / 4.0), x = MARGIN + LABEL_WIDTH;

        status = mr_buffer_append_format(
            drawing->out,
            "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n"
            "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\" fill=\"#444\">%d "
            "%%</text>\n",
            x, x + PLOT_WIDTH, y, y, x - 6, y + 4, 25 * i);
    }
    return status;
}

enum mr_status mr_plot_shares(const struct mr_plot *plot, struct mr_buffer *out)
{
    struct drawing drawing = {.plot = plot, .out = out};
    double height = SHARES_HEIGHT;
    size_t number = 0;
    enum mr_status status;

    survey(&drawing);
    height = fmax(height, 16.0 * (double)drawing.rows + 8);
    status = head(&drawing, TOP + height + 2 * MARGIN);
    if (status == MR_OK)
        status = axis(&drawing, TOP + SHARES_HEIGHT);
    if (status == MR_OK)
        status = share_lines(&drawing);
    for (size_t i = 0; i < plot->count && status == MR_OK; i++)
        if (plot->items[i].spread->count > 0)
            status = curve(&drawing, &plot->items[i], number++);
    return status == MR_OK ? mr_buffer_append_text(out, "</svg>\n") : status;
}
