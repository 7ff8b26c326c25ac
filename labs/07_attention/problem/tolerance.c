/* How far attention may be from the oracle, by dtype: for the bench, tests and the grader. */
#include <math.h>

#include "common/nn/dtype.h"
#include "common/testing/compare.h"
#include "labs/07_attention/problem/case.h"

struct tolerance attention_tolerance(enum nn_dtype dtype, size_t HS, double loudness,
                                     double largest_value) {
    double score = tolerance_dot_f32(HS, fmax(1.0, loudness)).absolute + 0x1p-21;
    double rounding = nn_dtype_rounding(dtype);
    return (struct tolerance){
        .absolute = largest_value * (score + (dtype == NN_F32 ? 0.0 : rounding)),
        .relative = rounding,
        .norm = 4.0 * score + 2.0 * rounding,
    };
}

struct tolerance attention_case_tolerance(const struct attention_spec *s) {
    return attention_tolerance(s->dtype, s->HS, (double)s->loudness, 4.0);
}
