/* The plot: milliseconds of a token over the tokens of its text, both logarithmic. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/file.h"
#include "labs/09_kv_cache/bench/bench_internal.h"

/* Pixels. */
enum { WIDTH = 860, HEIGHT = 480, LEFT = 84, RIGHT = 640, TOP = 72, BOTTOM = 416 };

/* The axes: powers of two to the right, of ten upwards. */
struct axes {
    double right;     /* log2 of tokens, from 0 on */
    double low, high; /* log10 of ms */
};

static struct axes choose_axes(const struct bench_curve *curves, size_t count) {
    struct axes a = {.right = 1.0, .low = INFINITY, .high = -INFINITY};
    for (size_t c = 0; c < count; c++) {
        for (size_t i = 0; i < curves[c].count; i++) {
            a.right = fmax(a.right, log2((double)curves[c].tokens[i]));
            a.low = fmin(a.low, log10(curves[c].ms[i]));
            a.high = fmax(a.high, log10(curves[c].ms[i]));
        }
    }
    a.low = floor(a.low * 2.0 - 0.1) / 2.0;
    a.high = ceil(a.high * 2.0 + 0.1) / 2.0;
    return a;
}

static double x_of(const struct axes *a, size_t tokens) {
    return LEFT + (RIGHT - LEFT) * log2((double)tokens) / a->right;
}

static double y_of(const struct axes *a, double ms) {
    return BOTTOM - (BOTTOM - TOP) * (log10(ms) - a->low) / (a->high - a->low);
}

static void write_head(FILE *svg, const struct bench_setup *setup) {
    char text[400];
    fprintf(svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" role=\"img\" aria-label=\"time per token against position\">\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    fputs("<style>\n"
          "svg { color-scheme: light dark; font: 13px system-ui, sans-serif; }\n"
          ".back { fill: #ffffff; } text { fill: #1f2328; } .faint { fill: #59636e; }\n"
          ".grid { stroke: #d1d9e0; } polyline { stroke-width: 2; fill: none; }\n"
          ".anew { stroke: #bc4c00; } .keys { stroke: #8250df; } .kept { stroke: #0969da; }\n"
          ".anew-text { fill: #bc4c00; } .keys-text { fill: #8250df; }\n"
          ".kept-text { fill: #0969da; }\n"
          "@media (prefers-color-scheme: dark) {\n"
          ".back { fill: #0d1117; } text { fill: #f0f6fc; } .faint { fill: #9198a1; }\n"
          ".grid { stroke: #30363d; } .anew { stroke: #f0883e; } .keys { stroke: #ab7df8; }\n"
          ".kept { stroke: #58a6ff; } .anew-text { fill: #f0883e; }\n"
          ".keys-text { fill: #ab7df8; } .kept-text { fill: #58a6ff; }\n"
          "}\n</style>\n",
          svg);
    fprintf(svg, "<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n", WIDTH, HEIGHT);
    fprintf(svg,
            "<text x=\"%d\" y=\"28\" font-size=\"17\" font-weight=\"600\">Time per token, Llama2, "
            "%s, %s, %s</text>\n",
            LEFT, setup->shape, nn_dtype_name(setup->dtype), WARPBOOK_SUBJECT);
    fprintf(svg, "<text class=\"faint\" x=\"%d\" y=\"50\">%s</text>\n", LEFT,
            device_bench_headline(&setup->driver->gpu, text, sizeof text));
}

static void write_line(FILE *svg, double x1, double y1, double x2, double y2) {
    fprintf(svg, "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x1, y1,
            x2, y2);
}

static void write_axes(FILE *svg, const struct axes *a) {
    for (size_t tokens = 1; log2((double)tokens) <= a->right + 1e-9; tokens *= 2) {
        double x = x_of(a, tokens);
        write_line(svg, x, TOP, x, BOTTOM);
        fprintf(svg,
                "<text class=\"faint\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%zu</text>\n", x,
                BOTTOM + 20, tokens);
    }
    for (double decade = ceil(a->low); decade <= a->high; decade += 1.0) {
        double ms = pow(10.0, decade), y = y_of(a, ms);
        write_line(svg, LEFT, y, RIGHT, y);
        fprintf(svg, "<text class=\"faint\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g ms</text>\n",
                LEFT - 8, y + 4.0, ms);
    }
    fprintf(svg,
            "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">tokens of the text so far</text>\n",
            (LEFT + RIGHT) / 2, BOTTOM + 46);
}

static void write_curve(FILE *svg, const struct axes *a, const struct bench_curve *c) {
    fprintf(svg, "<polyline class=\"%s\" points=\"", c->class);
    for (size_t i = 0; i < c->count; i++) {
        fprintf(svg, "%.1f,%.1f ", x_of(a, c->tokens[i]), y_of(a, c->ms[i]));
    }
    fprintf(svg, "\"/>\n");
    for (size_t i = 0; i < c->count; i++) {
        fprintf(svg, "<circle class=\"%s-text\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>\n", c->class,
                x_of(a, c->tokens[i]), y_of(a, c->ms[i]));
    }
    double last = c->ms[c->count - 1];
    fprintf(svg, "<text class=\"%s-text\" x=\"%d\" y=\"%.1f\">%s: %.3g ms</text>\n", c->class,
            RIGHT + 8, y_of(a, last) + 4.0, c->name, last);
}

/* The whole plot as text. @return false without memory */
static bool draw(const struct bench_setup *setup, const struct bench_curve *curves, size_t count,
                 char **text, size_t *size) {
    FILE *svg = open_memstream(text, size);
    if (svg == NULL) {
        return false;
    }
    struct axes axes = choose_axes(curves, count);
    write_head(svg, setup);
    write_axes(svg, &axes);
    for (size_t i = 0; i < count; i++) {
        write_curve(svg, &axes, &curves[i]);
    }
    fputs("</svg>\n", svg);
    bool whole = ferror(svg) == 0;
    return fclose(svg) == 0 && whole;
}

enum status bench_plot(const struct bench_setup *setup, const struct bench_curve *curves,
                       size_t count, const char *path, struct error *error) {
    char *text = NULL;
    size_t size = 0;
    enum status status = draw(setup, curves, count, &text, &size)
                             ? file_write(path, text, size, error)
                             : error_set(error, STATUS_OUT_OF_MEMORY, "%s: out of memory", path);
    free(text);
    if (status == STATUS_OK) {
        printf("  drawn in %s\n", path);
    }
    return status;
}
