/**
 * @file roofline_plot.c
 * @brief The roofline plot, written as SVG text without a library.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/file.h"
#include "common/bench/roofline.h"

/* Pixels. */
enum { WIDTH = 860, HEIGHT = 520, LEFT = 84, RIGHT = 836, TOP = 72, BOTTOM = 456, LINE = 15 };

/* Range of both axes, in decades (powers of ten). */
struct axes {
    double left, right; /* log10 of FLOP/byte */
    double low, high;   /* log10 of FLOP/s */
};

/* Coordinates of a point, and the height of its label, which may have to move. */
struct label {
    const struct roofline_point *point;
    double x, y, text_y;
};

static double intensity(const struct roofline_point *p) {
    return p->flops / p->bytes;
}

static double rate(const struct roofline_point *p) {
    return 1e3 * p->flops / p->ms;
}

static bool is_positive(double value) {
    return isfinite(value) && value > 0.0;
}

static enum status check(const struct roofline_plot *plot, struct error *error) {
    if (!is_positive(plot->roofs.flops_per_s) || !is_positive(plot->roofs.bytes_per_s)) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "roofs of %g FLOP/s and %g bytes/s",
                         plot->roofs.flops_per_s, plot->roofs.bytes_per_s);
    }
    for (size_t i = 0; i < plot->count; i++) {
        const struct roofline_point *p = &plot->points[i];
        if (!is_positive(p->flops) || !is_positive(p->bytes) || !is_positive(p->ms)) {
            return error_set(error, STATUS_INVALID_ARGUMENT,
                             "point '%s' of a roofline: %g operations, %g bytes, %g ms", p->name,
                             p->flops, p->bytes, p->ms);
        }
    }
    return STATUS_OK;
}

/* Whole decades around the ridge and all points. */
static struct axes choose_axes(const struct roofline_plot *plot) {
    double ridge = log10(plot->roofs.flops_per_s / plot->roofs.bytes_per_s);
    struct axes a = {.left = floor(ridge - 1.0),
                     .right = ceil(ridge + 1.0),
                     .low = floor(log10(plot->roofs.flops_per_s) - 1.0),
                     .high = log10(plot->roofs.flops_per_s) + 0.15};
    for (size_t i = 0; i < plot->count; i++) {
        double x = log10(intensity(&plot->points[i])), y = log10(rate(&plot->points[i]));
        a.left = fmin(a.left, floor(x));
        a.right = fmax(a.right, ceil(x + 0.3));
        a.low = fmin(a.low, floor(y));
        a.high = fmax(a.high, y + 0.15);
    }
    return a;
}

static double x_of(const struct axes *a, double log_x) {
    return LEFT + (RIGHT - LEFT) * (log_x - a->left) / (a->right - a->left);
}

static double y_of(const struct axes *a, double log_y) {
    return BOTTOM - (BOTTOM - TOP) * (log_y - a->low) / (a->high - a->low);
}

/* Writes a caller's text; characters that XML reserves are escaped. */
static void write_escaped(FILE *svg, const char *text) {
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", svg);
            break;
        case '<':
            fputs("&lt;", svg);
            break;
        case '>':
            fputs("&gt;", svg);
            break;
        case '"':
            fputs("&quot;", svg);
            break;
        default:
            /* XML has no control characters. */
            fputc((unsigned char)*text < ' ' ? ' ' : *text, svg);
        }
    }
}

/* "50.1 TFLOP/s" */
static const char *format_rate(double flops_per_s, char *text, size_t size) {
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    size_t step = 0;
    while (flops_per_s >= 1000.0 && step + 1 < sizeof prefixes / sizeof *prefixes) {
        flops_per_s /= 1000.0;
        step++;
    }
    snprintf(text, size, "%.3g %sFLOP/s", flops_per_s, prefixes[step]);
    return text;
}

static void write_head(FILE *svg, const struct roofline_plot *plot) {
    fprintf(svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" role=\"img\" aria-label=\"",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    write_escaped(svg, plot->title);
    fputs("\">\n<style>\n"
          "svg { color-scheme: light dark; font: 13px system-ui, sans-serif; }\n"
          ".back { fill: #ffffff; } text { fill: #1f2328; } .faint { fill: #59636e; }\n"
          ".grid { stroke: #d1d9e0; } .roof { stroke: #bc4c00; stroke-width: 2; fill: none; }\n"
          ".roof-text { fill: #bc4c00; } .point { fill: #0969da; } .lead { stroke: #818b98; }\n"
          "@media (prefers-color-scheme: dark) {\n"
          ".back { fill: #0d1117; } text { fill: #f0f6fc; } .faint { fill: #9198a1; }\n"
          ".grid { stroke: #30363d; } .roof { stroke: #f0883e; } .roof-text { fill: #f0883e; }\n"
          ".point { fill: #58a6ff; } .lead { stroke: #656c76; }\n"
          "}\n</style>\n",
          svg);
    fprintf(svg, "<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n", WIDTH, HEIGHT);
    fprintf(svg, "<text x=\"%d\" y=\"28\" font-size=\"17\" font-weight=\"600\">", LEFT);
    write_escaped(svg, plot->title);
    fprintf(svg, "</text>\n<text class=\"faint\" x=\"%d\" y=\"50\">", LEFT);
    write_escaped(svg, plot->subtitle);
    fputs("</text>\n", svg);
}

static void write_line(FILE *svg, const char *class, double x1, double y1, double x2, double y2) {
    fprintf(svg, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class,
            x1, y1, x2, y2);
}

static void write_axes(FILE *svg, const struct axes *a) {
    char text[64];
    for (double decade = a->left; decade <= a->right; decade += 1.0) {
        double x = x_of(a, decade);
        write_line(svg, "grid", x, TOP, x, BOTTOM);
        fprintf(svg, "<text class=\"faint\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n",
                x, BOTTOM + 20, pow(10.0, decade));
    }
    for (double decade = ceil(a->low); decade <= a->high; decade += 1.0) {
        double y = y_of(a, decade);
        write_line(svg, "grid", LEFT, y, RIGHT, y);
        fprintf(svg, "<text class=\"faint\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                LEFT - 8, y + 4.0, format_rate(pow(10.0, decade), text, sizeof text));
    }
    fprintf(svg,
            "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">arithmetic intensity, FLOP per byte of "
            "memory</text>\n",
            (LEFT + RIGHT) / 2, BOTTOM + 46);
}

/* From the left edge up along the bandwidth, then level at the peak. */
static void write_roofs(FILE *svg, const struct axes *a, const struct roofline *roofs) {
    char text[64];
    double peak = log10(roofs->flops_per_s), slope = log10(roofs->bytes_per_s);
    double begin = fmax(a->left, a->low - slope); /* where the slope enters the picture */
    double level = y_of(a, peak);
    fprintf(svg, "<polyline class=\"roof\" points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\"/>\n",
            x_of(a, begin), y_of(a, begin + slope), x_of(a, peak - slope), level, (double)RIGHT,
            level);
    fprintf(svg,
            "<text class=\"roof-text\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s fp32</text>\n",
            RIGHT, level - 6.0, format_rate(roofs->flops_per_s, text, sizeof text));
    double x = x_of(a, 0.5 * (begin + peak - slope)), y = y_of(a, 0.5 * (begin + peak + slope));
    double angle = atan2(y_of(a, begin + slope) - level, x_of(a, peak - slope) - x_of(a, begin));
    fprintf(svg,
            "<text class=\"roof-text\" text-anchor=\"middle\" transform=\"translate(%.1f %.1f) "
            "rotate(%.1f) translate(0 -7)\">%.0f GB/s</text>\n",
            x, y, -180.0 / 3.14159265358979 * angle, 1e-9 * roofs->bytes_per_s);
}

static int compare_labels(const void *left, const void *right) {
    double a = ((const struct label *)left)->y, b = ((const struct label *)right)->y;
    return (a > b) - (a < b);
}

/* Sorts by height, then moves labels apart: down, and back up from the lower edge. */
static void place_labels(struct label *labels, size_t count) {
    double gap = count > 0 ? fmin(LINE, (double)(BOTTOM - TOP) / (double)count) : LINE;
    qsort(labels, count, sizeof *labels, compare_labels);
    double next = TOP;
    for (size_t i = 0; i < count; i++) {
        labels[i].text_y = fmax(labels[i].y, next);
        next = labels[i].text_y + gap;
    }
    next = BOTTOM - 4;
    for (size_t i = count; i-- > 0;) {
        labels[i].text_y = fmin(labels[i].text_y, next);
        next = labels[i].text_y - gap;
    }
}

static void write_label(FILE *svg, const struct label *label) {
    char text[64];
    bool to_the_left = label->x > RIGHT - 190;
    double side = to_the_left ? -1.0 : 1.0;
    write_line(svg, "lead", label->x, label->y, label->x + side * 22.0, label->text_y);
    fprintf(svg, "<circle class=\"point\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"/>\n", label->x,
            label->y);
    fprintf(svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", label->x + side * 26.0,
            label->text_y + 4.0, to_the_left ? "end" : "start");
    write_escaped(svg, label->point->name);
    fprintf(svg, ": %s</text>\n", format_rate(rate(label->point), text, sizeof text));
}

static void write_points(FILE *svg, const struct axes *a, const struct roofline_plot *plot,
                         struct label *labels) {
    for (size_t i = 0; i < plot->count; i++) {
        const struct roofline_point *p = &plot->points[i];
        labels[i] = (struct label){
            .point = p, .x = x_of(a, log10(intensity(p))), .y = y_of(a, log10(rate(p)))};
    }
    place_labels(labels, plot->count);
    for (size_t i = 0; i < plot->count; i++) {
        write_label(svg, &labels[i]);
    }
}

/* Writes the whole plot to *text; false without memory. */
static bool draw(const struct roofline_plot *plot, char **text, size_t *size) {
    struct label *labels = calloc(plot->count + 1, sizeof *labels);
    FILE *svg = labels != NULL ? open_memstream(text, size) : NULL;
    if (svg != NULL) {
        struct axes axes = choose_axes(plot);
        write_head(svg, plot);
        write_axes(svg, &axes);
        write_roofs(svg, &axes, &plot->roofs);
        write_points(svg, &axes, plot, labels);
        fputs("</svg>\n", svg);
    }
    free(labels);
    bool whole = svg != NULL && ferror(svg) == 0;
    return svg != NULL && fclose(svg) == 0 && whole;
}

enum status roofline_plot(const struct roofline_plot *plot, const char *path, struct error *error) {
    char *text = NULL;
    size_t size = 0;
    TRY(check(plot, error));
    enum status status = draw(plot, &text, &size)
                             ? file_write(path, text, size, error)
                             : error_set(error, STATUS_OUT_OF_MEMORY, "%s: out of memory", path);
    free(text);
    return status;
}
