/**
 * @file bench.c
 * @brief Lab 11's bench: the steps of the ladder, function by function, and training steps of BERT
 *        with each of them.
 *
 * Built once for the learner's ladder and once for the solution's. Every step is checked against
 * the double reference before it is timed. Each row is appended to results/bench.jsonl.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/flags.h"
#include "common/bench/bench_program.h"
#include "common/bench/device/device_bench.h"
#include "common/bench/device/device_peaks.h"
#include "labs/11_training/bench/parts.h"

enum {
    MOST_TEXTS = 1024,
    MOST_LENGTH = 4096,
    MOST_KERNELS = 1000,
    MOST_BATCH = 4096,
    MOST_HEADS = 1024
};
#define MOST_PARAMETERS ((size_t)1 << 40)

/* The command line before its texts are read. */
struct options {
    const char *shape_text, *op_text, *dtype_text;
    struct bench_shape shape;
    struct bench_setup setup;
};

static enum status parse_op(const char *text, int *op, struct error *error) {
    for (*op = 0; *op < BENCH_OPS; ++*op) {
        if (strcmp(text, bench_function_of((enum bench_op) * op)->flag) == 0) {
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_INVALID_ARGUMENT,
                     "--op is 'layernorm', 'attention' or 'adamw', not '%s'", text);
}

static enum status parse_dtype(const char *text, int *dtype, struct error *error) {
    static const enum nn_dtype dtypes[] = {NN_F32, NN_BF16};
    for (int i = 0; i < 2; i++) {
        *dtype = (int)dtypes[i];
        if (strcmp(text, nn_dtype_name(dtypes[i])) == 0) {
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_INVALID_ARGUMENT, "--dtype is 'fp32' or 'bf16', not '%s'", text);
}

/* What the contract takes, and for attention what the bench has memory for. Rows and parameters
   that memory holds are looked at later. */
static bool is_possible(const struct bench_shape *s) {
    const size_t *sizes = s->sizes;
    switch (s->op) {
    case BENCH_LAYERNORM:
        return sizes[0] <= TRAINING_MAX_ROWS && sizes[1] <= TRAINING_MAX_C;
    case BENCH_ATTENTION:
        return sizes[0] <= MOST_BATCH && sizes[1] <= MOST_HEADS && sizes[2] <= MOST_LENGTH &&
               sizes[3] <= TRAINING_MAX_HS && sizes[3] % 8 == 0;
    default:
        return sizes[0] <= MOST_PARAMETERS;
    }
}

/* The same in words. */
static void say_possible(enum bench_op op, char *text, size_t size) {
    switch (op) {
    case BENCH_LAYERNORM:
        snprintf(text, size, "ROWS up to %zu, C up to %zu", TRAINING_MAX_ROWS, TRAINING_MAX_C);
        break;
    case BENCH_ATTENTION:
        snprintf(text, size, "B up to %d, NH up to %d, T up to %d, HS a multiple of 8 up to %zu",
                 MOST_BATCH, MOST_HEADS, MOST_LENGTH, TRAINING_MAX_HS);
        break;
    default:
        snprintf(text, size, "up to %zu", MOST_PARAMETERS);
    }
}

static enum status parse_shape(struct options *o, struct error *error) {
    if (o->setup.op < 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--shape wants --op");
    }
    o->shape.op = (enum bench_op)o->setup.op;
    const struct bench_function *function = bench_function_of(o->shape.op);
    size_t *const sizes[] = {&o->shape.sizes[0], &o->shape.sizes[1], &o->shape.sizes[2],
                             &o->shape.sizes[3]};
    if (!bench_parse_sizes(o->shape_text, sizes, function->sizes) || !is_possible(&o->shape)) {
        char limits[120];
        say_possible(o->shape.op, limits, sizeof limits);
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--shape of --op %s is %s, numbers from 1 on, %s; not '%s'",
                         function->flag, function->example, limits, o->shape_text);
    }
    o->setup.shape = &o->shape;
    return STATUS_OK;
}

/* The last step is the one that training runs. */
static enum status check_step(struct bench_setup *setup, struct error *error) {
    size_t count;
    const struct training_step *steps = training_ladder(&count);
    if (setup->step == NULL) {
        return STATUS_OK;
    }
    if (strcmp(setup->step, "last") == 0) {
        setup->step = steps[count - 1].name;
    }
    return bench_check_step(setup->step, error);
}

static enum status check_model(struct options *o, struct error *error) {
    struct bench_setup *setup = &o->setup;
    const struct {
        const char *name;
        int value, most;
    } numbers[] = {{"batch-size", setup->batch, MOST_TEXTS},
                   {"max-length", setup->length, MOST_LENGTH},
                   {"kernels", setup->kernels, MOST_KERNELS}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].value < 0 || numbers[i].value > numbers[i].most) {
            return error_set(error, STATUS_INVALID_ARGUMENT, "--%s %d: from 1 to %d, or 0",
                             numbers[i].name, numbers[i].value, numbers[i].most);
        }
        setup->model = setup->model || numbers[i].value > 0;
    }
    if (setup->model && (o->op_text != NULL || o->shape_text != NULL)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--op and --shape are a function's; --model, --batch-size, --max-length "
                         "and --kernels are training steps'");
    }
    return STATUS_OK;
}

/* What the flags say beyond their types. */
static enum status check(void *options, struct error *error) {
    struct options *o = options;
    TRY(check_model(o, error));
    if (o->op_text != NULL) {
        TRY(parse_op(o->op_text, &o->setup.op, error));
    }
    if (o->dtype_text != NULL) {
        TRY(parse_dtype(o->dtype_text, &o->setup.dtype, error));
    }
    if (o->shape_text != NULL) {
        TRY(parse_shape(o, error));
    }
    return check_step(&o->setup, error);
}

static enum status open_gpu(struct bench_setup *setup, struct error *error) {
    TRY(device_open(error));
    TRY(device_properties(&setup->gpu, error));
    if (setup->shape != NULL) {
        enum nn_dtype dtype = setup->dtype == (int)NN_BF16 ? NN_BF16 : NN_F32;
        TRY(bench_check_shape(setup, setup->shape, dtype, error));
    }
    return device_peaks(&setup->roofs, error);
}

/* With --shape, --op, --dtype or --step only the ladder is run, unless --model is asked for. */
static bool is_whole(const struct bench_setup *setup) {
    return setup->op < 0 && setup->dtype < 0 && setup->step == NULL;
}

static enum status run(void *options, struct error *error) {
    char text[400];
    struct bench_setup *setup = &((struct options *)options)->setup;
    TRY(open_gpu(setup, error));
    printf("%s: %s\n", WARPBOOK_SUBJECT, device_bench_headline(&setup->gpu, text, sizeof text));
    printf("roofs, %s: %.0f GB/s, %.1f TFLOP/s fp32%s\n",
           setup->roofs.modelled ? "from clocks and widths" : "measured",
           1e-9 * setup->roofs.bytes_per_s, 1e-12 * setup->roofs.flops_per_s,
           setup->gpu.modelled ? "" : "; L2 is flushed before each run");
    if (!setup->model) {
        TRY(bench_ladder(setup, error));
    }
    if (setup->model || is_whole(setup)) {
        TRY(bench_model(setup, error));
    }
    bench_print_recorded();
    return STATUS_OK;
}

int main(int argc, char **argv) {
    struct options o = {.setup = {.op = -1, .dtype = -1}};
    const struct flag table[] = {
        {"op", 'o', FLAG_STRING, &o.op_text, "NAME", "'layernorm', 'attention' or 'adamw'"},
        {"shape", 's', FLAG_STRING, &o.shape_text, "SIZES",
         "of --op: ROWS,C, or B,NH,T,HS, or PARAMETERS"},
        {"dtype", 'd', FLAG_STRING, &o.dtype_text, "TYPE", "only 'fp32' or 'bf16'"},
        {"step", 0, FLAG_STRING, &o.setup.step, "NAME", "only this step of the ladder, or 'last'"},
        {"model", 'm', FLAG_SWITCH, &o.setup.model, NULL, "only training steps"},
        {"batch-size", 'b', FLAG_INT, &o.setup.batch, "N", "training steps of N texts; 0: 16"},
        {"max-length", 'l', FLAG_INT, &o.setup.length, "N",
         "training steps of texts of N tokens; 0: 128 and 512"},
        {"kernels", 'k', FLAG_INT, &o.setup.kernels, "N",
         "the N kernels that take longest in a training step of the last row"},
        {"all", 'a', FLAG_SWITCH, &o.setup.all, NULL, "also steps that take seconds a call"},
        {"quick", 'q', FLAG_SWITCH, &o.setup.quick, NULL, "smaller shapes, shorter runs"},
    };
    const struct flags flags = {
        .program = "bench",
        .positional = "",
        .summary = "compares the steps of lab 11 with each other, alone and in training BERT",
        .table = table,
        .count = sizeof table / sizeof *table,
        .epilogue = "Without --op, --dtype and --step: the ladder on BERT-base's shapes (on simt: "
                    "small ones), and training steps.\nWith --model, --batch-size, --max-length "
                    "or --kernels: training steps alone, of BERT-base; on simt\nof a tiny BERT, "
                    "with 2 texts of 24 tokens unless said otherwise.",
    };
    const struct bench_program program = {.flags = &flags, .check = check, .run = run};
    return bench_program_main(&program, argc, argv, &o);
}
