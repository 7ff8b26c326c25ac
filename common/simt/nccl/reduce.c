#include "common/simt/nccl/reduce.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "common/simt/alu/half.h"

/* Elements at a time: outputs may be inputs, so all ranks' are read before any is written. */
enum { PIECE = 1024 };

static const struct {
    const char *name;
    uint64_t bytes;
} TYPES[COLLECTIVE_TYPES] = {
    [COLLECTIVE_INT8] = {"int8", 1},       [COLLECTIVE_UINT8] = {"uint8", 1},
    [COLLECTIVE_INT32] = {"int32", 4},     [COLLECTIVE_UINT32] = {"uint32", 4},
    [COLLECTIVE_INT64] = {"int64", 8},     [COLLECTIVE_UINT64] = {"uint64", 8},
    [COLLECTIVE_FLOAT16] = {"float16", 2}, [COLLECTIVE_FLOAT32] = {"float32", 4},
    [COLLECTIVE_FLOAT64] = {"float64", 8}, [COLLECTIVE_BFLOAT16] = {"bfloat16", 2},
};

const char *collective_type_name(uint32_t type) {
    return type < COLLECTIVE_TYPES ? TYPES[type].name : "unknown type";
}

uint64_t collective_type_bytes(uint32_t type) {
    return type < COLLECTIVE_TYPES ? TYPES[type].bytes : 0;
}

/* ---- Elements ---- */

union number {
    int64_t i;
    uint64_t u;
    double d;
    float f;
};

static bool is_float(enum collective_type type) {
    return type >= COLLECTIVE_FLOAT16 && type <= COLLECTIVE_BFLOAT16;
}

static bool is_signed(enum collective_type type) {
    return type == COLLECTIVE_INT8 || type == COLLECTIVE_INT32 || type == COLLECTIVE_INT64;
}

/* Integers get 64 bits, floats of 16 bits become floats. */
static union number load(enum collective_type type, const unsigned char *from) {
    union number x = {.u = 0};
    memcpy(&x, from, TYPES[type].bytes);
    switch (type) {
    case COLLECTIVE_INT8:
        x.i = (int8_t)x.u;
        break;
    case COLLECTIVE_INT32:
        x.i = (int32_t)x.u;
        break;
    case COLLECTIVE_FLOAT16:
        x.f = half_to_float((uint32_t)x.u);
        break;
    case COLLECTIVE_BFLOAT16:
        x.f = bfloat_to_float((uint32_t)x.u);
        break;
    default:
        break;
    }
    return x;
}

static void store(enum collective_type type, union number x, unsigned char *to) {
    if (type == COLLECTIVE_FLOAT16) {
        x.u = float_to_half(x.f);
    } else if (type == COLLECTIVE_BFLOAT16) {
        x.u = float_to_bfloat(x.f);
    }
    memcpy(to, &x, TYPES[type].bytes);
}

/* To the type and back. */
static union number round_to(enum collective_type type, union number x) {
    unsigned char bytes[8];
    store(type, x, bytes);
    return load(type, bytes);
}

static union number of_floats(enum collective_operation operation, float a, float b) {
    return operation == COLLECTIVE_PROD  ? (union number){.f = a * b}
           : operation == COLLECTIVE_MAX ? (union number){.f = fmaxf(a, b)}
           : operation == COLLECTIVE_MIN ? (union number){.f = fminf(a, b)}
                                         : (union number){.f = a + b};
}

static union number of_doubles(enum collective_operation operation, double a, double b) {
    return operation == COLLECTIVE_PROD  ? (union number){.d = a * b}
           : operation == COLLECTIVE_MAX ? (union number){.d = fmax(a, b)}
           : operation == COLLECTIVE_MIN ? (union number){.d = fmin(a, b)}
                                         : (union number){.d = a + b};
}

static union number of_integers(enum collective_type type, enum collective_operation operation,
                                union number a, union number b) {
    bool less = is_signed(type) ? a.i < b.i : a.u < b.u;
    switch (operation) {
    case COLLECTIVE_PROD:
        return (union number){.u = a.u * b.u};
    case COLLECTIVE_MAX:
        return less ? b : a;
    case COLLECTIVE_MIN:
        return less ? a : b;
    default:
        return (union number){.u = a.u + b.u};
    }
}

static union number combine(enum collective_type type, enum collective_operation operation,
                            union number a, union number b) {
    union number x = type == COLLECTIVE_FLOAT64 ? of_doubles(operation, a.d, b.d)
                     : is_float(type)           ? of_floats(operation, a.f, b.f)
                                                : of_integers(type, operation, a, b);
    return round_to(type, x);
}

static union number whole(enum collective_type type, uint64_t number, bool inverse) {
    double value = inverse ? 1.0 / (double)number : (double)number;
    return type == COLLECTIVE_FLOAT64 ? (union number){.d = value}
           : is_float(type)           ? round_to(type, (union number){.f = (float)value})
                                      : (union number){.u = number};
}

static union number divide(enum collective_type type, union number x, uint64_t by) {
    return is_signed(type) ? (union number){.i = x.i / (int64_t)by} : (union number){.u = x.u / by};
}

/* ---- Vectors ---- */

/* What all ranks have of an element. */
static union number reduce_one(enum collective_type type, enum collective_operation operation,
                               const unsigned char *const *inputs, size_t ranks, size_t offset,
                               const uint64_t *scalars) {
    bool averages = operation == COLLECTIVE_AVG;
    bool scales = operation == COLLECTIVE_PRE_MUL_SUM || (averages && is_float(type));
    union number inverse = whole(type, ranks, true), sum = {.u = 0};
    for (size_t rank = 0; rank < ranks; rank++) {
        union number x = load(type, inputs[rank] + offset);
        if (scales) {
            union number factor =
                averages ? inverse : load(type, (const unsigned char *)&scalars[rank]);
            x = combine(type, COLLECTIVE_PROD, x, factor);
        }
        sum = rank == 0 ? x : combine(type, operation, sum, x);
    }
    return averages && !is_float(type) ? divide(type, sum, ranks) : sum;
}

void collective_reduce(enum collective_type type, enum collective_operation operation,
                       const unsigned char *const *inputs, size_t ranks,
                       unsigned char *const *outputs, size_t output_count, size_t count,
                       const uint64_t *scalars) {
    size_t bytes = TYPES[type].bytes;
    unsigned char piece[PIECE * sizeof(union number)];
    for (size_t begin = 0; begin < count; begin += PIECE) {
        size_t elements = count - begin < PIECE ? count - begin : PIECE;
        for (size_t i = 0; i < elements; i++) {
            union number x =
                reduce_one(type, operation, inputs, ranks, (begin + i) * bytes, scalars);
            store(type, x, piece + i * bytes);
        }
        for (size_t n = 0; n < output_count; n++) {
            memcpy(outputs[n] + begin * bytes, piece, elements * bytes);
        }
    }
}
