/**
 * @file bench.c
 * @brief Lab 07's bench: the steps of the ladder, lengths padded and packed, q, k and v in one
 *        product, and BERT.
 *
 * Built once for the learner's ladder and once for the solution's. What is timed is also checked,
 * at queries spread over the result, against the double oracle. Each row is appended to
 * results/bench.jsonl.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/flags.h"
#include "common/bench/bench_program.h"
#include "labs/07_attention/bench/parts.h"

/* The command line before its texts are read. */
struct options {
    const char *shape_text, *dtype_text;
    struct bench_shape shape;
    struct bench_setup setup;
};

static enum status parse_dtype(const char *text, enum nn_dtype *dtype, struct error *error) {
    for (int i = NN_F32; i <= NN_BF16; i++) {
        if (strcmp(text, nn_dtype_name((enum nn_dtype)i)) == 0) {
            *dtype = (enum nn_dtype)i;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_INVALID_ARGUMENT,
                     "--dtype is 'fp32', 'fp16' or 'bf16', not '%s'", text);
}

/* "B,NH,T,HS" */
static enum status parse_shape(const char *text, struct bench_shape *shape, struct error *error) {
    size_t *sizes[] = {&shape->B, &shape->NH, &shape->T, &shape->HS};
    bool good = bench_parse_sizes(text, sizes, 4);
    for (int i = 0; i < 4 && good; i++) {
        good = *sizes[i] <= 1 << 20;
    }
    if (!good || shape->HS > ATTENTION_MAX_HS) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--shape is B,NH,T,HS, four numbers from 1 on, HS at most %zu, not '%s'",
                         ATTENTION_MAX_HS, text);
    }
    return STATUS_OK;
}

/* On simt, what would take minutes is refused; on a GPU, what does not fit. */
static enum status check_room(const struct bench_setup *setup, const struct bench_shape *s,
                              struct error *error) {
    double flops = 4.0 * (double)s->B * (double)s->NH * (double)s->T * (double)s->T * (double)s->HS;
    double bytes = 4.0 * (double)s->B * (double)s->T * (double)s->NH * (double)s->HS *
                   (double)nn_dtype_bytes(s->dtype);
    if (bytes > 0.9 * (double)setup->gpu.memory_bytes) {
        return error_set(error, STATUS_OUT_OF_MEMORY,
                         "--shape needs %.1f GB on the GPU, which has %.1f", 1e-9 * bytes,
                         1e-9 * (double)setup->gpu.memory_bytes);
    }
    if (setup->gpu.modelled && flops > 4e9) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--shape has %.1f GFLOP: too many for simt, which does up to 4",
                         1e-9 * flops);
    }
    return STATUS_OK;
}

static enum status open_gpu(struct bench_setup *setup, struct error *error) {
    TRY(device_open(error));
    TRY(device_properties(&setup->gpu, error));
    return setup->shape != NULL ? check_room(setup, setup->shape, error) : STATUS_OK;
}

/* With --shape or --step only the ladder is run. */
static enum status run(void *options, struct error *error) {
    char text[400];
    struct bench_setup *setup = &((struct options *)options)->setup;
    TRY(open_gpu(setup, error));
    printf("%s: %s%s\n", WARPBOOK_SUBJECT, device_bench_headline(&setup->gpu, text, sizeof text),
           setup->gpu.modelled ? "" : "; L2 is flushed before each run");
    TRY(bench_ladder(setup, error));
    if (setup->shape == NULL && setup->step == NULL) {
        TRY(bench_lengths(setup, error));
        TRY(bench_projection(setup, error));
        TRY(bench_model(setup, error));
    }
    bench_print_recorded();
    return STATUS_OK;
}

/* What the flags say beyond their types. */
static enum status check(void *options, struct error *error) {
    struct options *o = options;
    TRY(parse_dtype(o->dtype_text, &o->shape.dtype, error));
    if (o->shape_text != NULL) {
        o->setup.shape = &o->shape;
        TRY(parse_shape(o->shape_text, &o->shape, error));
    }
    return o->setup.step != NULL ? bench_check_step(o->setup.step, error) : STATUS_OK;
}

int main(int argc, char **argv) {
    struct options o = {.dtype_text = "fp32"};
    const struct flag table[] = {
        {"shape", 's', FLAG_STRING, &o.shape_text, "B,NH,T,HS", "only the ladder, on this shape"},
        {"dtype", 'd', FLAG_STRING, &o.dtype_text, "TYPE", "of --shape: 'fp32', 'fp16', 'bf16'"},
        {"causal", 'c', FLAG_SWITCH, &o.shape.causal, NULL, "--shape: no query sees later keys"},
        {"step", 0, FLAG_STRING, &o.setup.step, "NAME", "only this step of the ladder"},
        {"all", 'a', FLAG_SWITCH, &o.setup.all, NULL, "also steps that take seconds a call"},
        {"quick", 'q', FLAG_SWITCH, &o.setup.quick, NULL, "fewer shapes, shorter runs"},
    };
    const struct flags flags = {
        .program = "bench",
        .positional = "",
        .summary = "compares the steps of lab 07 with each other, padded with packed, and in BERT",
        .table = table,
        .count = sizeof table / sizeof *table,
        .epilogue = "Without --shape and --step: the ladder on BERT's shapes and a long causal one "
                    "(on simt: small ones), lengths, the projection, BERT.",
    };
    const struct bench_program program = {.flags = &flags, .check = check, .run = run};
    return bench_program_main(&program, argc, argv, &o);
}
