#include "grader/class/pages/board.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/folder.h"

const char *board_state(enum task_state state) {
    static const char *const names[] = {"waiting", "waiting", "graded", "not graded", "refused"};
    return names[state];
}

typedef void write_function(FILE *out, const struct board *board,
                            const struct collection *collection);

/* Makes it in memory, to appear whole. */
static enum status finish(const char *output, const char *name, FILE *out, char **text,
                          const size_t *size, struct error *error) {
    enum status status = fclose(out) == 0 ? folder_write(output, name, *text, *size, "page", error)
                                          : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    free(*text);
    return status;
}

static enum status write_table(const struct board *b, const struct collection *c, const char *name,
                               write_function *function, struct error *error) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    function(out, b, c);
    return finish(b->output, name, out, &text, &size, error);
}

static enum status write_page(const struct board *b, const struct board_entry *e,
                              const struct progress_of *of, const struct result *result,
                              const struct run_score *score, struct error *error) {
    char *text = NULL, name[64];
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    snprintf(name, sizeof name, "submissions/%06u.html", e->number);
    page_write(out, e, of, result, score);
    return finish(b->output, name, out, &text, &size, error);
}

static void summarise(struct board_entry *e, const struct result *r,
                      const struct run_score *score) {
    e->points = score->points;
    e->seconds = r->seconds;
    e->overhead_s = r->seconds - r->graded_s;
    for (size_t i = 0; i < LAB_COUNT; i++) {
        const struct lab_score *s = &score->labs[i];
        if (r->run.labs[i].lab == NULL) {
            continue;
        }
        e->overhead_s -= r->built[i].compile_s;
        e->labs[i] = (struct board_lab){.handed_in = true, .state = s->state, .points = s->points};
        if (s->parity_points > 0 && s->kernel != NULL && s->kernel->grade != NULL) {
            e->labs[i].speedup = s->kernel->grade->speedup;
        }
        bool timed = (s->kernel != NULL && s->kernel->grade != NULL) ||
                     (s->model != NULL && s->model->grade != NULL);
        if (timed) { /* else it may be what the machine is */
            snprintf(e->gpu, sizeof e->gpu, "%s", s->device);
        }
    }
}

static enum status take_result(const struct board *b, struct board_entry *e,
                               const struct progress_of *of, struct result *r,
                               struct run_score *score, struct error *error) {
    TRY(result_load(r, b->output, of->task.id, error));
    score_run(score, &r->run);
    summarise(e, r, score);
    return write_page(b, e, of, r, score, error);
}

static enum status take(const struct board *b, struct board_entry *e, const struct progress_of *of,
                        struct error *error) {
    if (of->state != TASK_GRADED) {
        return write_page(b, e, of, NULL, NULL, error);
    }
    struct result *r = calloc(1, sizeof *r);
    struct run_score *score = calloc(1, sizeof *score);
    enum status status = r != NULL && score != NULL
                             ? take_result(b, e, of, r, score, error)
                             : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    if (r != NULL) {
        result_free(r);
    }
    free(r);
    free(score);
    return status;
}

enum status board_show(struct board *b, const struct collection *c, struct error *error) {
    for (size_t i = 0; i < c->count; i++) {
        enum task_state state = c->tasks[i].state;
        if (!b->entries[i].graded && state != TASK_WAITS && state != TASK_RUNS) {
            TRY(take(b, &b->entries[i], &c->tasks[i], error));
            b->entries[i].graded = true;
        }
    }
    TRY(write_table(b, c, "results.csv", board_write_csv, error));
    TRY(write_table(b, c, "results.json", board_write_json, error));
    return write_table(b, c, "leaderboard.html", board_write_html, error);
}
