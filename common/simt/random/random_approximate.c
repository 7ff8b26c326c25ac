#include "common/simt/random/random_approximate.h"

/*
 * Bounds are the sum of what NVIDIA states for the function (CUDA C++ Programming Guide,
 * mathematical functions; PTX ISA, .approx instructions) and the same again for the emulator,
 * which must keep the same bound. Where all instructions of a function are exact, both give the
 * same bits: 0 ulps.
 */
const struct random_approximate random_approximates[] = {
    {"ex2.approx", "approximate_ex2(spread($I, -140.0f, 280.0f))", 4, 0},
    {"ex2.approx.ftz", "approximate_ex2_ftz(spread($I, -30.0f, 60.0f))", 4, 0},
    {"lg2.approx near 1", "approximate_lg2(spread($I, 0.5f, 1.5f))", 0, 0x1p-21},
    {"lg2.approx", "approximate_lg2(spread($I, 2.0f, 1e6f))", 4, 0},
    {"sin.approx", "approximate_sin(spread($I, -3.14f, 6.28f))", 0, 0x1p-19},
    {"cos.approx", "approximate_cos(spread($I, -3.14f, 6.28f))", 0, 0x1p-19},
    {"tanh.approx", "approximate_tanh(spread($I, -6.0f, 12.0f))", 0x1p13, 0},
    {"rcp.approx", "approximate_rcp(spread($I, 0.01f, 1e4f))", 2, 0},
    {"sqrt.approx", "approximate_sqrt(spread($I, 0.0f, 1e6f))", 4, 0},
    {"rsqrt.approx", "approximate_rsqrt(spread($I, 1e-3f, 1e6f))", 4, 0},
    {"__expf", "__expf(spread($I, -20.0f, 40.0f))", 4, 0},
    {"__exp10f", "__exp10f(spread($I, -8.0f, 16.0f))", 4, 0},
    {"__logf", "__logf(spread($I, 2.0f, 1e4f))", 6, 0},
    {"__log10f", "__log10f(spread($I, 2.0f, 1e4f))", 6, 0},
    {"__sinf", "__sinf(spread($I, -3.14f, 6.28f))", 0, 0x1p-19},
    {"__cosf", "__cosf(spread($I, -3.14f, 6.28f))", 0, 0x1p-19},
    {"__fdividef", "__fdividef(spread($I, -50.0f, 100.0f), spread($I, 0.5f, 100.0f))", 4, 0},
    {"rsqrtf", "rsqrtf(spread($I, 0.001f, 100.0f))", 4, 0},
    {"expf", "expf(spread($I, -80.0f, 160.0f))", 4, 0},
    {"exp2f", "exp2f(spread($I, -100.0f, 200.0f))", 4, 0},
    {"exp10f", "exp10f(spread($I, -20.0f, 40.0f))", 4, 0},
    {"expm1f", "expm1f(spread($I, -3.0f, 6.0f))", 4, 0},
    {"logf", "logf(spread($I, 0.0f, 100.0f))", 0, 0},
    {"log1pf", "log1pf(spread($I, -0.9f, 20.0f))", 0, 0},
    {"sinf", "sinf(spread($I, -20.0f, 40.0f))", 0, 0},
    {"cosf", "cosf(spread($I, -300000.0f, 600000.0f))", 0, 0},
    {"atanf", "atanf(spread($I, -3.0f, 6.0f))", 4, 0},
    {"tanhf", "tanhf(spread($I, -4.0f, 8.0f))", 4, 0},
    {"erff", "erff(spread($I, -3.0f, 6.0f))", 4, 0},
    {"cbrtf", "cbrtf(spread($I, -100.0f, 200.0f))", 2, 0},
    {"normcdff", "normcdff(spread($I, -3.0f, 6.0f))", 10, 0},
    {"powf", "powf(spread($I, 0.1f, 4.0f), spread($I, -3.0f, 6.0f))", 16, 0},
};
const size_t random_approximate_count = sizeof random_approximates / sizeof random_approximates[0];
