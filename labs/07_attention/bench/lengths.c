/* Texts of different lengths, padded to the longest, and packed. */
#include <math.h>
#include <stdio.h>

#include "labs/07_attention/bench/trial.h"

enum { MOST_TEXTS = 64 };

/* One row of the table. */
struct row {
    const char *name;
    enum bench_form form;
    bool last; /* the ladder's last step, or the one before it */
};

static const struct row rows[] = {
    {"padded, every token", FORM_FULL, true},
    {"mask, the step before", FORM_MASKED, false},
    {"mask", FORM_MASKED, true},
    {"packed, the step before", FORM_PACKED, false},
    {"packed", FORM_PACKED, true},
};

static enum status report_row(const struct ladder_setup *setup, const struct bench_case *c,
                              const struct row *row, const char *step,
                              const struct bench_timing *timing, double first_ms,
                              struct error *error) {
    static const char *const forms[] = {"full", "masked", "packed"};
    char shape[96];
    const struct bench_shape *s = &c->shape;
    const struct bench_gpu gpu = bench_gpu_of(&setup->gpu);
    printf("  %-26s %10.4f %8.2fx\n", row->name, timing->median_ms, first_ms / timing->median_ms);
    snprintf(shape, sizeof shape, "b%zu h%zu s%zu d%zu, lengths drawn, %s", s->B, s->NH, s->T,
             s->HS, forms[row->form]);
    const struct bench_record record = {
        .lab = "07_attention",
        .subject = WARPBOOK_SUBJECT,
        .stage = step,
        .op = "attention_lengths",
        .shape = shape,
        .dtype = nn_dtype_name(s->dtype),
        .threads = 1,
        .gpu = &gpu,
        .timing = *timing,
        .bytes = bench_case_bytes(c),
        .flops = bench_flops(s, c->lengths),
        .peer_ratio = NAN,
    };
    return bench_append(&record, error);
}

/* Times one row's step on its problem and prints the row. first_ms: of the first row; 0: this one.
 */
static enum status measure_case(const struct ladder_setup *setup, struct bench_case *c,
                                const struct bench_shape *s, const int32_t *lengths,
                                const struct row *row, double *first_ms, struct error *error) {
    size_t count;
    struct bench_timing timing;
    const struct attention_step *steps = attention_ladder(&count);
    const struct attention_step *step = &steps[count - (row->last ? 1 : 2)];
    TRY(bench_case_create(c, s, row->form, row->form == FORM_FULL ? NULL : lengths, error));
    TRY(bench_case_time(setup, c, step, &timing, error));
    *first_ms = *first_ms > 0.0 ? *first_ms : timing.median_ms;
    return report_row(setup, c, row, step->name, &timing, *first_ms, error);
}

/* The table of one format. */
static enum status measure_rows(const struct ladder_setup *setup, const struct bench_shape *s,
                                const int32_t *lengths, struct error *error) {
    size_t count;
    double first_ms = 0.0;
    (void)attention_ladder(&count);
    printf("  %-26s %10s %9s\n", "form", "ms", "in all");
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        if (count > 1 || rows[r].last) {
            struct bench_case c = {0};
            enum status status = measure_case(setup, &c, s, lengths, &rows[r], &first_ms, error);
            bench_case_free(&c);
            TRY(status);
        }
    }
    return STATUS_OK;
}

enum status bench_lengths(const struct ladder_setup *setup, struct error *error) {
    static const enum nn_dtype dtypes[] = {NN_F32, NN_BF16};
    int32_t lengths[MOST_TEXTS];
    bool simt = setup->gpu.modelled;
    struct bench_shape s = {NN_F32, simt ? 3 : 16, 12, simt ? 192 : 512, 64, false};
    size_t tokens = 0;
    bench_draw_lengths(lengths, s.B, s.T);
    for (size_t b = 0; b < s.B; b++) {
        tokens += (size_t)lengths[b];
    }
    for (size_t i = 0; i < 2; i++) {
        s.dtype = dtypes[i];
        printf("\n%zu texts of up to %zu tokens, %.0f%% of the padded batch is text, %s\n", s.B,
               s.T, 100.0 * (double)tokens / (double)(s.B * s.T), nn_dtype_name(s.dtype));
        TRY(measure_rows(setup, &s, lengths, error));
    }
    return STATUS_OK;
}
