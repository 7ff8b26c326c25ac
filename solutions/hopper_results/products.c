/* Lab 12: each step of the ladder from v3 on, each of v10's kernels. */
#include "labs/12_tensor_cores/problem/problem.h"
#include "solutions/12_tensor_cores/steps/few_rows.h"
#include "solutions/12_tensor_cores/steps/hopper_kernels.h"
#include "solutions/hopper_results/results.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Several tiles a cluster, also on a GPU of 132. */
enum { MULTIPROCESSORS = 4 };

/* An activation's functions are approximate: some results are rounded to the neighbour. */
static const double ACTIVATED = 1.0;

/* The record has sums of three parts of K: other last bits of fp32, one rounding of fp16. */
static const double REORDERED = 1.0;

/* A kernel, and what it is called. */
struct way {
    const char *name;
    gemm16_function *step; /* NULL: one of v10's */
    int tile;              /* of gemm16_hopper(); -1: few rows */
    size_t splits;
    int shape;       /* for few rows */
    unsigned blocks; /* of a cluster; 0: gemm16_stream() */
    double bound;    /* of all its results; 0: bits are equal, but for activations */
};

static enum status run(const struct gemm16_data *data, const struct way *way, struct error *error) {
    struct device_properties found;
    TRY(device_properties(&found, error));
    const struct gemm16_gpu gpu = {found.code / 10, MULTIPROCESSORS, found.shared_bytes};
    const struct gemm16_problem *p = &data->problem;
    if (way->step != NULL) {
        return way->step(p, data->workspace, NULL, error);
    }
    if (way->tile >= 0) {
        return gemm16_hopper(p, &gpu, way->tile, way->splits, data->workspace, NULL, error);
    }
    return way->blocks == 0 ? gemm16_stream(p, way->shape, NULL, error)
                            : gemm16_bulk(p, way->shape, way->blocks, NULL, error);
}

static void say(char text[RESULTS_NAME], const struct gemm16_case *c, const struct way *way) {
    static const char *const functions[] = {[NN_GELU] = " gelu",
                                            [NN_GELU_TANH] = " gelu_tanh",
                                            [NN_SILU] = " silu",
                                            [NN_TANH] = " tanh",
                                            [NN_RELU] = " relu"};
    char number[40] = "";
    if (way->tile >= 0 && way->step == NULL) { /* any tile adds in the same order */
        snprintf(number, sizeof number, " splits=%zu", way->splits);
    } else if (way->step == NULL) {
        snprintf(number, sizeof number, " %d cluster=%u", way->shape, way->blocks);
    }
    snprintf(text, RESULTS_NAME, "12 %s%s %s %zux%zux%zu%s%s%s%s%s%s", way->name, number,
             nn_dtype_name(c->dtype), c->M, c->N, c->K, c->bias ? " bias" : "",
             c->activate ? functions[c->f] : "", c->residual ? " residual" : "",
             c->in_is_transposed ? " in^T" : "", c->weight_is_transposed ? " weight^T" : "",
             c->out_dtype == NN_F32 ? " to fp32" : "");
}

static enum status take(struct results *results, const struct gemm16_case *c, const struct way *way,
                        struct error *error) {
    char name[RESULTS_NAME];
    struct gemm16_data data = {0};
    struct gemm16_case few = *c;
    say(name, c, way);
    few.rows = 1; /* the check in double is the tests' */
    if (!results_want(results, name)) {
        return STATUS_OK;
    }
    enum status status = gemm16_data_create(&data, &few, 0, error);
    if (status == STATUS_OK) {
        status = gemm16_data_reset(&data, error);
    }
    if (status == STATUS_OK) {
        status = run(&data, way, error);
    }
    if (status == STATUS_OK) {
        status = device_synchronize(NULL, error);
    }
    if (status == STATUS_OK) {
        status =
            results_take_device(results, name, c->out_dtype, data.problem.out, c->M * c->N,
                                c->activate && c->f != NN_RELU ? ACTIVATED : way->bound, error);
    }
    gemm16_data_free(&data);
    return status;
}

/* Edges in all directions, more steps of K than a ring has stages, parts of the epilogue. */
static enum status take_steps(struct results *results, struct error *error) {
    static const struct gemm16_case cases[] = {
        {.M = 200, .N = 264, .K = 136, .bias = true},
        {.M = 40, .N = 136, .K = 840, .residual = true, .activate = true, .f = NN_GELU_TANH},
        {.M = 129, .N = 72, .K = 264},
    };
    size_t count;
    const struct gemm16_step *steps = gemm16_ladder(&count);
    for (size_t i = 1; i < count; i++) {
        for (size_t n = 0; n < COUNT(cases); n++) {
            struct gemm16_case c = cases[n];
            c.dtype = n == 1 ? NN_F16 : NN_BF16;
            c.out_dtype = n == 2 ? NN_F32 : c.dtype;
            const struct way way = {.name = steps[i].name, .step = steps[i].run};
            TRY(take(results, &c, &way, error));
        }
    }
    return STATUS_OK;
}

static enum status take_tiles(struct results *results, struct error *error) {
    static const struct gemm16_case cases[] = {
        {.M = 300, .N = 264, .K = 72},
        {.M = 129, .N = 328, .K = 136, .bias = true},
        {.M = 72, .N = 200, .K = 72, .bias = true, .activate = true, .f = NN_SILU},
        {.M = 136, .N = 200, .K = 72, .residual = true, .bias = true},
        {.M = 40, .N = 72, .K = 968},
    };
    const struct gemm16_problem plain = {0};
    int count = 0;
    const struct gemm16_hopper_tile *tiles = gemm16_hopper_tiles(&plain, &count);
    for (int n = 0; n < (int)COUNT(cases) * count; n++) {
        size_t i = (size_t)n % COUNT(cases);
        struct gemm16_case c = cases[i];
        if (i == 4 && tiles[n / (int)COUNT(cases)].epilogue[FINISH_FLOAT] == 0.0) {
            continue; /* no split-K with this tile */
        }
        c.dtype = n % 2 == 0 ? NN_F16 : NN_BF16;
        c.out_dtype = i == 4 ? NN_F32 : c.dtype;
        const struct way way = {
            .name = "hopper", .tile = n / (int)COUNT(cases), .splits = i == 4 ? 3 : 1};
        TRY(take(results, &c, &way, error));
    }
    return STATUS_OK;
}

/* dX, dW and the fourth combination. K is too short for clusters that split it. */
static enum status take_transposed(struct results *results, struct error *error) {
    for (int form = 1; form < 4; form++) {
        struct gemm16_case c = {.M = 136,
                                .N = 200,
                                .K = 328,
                                .in_is_transposed = (form & 1) != 0,
                                .weight_is_transposed = (form & 2) != 0};
        const struct gemm16_problem p = {.in_is_transposed = c.in_is_transposed,
                                         .weight_is_transposed = c.weight_is_transposed};
        int count = 0;
        (void)gemm16_hopper_tiles(&p, &count);
        for (int n = 0; n < 3 * (count + 1); n++) { /* one more: the kernel for everything else */
            c.dtype = n % 3 == 1 ? NN_F16 : NN_BF16;
            c.out_dtype = n % 3 == 2 ? NN_F32 : c.dtype;
            const struct way way = {.name = "hopper",
                                    .tile = n / 3,
                                    .splits = 1,
                                    .bound = c.dtype == NN_F16 ? REORDERED : 0.0};
            TRY(take(results, &c, &way, error));
        }
    }
    return STATUS_OK;
}

/* Rows of each kernel of few rows by clusters that is no newer than the record. */
static const size_t recorded_bulk[] = {16, 29, 64, 125, 128};
enum { RECORDED_BULK = sizeof recorded_bulk / sizeof *recorded_bulk };

static enum status take_few_rows(struct results *results, bool clusters, struct error *error) {
    int count;
    const struct gemm16_few_shape *shapes =
        clusters ? gemm16_bulk_shapes(&count) : gemm16_stream_shapes(&count);
    for (int i = 0; i < count && !(clusters && i >= RECORDED_BULK); i++) {
        size_t rows = clusters ? recorded_bulk[i] : shapes[i].rows - (i % 2 == 0 ? 0 : 3);
        const struct gemm16_case c = {.M = rows,
                                      .N = 136,
                                      .K = 1032,
                                      .dtype = i % 2 == 0 ? NN_BF16 : NN_F16,
                                      .out_dtype = i % 2 == 0 ? NN_BF16 : NN_F16,
                                      .bias = i % 3 == 0,
                                      .residual = i % 3 == 1};
        const struct way way = {
            .name = clusters ? "bulk" : "stream",
            .tile = -1,
            .shape = i,
            .blocks = clusters ? 1U << i % 4 : 0,
            /* Blocks that split K add in another order than when it was recorded. */
            .bound = clusters && i % 4 > 0 ? REORDERED : 0.0};
        TRY(take(results, &c, &way, error));
    }
    return STATUS_OK;
}

enum status results_of_products(struct results *results, struct error *error) {
    TRY(take_steps(results, error));
    TRY(take_tiles(results, error));
    TRY(take_transposed(results, error));
    TRY(take_few_rows(results, false, error));
    return take_few_rows(results, true, error);
}
