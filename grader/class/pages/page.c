/* One submission: what its labs got, and what the compiler said. No script. */
#include <stdio.h>
#include <string.h>

#include "grader/class/pages/board.h"
#include "grader/report/format/format.h"

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>";

static const char more_style[] =
    "h1{overflow-wrap:anywhere}pre{background:var(--track);border-radius:6px;padding:10px;"
    "overflow-x:auto;font-size:13px;white-space:pre-wrap;overflow-wrap:anywhere}"
    "a{color:var(--bar)}a:focus-visible{outline:2px solid var(--bar);outline-offset:2px}\n";

static void print_head(FILE *out, const struct board_entry *e) {
    fputs(head, out);
    format_escaped(out, e->shown);
    fprintf(out, "</title>\n<style>\n%s%s</style>\n</head>\n<body>\n<main>\n", format_html_style,
            more_style);
    fprintf(out, "<p><a href=\"../leaderboard.html\">All submissions</a></p>\n<h1>");
    format_escaped(out, e->shown);
    fprintf(out, "</h1>\n");
}

static void print_said(FILE *out, const struct result *r) {
    for (size_t i = 0; i < LAB_COUNT; i++) {
        const struct built *b = &r->built[i];
        if (b->tried && b->said[0] != '\0') {
            fprintf(out, "<section><h2>%s: %s</h2>\n<pre>", lab_at(i)->name,
                    b->good ? "the compiler's warnings" : "it does not compile");
            format_escaped(out, b->said);
            fprintf(out, "</pre></section>\n");
        }
    }
}

/* A reason may name files and folders, and so the one who is not to be named. */
static const char *reason_of(const struct board_entry *e, const struct progress_of *of) {
    if (strcmp(e->shown, of->task.name) != 0) {
        return "The reason is in the teacher's table.";
    }
    return of->task.refused[0] != '\0' ? of->task.refused : of->why;
}

void page_write(FILE *out, const struct board_entry *e, const struct progress_of *of,
                const struct result *result, const struct run_score *score) {
    print_head(out, e);
    if (result == NULL) {
        fprintf(out, "<p class=\"sub\">%s</p>\n<section><p class=\"why\">", board_state(of->state));
        format_escaped(out, reason_of(e, of));
        fprintf(out, "</p></section>\n");
    } else {
        fprintf(out,
                "<p class=\"sub\">%d points; graded in %.1f s; what is modelled was not measured "
                "on a GPU</p>\n",
                score->points, result->seconds);
        format_html_labs(out, &result->run, score);
        print_said(out, result);
    }
    fprintf(out, "</main>\n</body>\n</html>\n");
}
