/* The inner loops of the CPU's probes; vector code, which needs its own compiler flags. */
#include "common/bench/cpu_probe_kernels.h"

#include "common/base/cpu.h"

/* Sums in flight: latency of a multiply-add times units is 8 to 16; the rest of the registers is
   for the operands. Only plain x86-64 and AVX2 have 16 registers, all others 32. */
#if defined(__x86_64__)
enum { SUMS_16 = 24, SUMS_8 = 12, SUMS_4 = 12 };
#else
enum { SUMS_16 = 24, SUMS_8 = 24, SUMS_4 = 24 };
#endif

typedef float vector_16 __attribute__((vector_size(64), may_alias));
typedef float vector_8 __attribute__((vector_size(32), may_alias));
typedef float vector_4 __attribute__((vector_size(16), may_alias));

#define UNROLL _Pragma("GCC unroll 32")

/*
 * Defines a function that multiplies and adds to SUMS_N vectors of N floats. The sums start with
 * different values, or the compiler would compute only one of them.
 */
#define MULTIPLY_ADD(N)                                                                \
    CPU_INLINE float multiply_add_##N(size_t rounds, volatile const float *operands) { \
        float factor = operands[0], summand = operands[1], total = 0.0f;               \
        vector_##N sum[SUMS_##N];                                                      \
        for (size_t i = 0; i < SUMS_##N; i++) {                                        \
            sum[i] = (vector_##N){0} + (float)i;                                       \
        }                                                                              \
        for (size_t round = 0; round < rounds; round++) {                              \
            UNROLL for (size_t i = 0; i < SUMS_##N; i++) {                             \
                sum[i] = sum[i] * factor + summand;                                    \
            }                                                                          \
        }                                                                              \
        for (size_t i = 0; i < SUMS_##N; i++) {                                        \
            total += sum[i][0];                                                        \
        }                                                                              \
        return total;                                                                  \
    }

MULTIPLY_ADD(16)
MULTIPLY_ADD(8)
MULTIPLY_ADD(4)

/* Defines a function that adds up a buffer in eight sums of N floats, fetching AHEAD bytes early.
 */
#define SUM(N)                                                                  \
    CPU_INLINE float sum_##N(const float *buffer, size_t bytes) {               \
        enum { FLOATS = CPU_PROBE_READ_STEP / 4, AHEAD = 2048 };                \
        vector_##N sum[8] = {0};                                                \
        float total = 0.0f;                                                     \
        for (const float *at = buffer; at < buffer + bytes / 4; at += FLOATS) { \
            UNROLL for (size_t i = 0; i < FLOATS; i += 16) {                    \
                __builtin_prefetch(at + AHEAD + i);                             \
            }                                                                   \
            UNROLL for (size_t i = 0; i < FLOATS / (N); i++) {                  \
                sum[i % 8] += *(const vector_##N *)(at + i * (N));              \
            }                                                                   \
        }                                                                       \
        for (size_t i = 0; i < 8; i++) {                                        \
            for (size_t lane = 0; lane < (N); lane++) {                         \
                total += sum[i][lane];                                          \
            }                                                                   \
        }                                                                       \
        return total;                                                           \
    }

SUM(16)
SUM(8)
SUM(4)

double cpu_probe_round_flops(size_t lanes) {
    size_t sums = lanes == 16 ? SUMS_16 : lanes == 8 ? SUMS_8 : SUMS_4;
    return 2.0 * (double)(sums * lanes);
}

CPU_CLONES
float cpu_probe_multiply_add(size_t lanes, size_t rounds) {
    volatile const float operands[2] = {0.5f, 1.0f};
    return lanes == 16  ? multiply_add_16(rounds, operands)
           : lanes == 8 ? multiply_add_8(rounds, operands)
                        : multiply_add_4(rounds, operands);
}

CPU_CLONES
float cpu_probe_sum(size_t lanes, const float *buffer, size_t bytes) {
    return lanes == 16  ? sum_16(buffer, bytes)
           : lanes == 8 ? sum_8(buffer, bytes)
                        : sum_4(buffer, bytes);
}
