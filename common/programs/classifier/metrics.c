#include "common/programs/classifier/metrics.h"

#include <stdlib.h>

#include "common/base/checked.h"

enum status metrics_create(struct metrics *metrics, size_t labels) {
    size_t cells;
    *metrics = (struct metrics){.labels = labels};
    if (!checked_multiply(labels, labels, &cells)) {
        return STATUS_OUT_OF_MEMORY;
    }
    metrics->confusion = calloc(cells > 0 ? cells : 1, sizeof *metrics->confusion);
    return metrics->confusion != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

static uint64_t cell(const struct metrics *metrics, size_t label, size_t answer) {
    return metrics->confusion[label * metrics->labels + answer];
}

void metrics_add(struct metrics *metrics, size_t label, size_t answer) {
    metrics->confusion[label * metrics->labels + answer]++;
}

uint64_t metrics_count(const struct metrics *metrics) {
    uint64_t count = 0;
    for (size_t i = 0; i < metrics->labels * metrics->labels; i++) {
        count += metrics->confusion[i];
    }
    return count;
}

static double ratio(uint64_t part, uint64_t whole) {
    return whole > 0 ? (double)part / (double)whole : 0.0;
}

double metrics_accuracy(const struct metrics *metrics) {
    uint64_t right = 0;
    for (size_t label = 0; label < metrics->labels; label++) {
        right += cell(metrics, label, label);
    }
    return ratio(right, metrics_count(metrics));
}

struct metrics_label metrics_of(const struct metrics *metrics, size_t label) {
    uint64_t labelled = 0, answered = 0;
    for (size_t other = 0; other < metrics->labels; other++) {
        labelled += cell(metrics, label, other);
        answered += cell(metrics, other, label);
    }
    uint64_t right = cell(metrics, label, label);
    return (struct metrics_label){
        .precision = ratio(right, answered),
        .recall = ratio(right, labelled),
        .f1 = ratio(2 * right, labelled + answered),
        .count = labelled,
        .answered = answered,
    };
}

double metrics_macro_f1(const struct metrics *metrics) {
    double sum = 0.0;
    size_t occurring = 0;
    for (size_t label = 0; label < metrics->labels; label++) {
        struct metrics_label m = metrics_of(metrics, label);
        sum += m.f1;
        occurring += m.count + m.answered > 0;
    }
    return occurring > 0 ? sum / (double)occurring : 0.0;
}

void metrics_free(struct metrics *metrics) {
    free(metrics->confusion);
    *metrics = (struct metrics){0};
}
