/* Activations stored in fp16, through many layers: errors, not time, computed on the host. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/nn/dtype.h"
#include "common/nn/nn.h"
#include "labs/06_fused_epilogues/bench/bench_internal.h"

/* A small model of pre-LN blocks: x = x + down(gelu(up(LayerNorm(x)))). */
enum { ROWS = 8, C = 128, HIDDEN = 512, LAYERS = 32 };

struct block_weights {
    float up[HIDDEN * C], up_bias[HIDDEN], down[C * HIDDEN], down_bias[C];
    float norm_weight[C], norm_bias[C];
};

/* The values rounded to fp16: results of every operator, or of every fusion; the sum of all blocks,
   x, or not. Only additions to x are left in fp32 where x is. */
struct storage {
    const char *name;
    bool each_operator, each_fusion, stream;
};

static const struct storage storages[] = {
    {"fp16, each operator's result", true, true, true},
    {"fp16, each fusion's result", false, true, true},
    {"fp16, but x in fp32", false, true, false},
};
enum { STORAGES = sizeof storages / sizeof *storages };

static void round_if(bool condition, float *x, size_t count) {
    uint16_t half[ROWS * HIDDEN];
    if (condition) {
        nn_dtype_store(half, x, count, NN_F16);
        nn_dtype_load(x, half, count, NN_F16);
    }
}

/* One block; s == NULL: all in fp32. */
static void run_block(float *x, const struct block_weights *w, const struct storage *s) {
    float normed[ROWS * C], inner[ROWS * HIDDEN], product[ROWS * C];
    bool operators = s != NULL && s->each_operator, fusions = s != NULL && s->each_fusion;
    nn_layernorm(normed, x, w->norm_weight, w->norm_bias, ROWS, C, 1e-5f);
    round_if(fusions, normed, ROWS * C);
    nn_matmul(inner, normed, w->up, ROWS, HIDDEN, C);
    round_if(operators, inner, ROWS * HIDDEN);
    nn_bias_add(inner, w->up_bias, ROWS, HIDDEN);
    round_if(operators, inner, ROWS * HIDDEN);
    nn_activation(inner, inner, ROWS * HIDDEN, NN_GELU);
    round_if(fusions, inner, ROWS * HIDDEN);
    nn_matmul(product, inner, w->down, ROWS, C, HIDDEN);
    round_if(operators, product, ROWS * C);
    nn_bias_add(product, w->down_bias, ROWS, C);
    round_if(operators, product, ROWS * C);
    nn_residual(x, x, product, ROWS * C);
    round_if(s != NULL && s->stream, x, ROWS * C);
}

static void fill_block(struct block_weights *w, struct rng *rng) {
    rng_fill_normal(rng, w->up, HIDDEN * C, 1.0f / sqrtf((float)C));
    rng_fill_normal(rng, w->down, C * HIDDEN, 1.0f / sqrtf((float)HIDDEN));
    rng_fill_normal(rng, w->up_bias, HIDDEN, 0.02f);
    rng_fill_normal(rng, w->down_bias, C, 0.02f);
    rng_fill_normal(rng, w->norm_weight, C, 0.02f);
    rng_fill_normal(rng, w->norm_bias, C, 0.02f);
    for (int c = 0; c < C; c++) {
        w->norm_weight[c] += 1.0f;
    }
}

/* The worst element's error. */
static double worst_error(const float *got, const float *want) {
    double worst = 0.0;
    for (int i = 0; i < ROWS * C; i++) {
        worst = fmax(worst, fabs((double)got[i] - (double)want[i]));
    }
    return worst;
}

static double root_mean_square(const float *x) {
    double squares = 0.0;
    for (int i = 0; i < ROWS * C; i++) {
        squares += (double)x[i] * (double)x[i];
    }
    return sqrt(squares / (ROWS * C));
}

/* All models side by side, a layer at a time; rows where the layer is a power of two. */
static void run_layers(struct block_weights *w, float x[STORAGES + 1][ROWS * C]) {
    struct rng rng = rng_create(6);
    rng_fill_normal(&rng, x[0], ROWS * C, 1.0f);
    for (int s = 1; s <= STORAGES; s++) {
        memcpy(x[s], x[0], sizeof x[0]);
    }
    for (int layer = 1; layer <= LAYERS; layer++) {
        fill_block(w, &rng);
        run_block(x[0], w, NULL);
        for (int s = 1; s <= STORAGES; s++) {
            run_block(x[s], w, &storages[s - 1]);
        }
        if ((layer & (layer - 1)) == 0) {
            printf("  %5d %8.2f", layer, root_mean_square(x[0]));
            for (int s = 1; s <= STORAGES; s++) {
                printf(" %30.6f", worst_error(x[s], x[0]));
            }
            printf("\n");
        }
    }
}

enum status bench_error(const struct ladder_setup *setup, struct error *error) {
    struct block_weights *w = malloc(sizeof *w);
    float(*x)[ROWS * C] = malloc((STORAGES + 1) * sizeof *x);
    (void)setup;
    if (w == NULL || x == NULL) {
        free(w);
        free(x);
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the layers");
    }
    printf(
        "\n%d blocks x = x + f(LayerNorm(x)), C %d: worst error of x against fp32, on the host\n",
        LAYERS, C);
    printf("  %5s %8s", "layer", "rms of x");
    for (int s = 0; s < STORAGES; s++) {
        printf(" %30s", storages[s].name);
    }
    printf("\n");
    run_layers(w, x);
    free(w);
    free(x);
    return STATUS_OK;
}
