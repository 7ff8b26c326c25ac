/*
 * The leaderboard: one table, which a script of its own sorts and filters; without the script it is
 * sorted by points. No other file is loaded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grader/class/pages/board.h"
#include "grader/report/format/format.h"

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<title>Warpbook leaderboard</title>\n<style>\n";

static const char more_style[] =
    ".wide{overflow-x:auto;border:1px solid var(--line);border-radius:10px;"
    "background:var(--card)}\n"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:6px 10px;text-align:right;border-bottom:1px solid var(--line);"
    "white-space:nowrap}\n"
    "th.t,td.t{text-align:left}td.t{white-space:normal;overflow-wrap:anywhere;min-width:9em}\n"
    "th button{font:inherit;font-weight:600;color:inherit;background:none;border:0;padding:2px 0;"
    "cursor:pointer}\n"
    "th[aria-sort=ascending] button::after{content:' \\2191'}"
    "th[aria-sort=descending] button::after{content:' \\2193'}\n"
    "tbody tr:hover{background:var(--track)}a{color:var(--bar)}\n"
    "a:focus-visible,button:focus-visible,select:focus-visible,input:focus-visible,"
    ".wide:focus-visible{outline:2px solid var(--bar);outline-offset:2px}\n"
    "[hidden]{display:none!important}.choose{display:flex;flex-wrap:wrap;gap:8px 18px;margin:0 0 "
    "12px}"
    "select,input{font:inherit;color:var(--fg);background:var(--card);border:1px solid "
    "var(--line);border-radius:6px;padding:3px 6px;max-width:100%}\n"
    "@media(max-width:560px){main{padding:18px 10px 40px}th,td{padding:5px 6px;font-size:.86rem}"
    "td.t{min-width:6em}}td.gpu{min-width:14em}\n";

static const char script[] =
    "<script>\n"
    "'use strict';\n"
    "const body = document.querySelector('tbody'), heads = [...document.querySelectorAll('th')];\n"
    "const find = document.getElementById('find'), gpu = document.getElementById('gpu');\n"
    "const value = (row, at) => row.cells[at].dataset.v ?? row.cells[at].textContent;\n"
    "heads.forEach((head, at) => head.querySelector('button').addEventListener('click', () => {\n"
    "  const down = head.getAttribute('aria-sort') === 'descending' ||\n"
    "    (head.classList.contains('t') && head.getAttribute('aria-sort') !== 'ascending');\n"
    "  heads.forEach(h => h.removeAttribute('aria-sort'));\n"
    "  head.setAttribute('aria-sort', down ? 'ascending' : 'descending');\n"
    "  const rows = [...body.rows], number = !head.classList.contains('t');\n"
    "  rows.sort((a, b) => {\n"
    "    const x = value(a, at), y = value(b, at);\n"
    "    const order = number ? Number(x) - Number(y) : x.localeCompare(y);\n"
    "    return down ? order : -order;\n"
    "  });\n"
    "  body.append(...rows);\n"
    "}));\n"
    "const choose = () => {\n"
    "  const words = find.value.toLowerCase();\n"
    "  let shown = 0;\n"
    "  for (const row of body.rows) {\n"
    "    const fits = row.textContent.toLowerCase().includes(words) &&\n"
    "      (gpu.value === '' || row.dataset.gpu === gpu.value);\n"
    "    row.hidden = !fits;\n"
    "    shown += fits;\n"
    "  }\n"
    "  document.getElementById('shown').textContent = `${shown} shown`;\n"
    "};\n"
    "find.addEventListener('input', choose);\n"
    "gpu.addEventListener('change', choose);\n"
    "document.getElementById('choose').hidden = false;\n"
    "</script>\n";

/* Where each row stands: by points, then by number, as rank is given by points alone. */
struct place {
    const struct board_entry *entry;
    const struct progress_of *of;
};

static int compare(const void *a, const void *b) {
    const struct place *x = a, *y = b;
    int order = y->entry->points - x->entry->points;
    if (order == 0) {
        order = (y->of->state == TASK_GRADED) - (x->of->state == TASK_GRADED);
    }
    return order != 0 ? order : (int)x->entry->number - (int)y->entry->number;
}

static void print_gpus(FILE *out, const struct board *b) {
    fprintf(out, "<label>GPU <select id=\"gpu\"><option value=\"\">all</option>");
    for (size_t i = 0; i < b->count; i++) {
        const char *gpu = b->entries[i].gpu;
        bool told = gpu[0] == '\0';
        for (size_t j = 0; j < i && !told; j++) {
            told = strcmp(b->entries[j].gpu, gpu) == 0;
        }
        if (!told) {
            fprintf(out, "<option>");
            format_escaped(out, gpu);
            fprintf(out, "</option>");
        }
    }
    fprintf(out, "</select></label>");
}

static void print_heads(FILE *out, const struct board *b) {
    fprintf(out,
            "<thead><tr><th scope=\"col\"><button>#</button></th>"
            "<th scope=\"col\" class=\"t\"><button>submission</button></th>"
            "<th scope=\"col\" aria-sort=\"descending\"><button>points of %d</button></th>",
            b->most);
    for (size_t i = 0; i < LAB_COUNT; i++) {
        if (b->chosen[i]) {
            fprintf(out,
                    "<th scope=\"col\"><button>%.2s points</button></th>"
                    "<th scope=\"col\"><button>%.2s speedup</button></th>",
                    lab_at(i)->name, lab_at(i)->name);
        }
    }
    fprintf(out, "<th scope=\"col\" class=\"t\"><button>state</button></th>"
                 "<th scope=\"col\" class=\"t\"><button>GPU</button></th></tr></thead>\n");
}

static const char *state_of(const struct board *b, const struct place *p) {
    const char *state = board_state(p->of->state);
    size_t labs = 0;
    for (size_t i = 0; i < LAB_COUNT; i++) {
        labs += b->chosen[i];
        if (labs == 1 && b->chosen[i] && p->entry->labs[i].handed_in) {
            state = state_name(p->entry->labs[i].state);
        }
    }
    return labs == 1 ? state : board_state(p->of->state);
}

static void print_lab(FILE *out, const struct board_lab *l) {
    if (!l->handed_in) {
        fprintf(out, "<td data-v=\"-1\">–</td><td data-v=\"-1\">–</td>");
        return;
    }
    fprintf(out, "<td data-v=\"%d\">%d</td>", l->points, l->points);
    if (l->speedup > 0.0) {
        fprintf(out,
                l->speedup < 9.995 ? "<td data-v=\"%.6g\">%.2fx</td>"
                                   : "<td data-v=\"%.6g\">%.1fx</td>",
                l->speedup, l->speedup);
    } else {
        fprintf(out, "<td data-v=\"0\">–</td>");
    }
}

static void print_row(FILE *out, const struct board *b, const struct place *p, size_t rank) {
    fprintf(out, "<tr data-gpu=\"");
    format_escaped(out, p->entry->gpu);
    fprintf(out, "\"><td>%zu</td><td class=\"t\">", rank);
    if (p->entry->graded) {
        fprintf(out, "<a href=\"submissions/%06u.html\">", p->entry->number);
    }
    format_escaped(out, p->entry->shown);
    fprintf(out, "%s</td><td data-v=\"%d\"><b>%d</b></td>", p->entry->graded ? "</a>" : "",
            p->entry->points, p->entry->points);
    for (size_t i = 0; i < LAB_COUNT; i++) {
        if (b->chosen[i]) {
            print_lab(out, &p->entry->labs[i]);
        }
    }
    fprintf(out, "<td class=\"t\">%s</td><td class=\"t gpu\">", state_of(b, p));
    format_escaped(out, p->entry->gpu[0] != '\0' ? p->entry->gpu : "–");
    fprintf(out, "</td></tr>\n");
}

static void print_rows(FILE *out, const struct board *b, const struct collection *c) {
    struct place *places = calloc(c->count, sizeof *places);
    size_t rank = 0;
    for (size_t i = 0; places != NULL && i < c->count; i++) {
        places[i] = (struct place){.entry = &b->entries[i], .of = &c->tasks[i]};
    }
    if (places != NULL) {
        qsort(places, c->count, sizeof *places, compare);
    }
    for (size_t i = 0; places != NULL && i < c->count; i++) {
        if (i == 0 || places[i].entry->points != places[i - 1].entry->points) {
            rank = i + 1;
        }
        print_row(out, b, &places[i], rank);
    }
    free(places);
}

void board_write_html(FILE *out, const struct board *b, const struct collection *c) {
    size_t waiting = collection_count(c, TASK_WAITS) + collection_count(c, TASK_RUNS);
    fprintf(out, "%s%s%s</style>\n</head>\n<body>\n<main>\n<h1>Leaderboard</h1>\n", head,
            format_html_style, more_style);
    fprintf(out,
            "<p class=\"sub\">%zu submissions, %zu graded, %zu refused, %zu not graded, %zu "
            "waiting; speedups are over the starter, and what is modelled was not measured on a "
            "GPU</p>\n",
            c->count, collection_count(c, TASK_GRADED), collection_count(c, TASK_REFUSED),
            collection_count(c, TASK_GIVEN_UP), waiting);
    fprintf(out, "<div class=\"choose\" id=\"choose\" hidden><label>Find <input id=\"find\" "
                 "type=\"search\"></label>");
    print_gpus(out, b);
    fprintf(out, "<span id=\"shown\" class=\"n\" aria-live=\"polite\"></span></div>\n"
                 "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"leaderboard\">"
                 "<table>\n");
    print_heads(out, b);
    fprintf(out, "<tbody>\n");
    print_rows(out, b, c);
    fprintf(out, "</tbody>\n</table></div>\n%s</main>\n</body>\n</html>\n", script);
}
