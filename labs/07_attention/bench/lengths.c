/* Part (b) of the bench: texts of different lengths, padded to the longest, and packed. */
#include <math.h>
#include <stdio.h>

#include "labs/07_attention/bench/parts.h"

enum { MOST_TEXTS = 64 };

/* One row of the table. */
struct row {
    const char *what;
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

static enum status report_row(const struct bench_setup *setup, const struct bench_case *c,
                              const struct row *row, const char *step,
                              const struct bench_timing *timing, double first_ms,
                              struct error *error) {
    static const char *const forms[] = {"full", "masked", "packed"};
    char shape[96];
    const struct bench_shape *s = &c->shape;
    const struct bench_gpu gpu = bench_gpu_of(&setup->gpu);
    printf("  %-26s %10.4f %8.2fx\n", row->what, timing->median_ms, first_ms / timing->median_ms);
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
        .flops = bench_case_flops(c),
        .peer_ratio = NAN,
    };
    return bench_append(&record, error);
}

static enum status measure_row(const struct bench_setup *setup, const struct bench_shape *s,
                               const int32_t *lengths, const struct row *row, double *first_ms,
                               struct error *error) {
    size_t count;
    const struct attention_step *steps = attention_ladder(&count);
    const struct attention_step *step = &steps[count - (row->last ? 1 : 2)];
    struct bench_case c;
    struct bench_timing timing;
    enum status status =
        bench_case_create(&c, s, row->form, row->form == FORM_FULL ? NULL : lengths, error);
    if (status == STATUS_OK) {
        status = bench_case_time(setup, &c, step, &timing, error);
    }
    if (status == STATUS_OK) {
        *first_ms = *first_ms > 0.0 ? *first_ms : timing.median_ms;
        status = report_row(setup, &c, row, step->name, &timing, *first_ms, error);
    }
    bench_case_free(&c);
    return status;
}

enum status bench_lengths(const struct bench_setup *setup, struct error *error) {
    int32_t lengths[MOST_TEXTS];
    bool simt = setup->gpu.modelled;
    struct bench_shape s = {NN_F32, simt ? 3 : 16, 12, simt ? 192 : 512, 64, false};
    size_t count, tokens = 0;
    (void)attention_ladder(&count);
    bench_draw_lengths(lengths, s.B, s.T);
    for (size_t b = 0; b < s.B; b++) {
        tokens += (size_t)lengths[b];
    }
    enum status status = STATUS_OK;
    for (int i = 0; i < 2 && status == STATUS_OK; i++) {
        double first_ms = 0.0;
        s.dtype = i == 0 ? NN_F32 : NN_BF16;
        printf("\n%zu texts of up to %zu tokens, %.0f%% of the padded batch is text, %s\n", s.B,
               s.T, 100.0 * (double)tokens / (double)(s.B * s.T), nn_dtype_name(s.dtype));
        printf("  %-26s %10s %9s\n", "form", "ms", "in all");
        for (size_t r = 0; r < sizeof rows / sizeof *rows && status == STATUS_OK; r++) {
            if (count > 1 || rows[r].last) {
                status = measure_row(setup, &s, lengths, &rows[r], &first_ms, error);
            }
        }
    }
    return status;
}
