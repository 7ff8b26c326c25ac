/* How far attention may be from the oracle, by dtype: for the bench, tests and the grader. */
#include <math.h>

#include "common/nn/dtype.h"
#include "common/testing/compare.h"
#include "labs/07_attention/problem/case.h"

struct tolerance attention_case_tolerance(const struct attention_spec *s) {
    double size = fmax(1.0, (double)s->loudness);
    double score = tolerance_dot_f32(s->HS, size).absolute + 0x1p-21;
    double rounding = nn_dtype_rounding(s->dtype);
    double largest_value = 4.0;
    return (struct tolerance){
        .absolute = largest_value * (score + (s->dtype == NN_F32 ? 0.0 : rounding)),
        .relative = rounding,
        .norm = 4.0 * score + 2.0 * rounding,
    };
}
