#include "solutions/13_low_bit/decoder/stored_numbers.h"

#include <math.h>
#include <string.h>

enum { MOST_VALUES = 256 };

/* The values of a group, each once, in order. */
struct values {
    float of[MOST_VALUES];
    size_t count, most; /* most: 2^bits */
};

/* What the numbers of a group stand for, and the least and largest of them, less the zero point. */
struct grid {
    float scale;
    int least, largest;
};

/* @return false if there are more values than numbers */
static bool insert(struct values *v, float x) {
    size_t low = 0, high = v->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (v->of[middle] < x) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < v->count && v->of[low] == x) {
        return true;
    }
    if (v->count == v->most || !isfinite(x)) {
        return false;
    }
    memmove(v->of + low + 1, v->of + low, (v->count - low) * sizeof *v->of);
    v->of[low] = x;
    v->count++;
    return true;
}

static bool collect(struct values *v, const float *weights, size_t count, size_t most) {
    v->count = 0;
    v->most = most;
    for (size_t i = 0; i < count; i++) {
        if (!insert(v, weights[i])) {
            return false;
        }
    }
    return true;
}

/* The nearest scale of a type. */
static float stored_scale(float scale, enum nn_dtype dtype) {
    char bytes[4];
    nn_dtype_store(bytes, &scale, 1, dtype);
    nn_dtype_load(&scale, bytes, 1, dtype);
    return scale;
}

/* Whether all values are multiples of grid->scale, of few enough numbers. */
static bool fits(const struct values *v, bool int4, struct grid *grid) {
    const int levels = (int)v->most - 1;
    for (size_t i = 0; i < v->count; i++) {
        float number = rintf(v->of[i] / grid->scale);
        if (!(fabsf(number) <= (float)levels) || grid->scale * number != v->of[i]) {
            return false;
        }
        grid->least = i == 0 ? (int)number : grid->least;
        grid->largest = (int)number;
    }
    return int4 ? grid->largest - grid->least <= levels /* then there is a zero point */
                : grid->least >= -128 && grid->largest <= 127;
}

/* The smallest step between values is one of the numbers, or some of them. */
static bool find_grid(const struct values *v, bool int4, enum nn_dtype dtype, struct grid *grid) {
    float step = fabsf(v->of[0]);
    for (size_t i = 1; i < v->count; i++) {
        float apart = v->of[i] - v->of[i - 1];
        step = i == 1 || apart < step ? apart : step;
    }
    if (step == 0.0f) {
        *grid = (struct grid){1.0f, 0, 0};
        return true;
    }
    for (size_t parts = 1; parts < v->most; parts++) {
        grid->scale = stored_scale(step / (float)parts, dtype);
        if (grid->scale > 0.0f && isfinite(grid->scale) && fits(v, int4, grid)) {
            return true;
        }
    }
    return false;
}

/* The zero point that is nearest to 8 among those with all numbers in 0 .. 15. */
static int zero_of(const struct grid *grid) {
    int least = -grid->least, most = 15 - grid->largest;
    least = least < 0 ? 0 : least;
    most = most > 15 ? 15 : most;
    return least > 8 ? least : most < 8 ? most : 8;
}

static bool find_group(const float *weights, struct low_bit_matrix *m, size_t row, size_t group) {
    const struct low_bit_layout *l = &m->layout;
    bool int4 = l->type == LOW_BIT_INT4;
    size_t first = group * l->group, end = first + l->group;
    struct values v = {.count = 0};
    struct grid grid = {1.0f, 0, 0};
    end = end < l->columns ? end : l->columns;
    if (!collect(&v, weights + row * l->columns + first, end - first, int4 ? 16 : 256) ||
        !find_grid(&v, int4, l->scale_dtype, &grid)) {
        return false;
    }
    int zero = int4 ? zero_of(&grid) : 0;
    low_bit_set_group(m, row, group, grid.scale, (uint8_t)zero);
    for (size_t c = first; c < end; c++) {
        float number = rintf(weights[row * l->columns + c] / grid.scale);
        low_bit_set(m, row, c, (uint8_t)((int)number + zero));
    }
    return true;
}

bool stored_numbers_find(const float *weights, struct low_bit_matrix *matrix) {
    const struct low_bit_layout *l = &matrix->layout;
    if (l->type == LOW_BIT_FP8) {
        return false;
    }
    for (size_t row = 0; row < l->rows; row++) {
        for (size_t group = 0; group < low_bit_groups(l); group++) {
            if (!find_group(weights, matrix, row, group)) {
                return false;
            }
        }
    }
    return true;
}
