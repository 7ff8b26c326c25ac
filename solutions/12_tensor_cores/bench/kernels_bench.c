/**
 * @file kernels_bench.c
 * @brief gemm16's bench: the sizes of models beside cuBLAS and the roofs.
 *
 * Every result is checked against sums in double before it is timed. Each row is
 * appended to results/bench.jsonl.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/bench/bench_program.h"
#include "common/bench/device/device_bench.h"
#include "common/bench/device/device_peaks.h"
#include "common/device/cublas.h"
#include "labs/12_tensor_cores/problem/problem.h"
#include "solutions/12_tensor_cores/steps/few_rows.h"
#include "solutions/12_tensor_cores/steps/gemm16_internal.h"

/* The epilogue of a forward product; or a product of a backward pass: DIN, an input's gradient,
   whose weight is transposed, or DWEIGHT, a weight's, where both factors are and dW is added to in
   fp32. */
enum form { PLAIN, BIAS, GELU, RESIDUAL, TO_FLOAT, DIN, DWEIGHT, FORMS };

static const char *const form_names[FORMS] = {"plain",    "bias", "gelu",   "residual",
                                              "to_float", "din",  "dweight"};

struct bench_shape {
    size_t M, N, K;
    enum form form;
};

struct bench_setup {
    const char *shape_text, *form_text, *dtype_text; /* as the flags have them; shape: or NULL */
    bool quick, kernels, backward;
    int splits;               /* split-K of Hopper's kernels for a backward pass; 0: as chosen */
    struct bench_shape shape; /* with --shape, instead of the default list */
    enum nn_dtype dtype;
    struct device_properties gpu;
    struct gemm16_gpu plan;
    struct roofline roofs; /* of tensor cores */
    struct cublas *cublas; /* NULL where it is not installed */
    char peer[64];
};

/* A cube; BERT-base's layers for 8192 tokens and for 2048, as they are and as BERT has them; and
   few rows, as a decoder has. */
static const struct bench_shape gpu_shapes[] = {
    {4096, 4096, 4096, PLAIN},   {8192, 8192, 8192, PLAIN},  {8192, 2304, 768, PLAIN},
    {8192, 768, 768, PLAIN},     {8192, 3072, 768, PLAIN},   {8192, 768, 3072, PLAIN},
    {8192, 2304, 768, BIAS},     {8192, 768, 768, RESIDUAL}, {8192, 3072, 768, GELU},
    {8192, 768, 3072, RESIDUAL}, {2048, 2304, 768, PLAIN},   {2048, 768, 768, PLAIN},
    {2048, 3072, 768, PLAIN},    {2048, 768, 3072, PLAIN},   {128, 768, 768, PLAIN},
    {128, 768, 3072, PLAIN},     {16, 4096, 4096, PLAIN},    {1, 4096, 11008, PLAIN},
    {4096, 4096, 4096, TO_FLOAT}};
static const struct bench_shape gpu_quick_shapes[] = {{2048, 768, 768, PLAIN},
                                                      {2048, 3072, 768, GELU}};
static const struct bench_shape simt_shapes[] = {
    {256, 256, 256, PLAIN}, {512, 768, 768, GELU}, {16, 768, 3072, RESIDUAL}};
static const struct bench_shape simt_quick_shapes[] = {{256, 256, 256, GELU}};

/* BERT-base's layers backwards, for 2048 and for 8192 tokens. */
#define BACKWARD(rows, N, K) \
    {rows, K, N, DIN}, {     \
        N, K, rows, DWEIGHT  \
    }
#define BERT_BACKWARD(rows)                                                         \
    BACKWARD(rows, 2304, 768), BACKWARD(rows, 768, 768), BACKWARD(rows, 3072, 768), \
        BACKWARD(rows, 768, 3072)
static const struct bench_shape gpu_backward[] = {BERT_BACKWARD(2048), BERT_BACKWARD(8192)};
static const struct bench_shape gpu_quick_backward[] = {BACKWARD(2048, 768, 768)};
static const struct bench_shape simt_backward[] = {BACKWARD(512, 256, 128)};
static const struct bench_shape simt_quick_backward[] = {BACKWARD(256, 72, 64)};

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { MAX_SPLITS = 64 /* of K */ };

/* What simt does in about a minute. */
#define SIMT_PRODUCTS ((size_t)1 << 33)

static double flops(const struct bench_shape *s) {
    return 2.0 * (double)s->M * (double)s->N * (double)s->K;
}

/* Each matrix once: with the residual, which is as large as out, and out itself in 16 bits. */
static double bytes(const struct bench_shape *s) {
    double outs = s->form == DWEIGHT ? 4.0 : s->form == RESIDUAL || s->form == TO_FLOAT ? 2.0 : 1.0;
    return 2.0 * ((double)s->M * (double)s->K + (double)s->N * (double)s->K +
                  outs * (double)s->M * (double)s->N);
}

static enum status parse_shape(const char *text, struct bench_shape *s, struct error *error) {
    size_t *const sizes[] = {&s->M, &s->N, &s->K};
    bool good = bench_parse_sizes(text, sizes, COUNT(sizes)) && s->M <= GEMM16_MAX_SIZE &&
                s->N <= GEMM16_MAX_SIZE && s->K <= GEMM16_MAX_SIZE;
    return good ? STATUS_OK
                : error_set(error, STATUS_INVALID_ARGUMENT,
                            "--shape wants three sizes M,N,K from 1 to %zu, not '%s'",
                            GEMM16_MAX_SIZE, text);
}

static enum status parse_form(const char *text, enum form *form, struct error *error) {
    for (int i = 0; i < FORMS; i++) {
        if (strcmp(text, form_names[i]) == 0) {
            *form = (enum form)i;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_INVALID_ARGUMENT,
                     "--form is 'plain', 'bias', 'gelu', 'residual', 'to_float', 'din' or "
                     "'dweight', not '%s'",
                     text);
}

static enum status parse_dtype(const char *text, enum nn_dtype *dtype, struct error *error) {
    if (strcmp(text, "bf16") != 0 && strcmp(text, "fp16") != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--dtype is 'bf16' or 'fp16', not '%s'",
                         text);
    }
    *dtype = strcmp(text, "bf16") == 0 ? NN_BF16 : NN_F16;
    return STATUS_OK;
}

/* Memory for a shape, and on simt the patience: asked before any is taken. */
static enum status check_shape(const struct bench_setup *setup, const struct bench_shape *s,
                               struct error *error) {
    double needed = bytes(s) * 2.0 + (double)GEMM16_WORKSPACE_BYTES;
    if (needed > (double)setup->gpu.memory_bytes) {
        return error_set(error, STATUS_OUT_OF_MEMORY,
                         "--shape %zu,%zu,%zu needs about %.3g bytes of device memory, %s has %zu",
                         s->M, s->N, s->K, needed, setup->gpu.name, setup->gpu.memory_bytes);
    }
    if (setup->gpu.modelled && flops(s) > 2.0 * (double)SIMT_PRODUCTS) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--shape %zu,%zu,%zu: %.3g products take simt very long; at most %.3g",
                         s->M, s->N, s->K, flops(s) / 2.0, (double)SIMT_PRODUCTS);
    }
    return STATUS_OK;
}

/* Operations a cycle of a multiprocessor's tensor cores in 16 bits, sums in fp32; NVIDIA's tables.
 */
static double tensor_flops_a_cycle(const struct device_properties *gpu) {
    switch (gpu->major * 10 + gpu->minor) {
    case 80:
        return 2048.0;
    case 90:
        return 4096.0;
    case 100:
        return 8192.0;
    default:
        return 1024.0;
    }
}

static enum status open_gpu(struct bench_setup *setup, struct error *error) {
    struct error absent = {0};
    const struct device_properties *gpu = &setup->gpu;
    TRY(device_open(error));
    TRY(device_properties(&setup->gpu, error));
    if (setup->shape_text != NULL) {
        TRY(check_shape(setup, &setup->shape, error));
    }
    TRY(device_peaks(&setup->roofs, NULL, error));
    setup->roofs.flops_per_s =
        tensor_flops_a_cycle(gpu) * gpu->multiprocessors * 1e3 * gpu->clock_khz;
    setup->plan = (struct gemm16_gpu){gpu->code / 10, gpu->multiprocessors, gpu->shared_bytes};
    if (cublas_open(&setup->cublas, &absent) == STATUS_OK) {
        cublas_name(setup->cublas, setup->peer, sizeof setup->peer);
    }
    return STATUS_OK;
}

/* Arguments of a timed call. */
struct call {
    const struct bench_setup *setup;
    struct gemm16_data *data;
    int tile; /* of Hopper; -2: gemm16() decides; -3: mma.sync */
};

enum { CHOSEN = -2, BY_MMA = -3 };

static enum status run_ours(void *argument, device_stream stream, struct error *error) {
    const struct call *c = argument;
    const struct gemm16_problem *p = &c->data->problem;
    if (c->tile == CHOSEN) {
        return gemm16(p, c->data->workspace, stream, error);
    }
    return c->tile == BY_MMA ? gemm16_tile(p, &c->setup->plan, c->data->workspace, stream, error)
                             : gemm16_hopper(p, &c->setup->plan, c->tile, (size_t)c->setup->splits,
                                             c->data->workspace, stream, error);
}

static enum status run_cublas(void *argument, device_stream stream, struct error *error) {
    const struct call *c = argument;
    const struct gemm16_problem *p = &c->data->problem;
    const struct cublas_gemm16 problem = {.M = p->M,
                                          .N = p->N,
                                          .K = p->K,
                                          .dtype = p->dtype,
                                          .out_dtype = p->out_dtype,
                                          .A = p->in,
                                          .B = p->weight,
                                          .a_transposed = p->in_is_transposed,
                                          .b_transposed = p->weight_is_transposed,
                                          .add = c->data->c.in_place,
                                          .C = p->out};
    return cublas_gemm16(c->setup->cublas, &problem, c->data->workspace, GEMM16_WORKSPACE_BYTES,
                         stream, error);
}

/* Runs once, compares, and times. */
static enum status measure(struct call *c, struct bench_timing *timing, struct error *error) {
    struct device_bench_options options = device_bench_defaults();
    char wrong[300] = "";
    options.flush_l2 = true;
    if (c->setup->quick) {
        options.min_seconds = 0.02;
    }
    TRY(gemm16_data_reset(c->data, error));
    TRY(run_ours(c, NULL, error));
    TRY(gemm16_data_check(c->data, wrong, sizeof wrong, error));
    if (wrong[0] != '\0') {
        return error_set(error, STATUS_MISMATCH, "a wrong result: %s", wrong);
    }
    return device_bench_run(&options, run_ours, c, NULL, timing, error);
}

static enum status append(const struct bench_setup *setup, const struct bench_shape *s,
                          const char *name, const struct bench_timing *timing, double peer_ms,
                          struct error *error) {
    char shape[96], op[32];
    const struct bench_gpu gpu = bench_gpu_of(&setup->gpu);
    snprintf(shape, sizeof shape, "%zux%zux%zu", s->M, s->N, s->K);
    snprintf(op, sizeof op, "gemm16_%s", form_names[s->form]);
    const struct bench_record record = {
        .lab = "gemm16",
        .subject = "solutions",
        .stage = name,
        .op = op,
        .shape = shape,
        .dtype = nn_dtype_name(setup->dtype),
        .threads = 1,
        .gpu = &gpu,
        .timing = *timing,
        .bytes = bytes(s),
        .flops = flops(s),
        .peer = isnan(peer_ms) ? NULL : setup->peer,
        .peer_ratio = peer_ms / timing->median_ms,
    };
    return bench_append(&record, error);
}

static enum status report(const struct bench_setup *setup, const struct bench_shape *s,
                          const char *name, const struct bench_timing *timing, double peer_ms,
                          struct error *error) {
    char shape[64], peer[16] = "–";
    double ms = timing->median_ms;
    snprintf(shape, sizeof shape, "%zux%zux%zu", s->M, s->N, s->K);
    if (!isnan(peer_ms)) {
        snprintf(peer, sizeof peer, "%.1f%%", 100.0 * peer_ms / ms);
    }
    printf("  %-16s %-9s %-24s %9.4f %9.1f %8.0f %*s %8.1f%%\n", shape, form_names[s->form], name,
           ms, 1e-9 * flops(s) / ms, 1e-6 * bytes(s) / ms, isnan(peer_ms) ? 10 : 8, peer,
           100.0 * roofline_share(&setup->roofs, flops(s), bytes(s), ms));
    fflush(stdout);
    return append(setup, s, name, timing, peer_ms, error);
}

/* A kernel's name in records, "wgmma_128x256_0"; that of gemm16()'s choice, "gemm16: mma". */
static void name_kernel(const struct call *c, char *name, size_t size) {
    int count = 0, tile = c->tile;
    const struct gemm16_problem *p = &c->data->problem;
    const struct gemm16_gpu *gpu = &c->setup->plan;
    const struct gemm16_hopper_tile *tiles = gemm16_hopper_tiles(p, &count);
    const char *chosen = tile == CHOSEN ? "gemm16: " : "";
    if (tile == CHOSEN && gemm16_few_rows_are_faster(p, gpu)) {
        snprintf(name, size, "%sfew rows", chosen);
        return;
    }
    if (tile == CHOSEN) {
        bool hopper = gemm16_hopper_can(p, gpu) && gemm16_hopper_is_faster(p, gpu);
        tile = hopper ? gemm16_hopper_choice(p, gpu) : BY_MMA;
    }
    if (tile >= 0) {
        snprintf(name, size, "%swgmma_%zux%zu_%d", chosen, tiles[tile].rows, tiles[tile].columns,
                 tile);
    } else {
        snprintf(name, size, "%s%s", chosen, tile == BY_MMA ? "mma" : "wgmma_any");
    }
}

/* gemm16()'s choice, or with --kernels each kernel. */
static enum status measure_kernels(const struct bench_setup *setup, const struct bench_shape *s,
                                   struct gemm16_data *data, double peer_ms, struct error *error) {
    int count = 0;
    (void)gemm16_hopper_tiles(&data->problem, &count);
    bool hopper = gemm16_hopper_can(&data->problem, &setup->plan);
    enum status status = STATUS_OK;
    for (int tile = BY_MMA; tile < count && status == STATUS_OK; tile++) {
        struct call c = {setup, data, tile};
        struct bench_timing timing;
        char name[48];
        if (tile == -1 || (tile != CHOSEN && !setup->kernels) || (tile >= 0 && !hopper)) {
            continue;
        }
        name_kernel(&c, name, sizeof name);
        status = measure(&c, &timing, error);
        if (status == STATUS_OK) {
            status = report(setup, s, name, &timing, peer_ms, error);
        }
        error_prefix(error, status, name);
    }
    return status;
}

static struct gemm16_case case_of(const struct bench_setup *setup, const struct bench_shape *s) {
    size_t rows = ((size_t)1 << 27) / (s->N * s->K);
    return (struct gemm16_case){
        .M = s->M,
        .N = s->N,
        .K = s->K,
        .dtype = setup->dtype,
        .out_dtype = s->form == TO_FLOAT || s->form == DWEIGHT ? NN_F32 : setup->dtype,
        .in_is_transposed = s->form == DWEIGHT,
        .weight_is_transposed = s->form == DIN || s->form == DWEIGHT,
        .bias = s->form == BIAS || s->form == GELU || s->form == RESIDUAL,
        .activate = s->form == GELU,
        .f = NN_GELU,
        .residual = s->form == RESIDUAL || s->form == DWEIGHT,
        .residual_is_float = s->form == DWEIGHT,
        .in_place = s->form == DWEIGHT,
        .rows = rows < 3 ? 3 : rows,
    };
}

/* The part of measure_shape() that can fail with something to free. */
static enum status measure_data(const struct bench_setup *setup, const struct bench_shape *s,
                                struct gemm16_data *data, struct error *error) {
    const struct gemm16_case wanted = case_of(setup, s);
    struct bench_timing peer = {.median_ms = NAN};
    struct call c = {setup, data, CHOSEN};
    struct device_bench_options options = device_bench_defaults();
    options.flush_l2 = true;
    TRY(gemm16_data_create(data, &wanted, 0, error));
    if (setup->cublas != NULL) {
        TRY(device_bench_run(&options, run_cublas, &c, NULL, &peer, error));
    }
    return measure_kernels(setup, s, data, peer.median_ms, error);
}

static enum status measure_shape(const struct bench_setup *setup, const struct bench_shape *s,
                                 struct error *error) {
    struct gemm16_data data = {0};
    enum status status = measure_data(setup, s, &data, error);
    gemm16_data_free(&data);
    return status;
}

static enum status measure_all(const struct bench_setup *setup, struct error *error) {
    const struct {
        const struct bench_shape *shapes;
        size_t count;
    } lists[] = {
        {gpu_shapes, COUNT(gpu_shapes)},       {gpu_quick_shapes, COUNT(gpu_quick_shapes)},
        {simt_shapes, COUNT(simt_shapes)},     {simt_quick_shapes, COUNT(simt_quick_shapes)},
        {gpu_backward, COUNT(gpu_backward)},   {gpu_quick_backward, COUNT(gpu_quick_backward)},
        {simt_backward, COUNT(simt_backward)}, {simt_quick_backward, COUNT(simt_quick_backward)}};
    int list = 4 * setup->backward + 2 * setup->gpu.modelled + setup->quick;
    bool chosen = setup->shape_text != NULL;
    const struct bench_shape *shapes = chosen ? &setup->shape : lists[list].shapes;
    size_t count = chosen ? 1 : lists[list].count;
    printf("\n  %-16s %-9s %-24s %9s %9s %8s %8s %9s\n", "M x N x K", "form", "kernel", "ms",
           "TFLOP/s", "GB/s", "cuBLAS", "roofline");
    for (size_t i = 0; i < count; i++) {
        if (check_shape(setup, &shapes[i], NULL) == STATUS_OK) {
            TRY(measure_shape(setup, &shapes[i], error));
        }
    }
    return STATUS_OK;
}

/* What the flags say beyond their types. */
static enum status check(void *argument, struct error *error) {
    struct bench_setup *setup = argument;
    if (setup->splits < 0 || setup->splits > MAX_SPLITS) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--splits is from 0 to %d, not %d",
                         MAX_SPLITS, setup->splits);
    }
    TRY(parse_dtype(setup->dtype_text, &setup->dtype, error));
    TRY(parse_form(setup->form_text, &setup->shape.form, error));
    return setup->shape_text != NULL ? parse_shape(setup->shape_text, &setup->shape, error)
                                     : STATUS_OK;
}

static enum status open_and_measure(struct bench_setup *setup, struct error *error) {
    char text[400];
    TRY(open_gpu(setup, error));
    printf("gemm16, %s: %s\n", nn_dtype_name(setup->dtype),
           device_bench_headline(&setup->gpu, text, sizeof text));
    printf("roofs: %.1f TFLOP/s of the tensor cores, from the clock; %.0f GB/s, %s; yardstick: "
           "%s\n",
           1e-12 * setup->roofs.flops_per_s, 1e-9 * setup->roofs.bytes_per_s,
           setup->roofs.modelled ? "from clocks and widths" : "measured",
           setup->cublas != NULL ? setup->peer : "none, no cuBLAS here");
    if (setup->cublas != NULL) {
        printf("%s does the product alone, and dweight's sum\n", setup->peer);
    }
    TRY(measure_all(setup, error));
    bench_print_recorded();
    return STATUS_OK;
}

static enum status run(void *argument, struct error *error) {
    struct bench_setup *setup = argument;
    enum status status = open_and_measure(setup, error);
    cublas_close(setup->cublas);
    return status;
}

int main(int argc, char **argv) {
    struct bench_setup setup = {.form_text = "plain", .dtype_text = "bf16"};
    const struct flag table[] = {
        {"shape", 's', FLAG_STRING, &setup.shape_text, "M,N,K", "only this shape"},
        {"form", 'f', FLAG_STRING, &setup.form_text, "FORM",
         "with --shape: plain, bias, gelu, residual (and bias), to_float, din or dweight"},
        {"dtype", 'd', FLAG_STRING, &setup.dtype_text, "TYPE", "bf16 or fp16"},
        {"backward", 'b', FLAG_SWITCH, &setup.backward, NULL, "the products of a backward pass"},
        {"splits", 'n', FLAG_INT, &setup.splits, "COUNT",
         "with --kernels: split-K of Hopper's kernels for a backward pass; 0 chooses"},
        {"kernels", 'k', FLAG_SWITCH, &setup.kernels, NULL, "each kernel, not only the chosen"},
        {"quick", 'q', FLAG_SWITCH, &setup.quick, NULL, "fewer shapes, shorter runs"},
    };
    const struct flags flags = {
        .program = "bench",
        .positional = "",
        .summary = "measures products of 16-bit matrices, beside cuBLAS",
        .table = table,
        .count = COUNT(table),
    };
    const struct bench_program program = {.flags = &flags, .check = check, .run = run};
    return bench_program_main(&program, argc, argv, &setup);
}
