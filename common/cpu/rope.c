/**
 * @file rope.c
 * @brief Rotary embedding from a table of cosines and sines, which are computed once a position.
 *
 * pow(), cos() and sin() of every pair and token took a quarter of decoding a model of 260,000
 * weights.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/base/cpu.h"
#include "common/cpu/cpu_operators.h"

void cpu_rope_table_free(struct cpu_rope_table *table) {
    free(table->angles);
    free(table->frequencies);
    *table = (struct cpu_rope_table){0};
}

static double frequency_of(const struct cpu_rope_table *table, size_t pair) {
    return table->frequencies != NULL
               ? (double)table->frequencies[pair]
               : pow((double)table->theta, -2.0 * (double)pair / (double)table->HS);
}

static void fill(struct cpu_rope_table *table, size_t first) {
    size_t pairs = table->HS / 2;
    for (size_t i = 0; i < pairs; i++) {
        double frequency = frequency_of(table, i);
        for (size_t p = first; p < table->positions; p++) {
            double angle = (double)p * frequency;
            table->angles[2 * p * pairs + i] = (float)cos(angle);
            table->angles[(2 * p + 1) * pairs + i] = (float)sin(angle);
        }
    }
}

/* At least `positions`, and at least twice as many as before. */
static enum status grow(struct cpu_rope_table *table, size_t positions) {
    size_t first = table->positions, bytes;
    if (positions < 2 * first) {
        positions = 2 * first;
    }
    if (!checked_multiply(positions, table->HS * sizeof(float), &bytes)) {
        return STATUS_OVERFLOW;
    }
    float *angles = realloc(table->angles, bytes);
    if (angles == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    table->angles = angles;
    table->positions = positions;
    fill(table, first);
    return STATUS_OK;
}

CPU_CLONES
static void rotate_interleaved(float *x, const float *cosine, const float *sine, size_t pairs,
                               float sign) {
#pragma omp simd
    for (size_t i = 0; i < pairs; i++) {
        float a = x[2 * i], b = x[2 * i + 1];
        x[2 * i] = a * cosine[i] - b * (sign * sine[i]);
        x[2 * i + 1] = a * (sign * sine[i]) + b * cosine[i];
    }
}

CPU_CLONES
static void rotate_halves(float *x, const float *cosine, const float *sine, size_t pairs,
                          float sign) {
#pragma omp simd
    for (size_t i = 0; i < pairs; i++) {
        float a = x[i], b = x[i + pairs];
        x[i] = a * cosine[i] - b * (sign * sine[i]);
        x[i + pairs] = a * (sign * sine[i]) + b * cosine[i];
    }
}

void cpu_rope_token(const struct cpu_rope_table *table, float *x, size_t heads, size_t position,
                    enum nn_rope_layout layout, bool back) {
    size_t pairs = table->HS / 2;
    const float *cosine = table->angles + 2 * position * pairs, *sine = cosine + pairs;
    for (size_t h = 0; h < heads; h++, x += table->HS) {
        if (layout == NN_ROPE_INTERLEAVED) {
            rotate_interleaved(x, cosine, sine, pairs, back ? -1.0f : 1.0f);
        } else {
            rotate_halves(x, cosine, sine, pairs, back ? -1.0f : 1.0f);
        }
    }
}

static bool has_frequencies(const struct cpu_rope_table *table, size_t HS, float theta,
                            const float *frequencies) {
    if (table->HS != HS || (table->frequencies == NULL) != (frequencies == NULL)) {
        return false;
    }
    return frequencies == NULL
               ? table->theta == theta
               : memcmp(table->frequencies, frequencies, HS / 2 * sizeof *frequencies) == 0;
}

static enum status begin_table(struct cpu_rope_table *table, size_t HS, float theta,
                               const float *frequencies) {
    cpu_rope_table_free(table);
    if (frequencies != NULL) {
        table->frequencies = malloc(HS / 2 * sizeof *frequencies);
        if (table->frequencies == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
        memcpy(table->frequencies, frequencies, HS / 2 * sizeof *frequencies);
    }
    table->HS = HS;
    table->theta = theta;
    return STATUS_OK;
}

enum status cpu_rope_reserve(struct cpu_rope_table *table, size_t HS, float theta,
                             const float *frequencies, size_t positions) {
    if (HS < 2) {
        return STATUS_OK;
    }
    if (!has_frequencies(table, HS, theta, frequencies)) {
        TRY(begin_table(table, HS, theta, frequencies));
    }
    return positions > table->positions ? grow(table, positions) : STATUS_OK;
}

enum status cpu_rope(struct cpu_rope_table *table, float *x, size_t T, size_t heads, size_t HS,
                     size_t stride, size_t position, float theta, const float *frequencies,
                     enum nn_rope_layout layout) {
    if (T == 0 || HS < 2) {
        return STATUS_OK;
    }
    TRY(cpu_rope_reserve(table, HS, theta, frequencies, position + T));
    for (size_t t = 0; t < T; t++) {
        cpu_rope_token(table, x + t * stride, heads, position + t, layout, false);
    }
    return STATUS_OK;
}
