#include "common/bench/device/kernel_totals.h"

#include <stdlib.h>
#include <string.h>

/* @return the row of a name, a new one if need be; NULL without memory */
static struct kernel_total *row_of(struct kernel_totals *t, const char *name) {
    for (size_t i = 0; i < t->count; i++) {
        if (strcmp(t->rows[i].name, name) == 0) {
            return &t->rows[i];
        }
    }
    struct kernel_total *rows = realloc(t->rows, (t->count + 1) * sizeof *rows);
    if (rows == NULL) {
        return NULL;
    }
    t->rows = rows;
    char *copy = strdup(name);
    if (copy == NULL) {
        return NULL;
    }
    rows[t->count] = (struct kernel_total){.name = copy};
    return &rows[t->count++];
}

void kernel_totals_add(void *totals, const char *name, double ms) {
    struct kernel_totals *t = totals;
    struct kernel_total *row = row_of(t, name);
    t->launches++;
    t->ms += ms;
    if (t->list != NULL) {
        fprintf(t->list, "%zu,\"%s\",%.6f\n", t->launches, name, ms);
    }
    if (row == NULL) {
        t->status = STATUS_OUT_OF_MEMORY;
        return;
    }
    row->launches++;
    row->ms += ms;
}

/* Longest first; equal times by name, so that the order is the same each time. */
static int by_falling_time(const void *a, const void *b) {
    const struct kernel_total *x = a, *y = b;
    int order = (x->ms < y->ms) - (x->ms > y->ms);
    return order != 0 ? order : strcmp(x->name, y->name);
}

/* The name is the last column, as names of templates are long. */
static void print_row(const struct kernel_total *row, double all, FILE *stream) {
    fprintf(stream, "  %9zu %11.4f %7.1f%%  %s\n", row->launches, row->ms,
            all > 0.0 ? 100.0 * row->ms / all : 0.0, row->name);
}

void kernel_totals_print(struct kernel_totals *t, size_t most, FILE *stream) {
    struct kernel_total others = {.name = "all others", .launches = t->launches, .ms = t->ms};
    if (t->count > 0) {
        qsort(t->rows, t->count, sizeof *t->rows, by_falling_time);
    }
    fprintf(stream, "  %9s %11s %8s  %s\n", "launches", "ms", "share", "kernel");
    for (size_t i = 0; i < t->count && i < most; i++) {
        print_row(&t->rows[i], t->ms, stream);
        others.launches -= t->rows[i].launches;
        others.ms -= t->rows[i].ms;
    }
    if (others.launches > 0) {
        print_row(&others, t->ms, stream);
    }
}

void kernel_totals_free(struct kernel_totals *t) {
    for (size_t i = 0; i < t->count; i++) {
        free(t->rows[i].name);
    }
    free(t->rows);
    *t = (struct kernel_totals){0};
}
