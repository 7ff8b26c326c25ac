/**
 * @file train_cpu.c
 * @brief The CPU engine's table. Its memory is the reference's: the host's.
 */
#include "common/train/cpu/train_cpu.h"

#include <stdlib.h>
#include <string.h>

#include "common/train/cpu/train_cpu_internal.h"

static void destroy(void *context) {
    struct train_cpu *cpu = context;
    if (cpu != NULL) {
        cpu_scratch_free(&cpu->scratch);
        cpu_rope_table_free(&cpu->rope);
        free(cpu);
    }
}

/* Both types are float. */
static enum status convert(void *context, void *copy, const void *weights, size_t count) {
    (void)context;
    if (count > 0) {
        memcpy(copy, weights, count * sizeof(float));
    }
    return STATUS_OK;
}

int train_cpu_threads(const struct train_cpu *cpu, size_t count, size_t operations) {
    return count > TEAM_LEAST_OPERATIONS / operations ? cpu_team_threads(&cpu->team) : 1;
}

static void set_operators(struct train_engine *engine) {
    engine->convert = convert;
    engine->linear = train_cpu_linear;
    engine->linear_backward = train_cpu_linear_backward;
    engine->activation = train_cpu_activation;
    engine->activation_backward = train_cpu_activation_backward;
    engine->activation_bias_backward = train_cpu_activation_bias_backward;
    engine->dropout_bias_backward = train_cpu_dropout_bias_backward;
    engine->silu_gate = train_cpu_silu_gate;
    engine->silu_gate_backward = train_cpu_silu_gate_backward;
    engine->dropout = train_cpu_dropout;
    engine->layernorm = train_cpu_layernorm;
    engine->layernorm_backward = train_cpu_layernorm_backward;
    engine->rmsnorm = train_cpu_rmsnorm;
    engine->rmsnorm_backward = train_cpu_rmsnorm_backward;
    engine->attention = train_cpu_attention;
    engine->attention_backward = train_cpu_attention_backward;
    engine->rope = train_cpu_rope;
    engine->embedding = train_cpu_embedding;
    engine->embedding_backward = train_cpu_embedding_backward;
    engine->gather = train_cpu_gather;
    engine->scatter = train_cpu_scatter;
    engine->cross_entropy = train_cpu_cross_entropy;
    engine->clip = train_cpu_clip;
    engine->adamw = train_cpu_adamw;
}

enum status train_cpu_create(struct train_engine *engine, int threads) {
    TRY(train_reference_create(engine));
    struct train_cpu *cpu = calloc(1, sizeof *cpu);
    if (cpu == NULL) {
        train_engine_destroy(engine);
        return STATUS_OUT_OF_MEMORY;
    }
    cpu->team = cpu_team_create(threads);
    engine->name = "cpu";
    engine->context = cpu;
    engine->activations = TRAIN_F32;
    engine->weights = TRAIN_F32;
    engine->destroy = destroy;
    set_operators(engine);
    return STATUS_OK;
}
