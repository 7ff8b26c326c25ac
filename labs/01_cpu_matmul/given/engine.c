/**
 * @file engine.c
 * @brief The CPU engine of common/cpu around cpu_matmul().
 *
 * All other operators are given and fast, so what a model gains comes from the matmul.
 */
#include "labs/01_cpu_matmul/given/engine.h"

#include "common/cpu/cpu_engine.h"
#include "labs/01_cpu_matmul/matmul.h"

enum status engine_cpu_matmul_create(struct engine *engine, int threads) {
    return cpu_engine_create(engine, "01_cpu_matmul", cpu_matmul, threads);
}
