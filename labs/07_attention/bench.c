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
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "labs/07_attention/bench_parts.h"

const char *bench_verb(const struct bench_setup *setup) {
    return setup->gpu.modelled ? "modelled" : "measured";
}

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
    const char *at = text;
    bool good = true;
    for (int i = 0; i < 4 && good; i++) {
        char *end;
        long value = strtol(at, &end, 10);
        good = *at >= '1' && *at <= '9' && value >= 1 && value <= 1 << 20 &&
               *end == (i < 3 ? ',' : '\0');
        *sizes[i] = good ? (size_t)value : 0;
        at = end + 1;
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

static enum status run(struct bench_setup *setup, struct error *error) {
    char text[400], path[1024];
    enum status status = device_open(error);
    if (status == STATUS_OK) {
        status = device_properties(&setup->gpu, error);
    }
    if (status == STATUS_OK && setup->shape != NULL) {
        status = check_room(setup, setup->shape, error);
    }
    if (status == STATUS_OK) {
        printf("%s: %s%s\n", WARPBOOK_SUBJECT,
               device_bench_headline(&setup->gpu, text, sizeof text),
               setup->gpu.modelled ? "" : "; L2 is flushed before each run");
        status = bench_ladder(setup, error);
    }
    bool parts = setup->shape == NULL && setup->step == NULL;
    if (status == STATUS_OK && parts) {
        status = bench_lengths(setup, error);
    }
    if (status == STATUS_OK && parts) {
        status = bench_projection(setup, error);
    }
    if (status == STATUS_OK && parts) {
        status = bench_model(setup, error);
    }
    if (status == STATUS_OK) {
        printf("\nrecorded in %s\n", bench_results_path("bench.jsonl", path, sizeof path));
    }
    return status;
}

/* What the flags say beyond their types. */
static enum status check_setup(struct bench_setup *setup, const struct arguments *arguments,
                               const char *shape_text, const char *dtype_text,
                               struct bench_shape *shape, struct error *error) {
    if (arguments->count > 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "unexpected argument '%s'; --help helps",
                         arguments->values[0]);
    }
    enum status status = parse_dtype(dtype_text, &shape->dtype, error);
    if (status == STATUS_OK && shape_text != NULL) {
        setup->shape = shape;
        status = parse_shape(shape_text, shape, error);
    }
    if (status == STATUS_OK && setup->step != NULL) {
        status = bench_check_step(setup->step, error);
    }
    return status;
}

/* Reads the command line into setup and *shape; *help: it was printed, nothing else is wanted. */
static enum status read_setup(int argc, char **argv, struct bench_setup *setup,
                              struct bench_shape *shape, bool *help, struct error *error) {
    const char *shape_text = NULL, *dtype_text = "fp32";
    const struct flag table[] = {
        {"shape", 's', FLAG_STRING, &shape_text, "B,NH,T,HS", "only the ladder, on this shape"},
        {"dtype", 'd', FLAG_STRING, &dtype_text, "TYPE", "of --shape: 'fp32', 'fp16', 'bf16'"},
        {"causal", 'c', FLAG_SWITCH, &shape->causal, NULL, "--shape: no query sees later keys"},
        {"step", 0, FLAG_STRING, &setup->step, "NAME", "only this step of the ladder"},
        {"all", 'a', FLAG_SWITCH, &setup->all, NULL, "also steps that take seconds a call"},
        {"quick", 'q', FLAG_SWITCH, &setup->quick, NULL, "fewer shapes, shorter runs"},
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
    struct arguments arguments = {.values = calloc((size_t)argc + 1, sizeof(char *))};
    enum status status = arguments.values != NULL
                             ? flags_parse(&flags, argc, argv, &arguments, error)
                             : STATUS_OUT_OF_MEMORY;
    *help = status == STATUS_OK && arguments.help;
    if (*help) {
        flags_help(&flags, stdout);
    } else if (status == STATUS_OK) {
        status = check_setup(setup, &arguments, shape_text, dtype_text, shape, error);
    }
    free(arguments.values);
    return status;
}

int main(int argc, char **argv) {
    struct bench_setup setup = {0};
    struct bench_shape shape = {0};
    struct error error = {0};
    bool help = false;
    file_enter_working_directory();
    /* Races are the parity test's business; without that search simt is several times as fast. */
    setenv("SIMT_CHECK", "bounds", 0);
    enum status status = read_setup(argc, argv, &setup, &shape, &help, &error);
    if (status == STATUS_OK && !help) {
        status = run(&setup, &error);
    }
    return status == STATUS_OK ? 0 : report_failure("bench", &error, status);
}
