/*
 * One page: a bar of points for each lab, and each speedup on a line with the marks it must pass.
 * No script, no other file; light or dark as the reader's system is.
 */
#include <math.h>
#include <string.h>

#include "grader/report/format/format.h"

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<title>Warpbook report</title>\n<style>\n";

const char format_html_style[] =
    ":root{color-scheme:light dark;--bg:#fcfcfa;--fg:#1c1f24;--soft:#5d6570;--line:#d8dbe0;"
    "--card:#fff;--good:#1a7f4b;--half:#b7791f;--bad:#c0392b;--bar:#3b6fd4;--track:#e8eaee}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#14171b;--fg:#e6e8eb;--soft:#9aa3ae;"
    "--line:#30363d;--card:#1b1f24;--good:#4cc38a;--half:#e0b252;--bad:#f07167;--bar:#7aa2f7;"
    "--track:#2a3038}}\n"
    "body{margin:0;background:var(--bg);color:var(--fg);"
    "font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",\"DejaVu Sans\",sans-serif}\n"
    "main{max-width:1080px;margin:0 auto;padding:28px 20px 60px}\n"
    "h1{font-size:1.6rem;margin:0}p.sub{color:var(--soft);margin:.2rem 0 1.4rem}\n"
    "section{background:var(--card);border:1px solid var(--line);border-radius:10px;"
    "padding:16px 18px;margin:0 0 14px}\n"
    "h2{font-size:1.05rem;margin:0;display:inline}"
    ".state{font-size:.8rem;font-weight:600;border-radius:99px;padding:2px 10px;margin-left:8px;"
    "border:1px solid currentColor;white-space:nowrap}\n"
    ".pts{float:right;font-weight:600;font-variant-numeric:tabular-nums}\n"
    ".g{color:var(--good)}.h{color:var(--half)}.b{color:var(--bad)}.n{color:var(--soft)}\n"
    "section{overflow-x:auto}svg{display:block;width:100%;min-width:880px;height:auto;margin-top:"
    "8px}\n"
    "svg text{fill:var(--fg);font-size:12.5px}svg text.s{fill:var(--soft);font-size:11px}\n"
    ".why{margin:.6rem 0 0;overflow-wrap:anywhere}.next{margin:.6rem 0 0;color:var(--soft)}"
    "code{background:var(--track);border-radius:4px;padding:1px 5px;overflow-wrap:anywhere}\n";

static const char body[] = "</style>\n</head>\n<body>\n<main>\n";

static const char *class_of(enum lab_state state) {
    return state == STATE_PASSED || state == STATE_GOLD         ? "g"
           : state == STATE_SLOW                                ? "h"
           : state == STATE_NOT_BEGUN || state == STATE_NOT_RUN ? "n"
                                                                : "b";
}

enum { WIDTH = 1000, LEFT = 190, RIGHT = 880, ROW = 34 };

/* Speedups span orders of magnitude: the line from 0.5x to its end is logarithmic. */
static double place(double speedup, double end) {
    double share = log(speedup / 0.5) / log(end / 0.5);
    return LEFT + (RIGHT - LEFT) * (share < 0.0 ? 0.0 : share > 1.0 ? 1.0 : share);
}

static void mark(FILE *out, double speedup, double end, int y, const char *name) {
    double x = place(speedup, end);
    fprintf(out,
            "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"var(--soft)\" "
            "stroke-width=\"1.5\"/><text class=\"s\" x=\"%.1f\" y=\"%d\" "
            "text-anchor=\"middle\">%s %.3gx</text>\n",
            x, y - 2, x, y + 14, x, y - 5, name, speedup);
}

static void print_marks(FILE *out, const struct row_score *r, double end, int y) {
    bool steps = r->steps.good > 0.0;
    mark(out, r->steps.pass, end, y, "pass");
    /* Names need room: good's is left out where it would lie on another's. */
    double good = steps ? place(r->steps.good, end) : 0.0;
    if (steps && good - place(r->steps.pass, end) > 70.0 &&
        place(r->steps.gold, end) - good > 70.0) {
        mark(out, r->steps.good, end, y, "good");
    }
    if (steps && place(r->steps.gold, end) - place(r->steps.pass, end) > 70.0) {
        mark(out, r->steps.gold, end, y, "gold");
    }
}

static void print_speedup(FILE *out, const struct row_score *r, int y) {
    char text[32];
    double top = fmax(r->steps.pass, r->steps.gold);
    double end = 1.6 * fmax(top, r->grade->speedup);
    double x = r->grade->speedup > 0.0 ? place(r->grade->speedup, end) : LEFT;
    bool reached = r->grade->speedup >= r->steps.pass;
    fprintf(out,
            "<text x=\"0\" y=\"%d\">%s</text><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"12\" "
            "rx=\"3\" fill=\"var(--track)\"/><rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"12\" "
            "rx=\"3\" fill=\"%s\"/>\n",
            y + 11, r->row->measure, LEFT, y, RIGHT - LEFT, LEFT, y, x - LEFT,
            reached ? "var(--bar)" : "var(--half)");
    print_marks(out, r, end, y);
    fprintf(out,
            "<text x=\"%d\" y=\"%d\">%s</text><text class=\"s\" x=\"%d\" y=\"%d\" "
            "text-anchor=\"end\">%d / %d</text>\n",
            RIGHT + 10, y + 11, format_speedup(r, text, sizeof text), WIDTH, y + 11, r->points,
            r->row->points);
}

static void print_counted(FILE *out, const struct row_score *r, int y) {
    const char *word = r->grade == NULL ? "no result" : verdict_name(r->grade->verdict);
    bool good = r->grade != NULL && r->grade->verdict == VERDICT_PASS;
    fprintf(out,
            "<text x=\"0\" y=\"%d\">%s</text><text x=\"%d\" y=\"%d\" class=\"s\">%s: %s</text>"
            "<text class=\"s\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%d / %d</text>\n",
            y + 11, r->row->measure, LEFT, y + 11, good ? "counted" : word, r->row->what, WIDTH,
            y + 11, r->points, r->row->points);
}

static void print_chart(FILE *out, const struct lab_score *s, const char *name) {
    int height = ROW * (int)(s->count + 1);
    fprintf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"speedups of %s\">\n", WIDTH,
            height, name);
    fprintf(out,
            "<text x=\"0\" y=\"25\">parity</text><text class=\"s\" x=\"%d\" y=\"25\">%s</text>"
            "<text class=\"s\" x=\"%d\" y=\"25\" text-anchor=\"end\">%d / %d</text>\n",
            LEFT,
            s->parity_points > 0          ? "right"
            : s->state == STATE_NOT_BEGUN ? "right, as the starter is"
                                          : "no points",
            WIDTH, s->parity_points, PARITY_POINTS);
    for (size_t i = 0; i < s->count; i++) {
        const struct row_score *r = &s->rows[i];
        int y = ROW * (int)(i + 1) + 16;
        if (r->grade != NULL && r->grade->timed && r->steps.pass > 0.0) {
            print_speedup(out, r, y);
        } else {
            print_counted(out, r, y);
        }
    }
    fprintf(out, "</svg>\n");
}

static void paragraph(FILE *out, const char *kind, const char *text) {
    if (text[0] != '\0') {
        fprintf(out, "<p class=\"%s\">", kind);
        format_escaped(out, text);
        fprintf(out, "</p>\n");
    }
}

static void print_lab(FILE *out, const struct lab_run *lab, const struct lab_score *s) {
    fprintf(out, "<section>\n<span class=\"pts\">%d / %d</span><h2>%s</h2>", s->points, LAB_POINTS,
            lab->lab->name);
    fprintf(out, "<span class=\"state %s\">%s</span> <span class=\"n\">", class_of(s->state),
            state_name(s->state));
    format_escaped(out, s->device);
    fprintf(out, "</span>\n");
    if (s->state != STATE_NOT_RUN) {
        print_chart(out, s, lab->lab->name);
    }
    paragraph(out, "why", s->why);
    paragraph(out, "why", s->explanation);
    paragraph(out, "n", s->bottleneck);
    fprintf(out, "<p class=\"next\">Next: <code>");
    format_escaped(out, s->next);
    fprintf(out, "</code></p>\n</section>\n");
}

/* All labs side by side: a column each, as high as its points. */
static void print_overview(FILE *out, const struct run *run, const struct run_score *score) {
    fprintf(out, "<section><svg viewBox=\"0 0 %d 190\" role=\"img\" aria-label=\"points\">\n",
            WIDTH);
    for (size_t i = 0; i < LAB_COUNT; i++) {
        const struct lab_score *s = &score->labs[i];
        if (run->labs[i].lab == NULL) {
            continue;
        }
        int x = 10 + WIDTH / LAB_COUNT * (int)i;
        const char *const colours[] = {"--bad", "--half", "--good"};
        int tone = s->state >= STATE_PASSED ? 2 : s->state >= STATE_WRONG && s->points > 0 ? 1 : 0;
        fprintf(out,
                "<rect x=\"%d\" y=\"30\" width=\"60\" height=\"120\" rx=\"4\" "
                "fill=\"var(--track)\"/><rect x=\"%d\" y=\"%.1f\" width=\"60\" height=\"%.1f\" "
                "rx=\"4\" fill=\"var(%s)\"/><text x=\"%d\" y=\"22\" text-anchor=\"middle\">%d"
                "</text><text class=\"s\" x=\"%d\" y=\"170\" text-anchor=\"middle\">%.2s</text>"
                "\n",
                x, x, 150.0 - 1.2 * s->points, 1.2 * s->points, colours[tone], x + 30, s->points,
                x + 30, run->labs[i].lab->name);
    }
    fprintf(out, "</svg></section>\n");
}

void format_html_labs(FILE *out, const struct run *run, const struct run_score *score) {
    for (size_t i = 0; i < LAB_COUNT; i++) {
        if (run->labs[i].lab != NULL) {
            print_lab(out, &run->labs[i], &score->labs[i]);
        }
    }
}

void format_html(FILE *out, const struct run *run, const struct run_score *score) {
    char warmups[32];
    fprintf(out, "%s%s%s", head, format_html_style, body);
    fprintf(out, "<h1>Warpbook: %d of %d points</h1>\n<p class=\"sub\">%s%s", score->points,
            score->most, run->subject, run->commit[0] != '\0' ? ", commit " : "");
    format_escaped(out, run->commit);
    if (format_warmups(run, warmups, sizeof warmups) != NULL) {
        fprintf(out, "; %s warm-ups done", warmups);
    }
    fprintf(out, "; what is modelled was not measured on a GPU</p>\n");
    print_overview(out, run, score);
    format_html_labs(out, run, score);
    fprintf(out, "</main>\n</body>\n</html>\n");
}
