/**
 * @file vector_math_test.c
 * @brief The error of every function of vector_math.h over its range, against double.
 */
#include "common/cpu/vector_math.h"

#include "common/testing/testing.h"

static double gelu(double x) {
    return 0.5 * x * erfc(-x * M_SQRT1_2);
}

static double gelu_slope(double x) {
    return 0.5 * erfc(-x * M_SQRT1_2) + x * 0.39894228040143267794 * exp(-0.5 * x * x);
}

static double gelu_tanh(double x) {
    return x / (1.0 + exp(-2.0 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

static double silu(double x) {
    return x / (1.0 + exp(-x));
}

static double sigmoid(double x) {
    return 1.0 / (1.0 + exp(-x));
}

/* As loops in a function with clones, the form in which they are used. */
#define FUNCTION(name)                                                               \
    CPU_CLONES static void apply_##name(float *out, const float *in, size_t count) { \
        for (size_t i = 0; i < count; i++) {                                         \
            out[i] = vector_##name(in[i]);                                           \
        }                                                                            \
    }
FUNCTION(exp)
FUNCTION(sigmoid)
FUNCTION(silu)
FUNCTION(tanh)
FUNCTION(gelu)
FUNCTION(gelu_slope)
FUNCTION(gelu_tanh)

typedef void function(float *out, const float *in, size_t count);

/* |got - want| <= (relative |want| + absolute) * 2^-24 for 2^18 values from low to high. */
static void check(const char *what, function *apply, double (*right)(double), double low,
                  double high, double relative, double absolute) {
    enum { COUNT = 1 << 18 };
    static float in[COUNT], out[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        in[i] = (float)(low + (high - low) * (double)i / COUNT);
    }
    apply(out, in, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        double want = right((double)in[i]), error = fabs((double)out[i] - want);
        if (!(error <= (relative * fabs(want) + absolute) * 0x1p-24)) {
            TEST_FAIL("%s(%.9g): got %.9g, want %.9g, error %.3g", what, (double)in[i],
                      (double)out[i], want, error);
            return;
        }
    }
}

C_TEST(vector_math, errors_are_bounded) {
    check("exp", apply_exp, exp, -87.2, 88.7, 2, 0);
    check("exp", apply_exp, exp, -200.0, -87.2, 0, 1e-30);
    check("sigmoid", apply_sigmoid, sigmoid, -87.0, 100.0, 4, 0);
    check("silu", apply_silu, silu, -87.0, 100.0, 5, 0);
    check("tanh", apply_tanh, tanh, -20.0, 20.0, 4, 0);
    check("tanh", apply_tanh, tanh, -1e-3, 1e-3, 4, 0);
    check("gelu", apply_gelu, gelu, -4.0, 40.0, 16, 0); /* x^2 is rounded before exp */
    check("gelu", apply_gelu, gelu, -40.0, -4.0, 0, 0.02);
    check("gelu_slope", apply_gelu_slope, gelu_slope, -40.0, 40.0, 3, 2);
    check("gelu_tanh", apply_gelu_tanh, gelu_tanh, -4.0, 40.0, 16, 1);
    check("gelu_tanh", apply_gelu_tanh, gelu_tanh, -40.0, -4.0, 0, 0.2);
}
