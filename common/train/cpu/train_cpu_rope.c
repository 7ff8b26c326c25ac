/**
 * @file train_cpu_rope.c
 * @brief Rotary positions, from the table of common/cpu; backwards they turn the other way.
 */
#include "common/cpu/parallel.h"
#include "common/train/cpu/train_cpu_internal.h"

struct rope {
    const struct cpu_rope_table *table;
    float *x;
    const int32_t *positions;
    size_t heads, stride;
    enum nn_rope_layout layout;
    bool back;
};

static void rope_rows(void *arguments, int thread, size_t begin, size_t end) {
    const struct rope *r = arguments;
    (void)thread;
    for (size_t row = begin; row < end; row++) {
        cpu_rope_token(r->table, r->x + row * r->stride, r->heads, (size_t)r->positions[row],
                       r->layout, r->back);
    }
}

enum status train_cpu_rope(void *context, void *x, const int32_t *positions, size_t rows,
                           size_t heads, size_t HS, size_t stride, float theta,
                           enum nn_rope_layout layout, bool back) {
    struct train_cpu *cpu = context;
    size_t last = 0;
    for (size_t row = 0; row < rows; row++) {
        last = (size_t)positions[row] > last ? (size_t)positions[row] : last;
    }
    if (rows == 0 || HS < 2) {
        return STATUS_OK;
    }
    TRY(cpu_rope_reserve(&cpu->rope, HS, theta, NULL, last + 1));
    struct rope r = {&cpu->rope, x, positions, heads, stride, layout, back};
    cpu_parallel_for(train_cpu_threads(cpu, rows * heads * HS, 4), rows, 16, rope_rows, &r);
    return STATUS_OK;
}
