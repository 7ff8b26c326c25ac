/* PTX corpus: the mathematical functions of float and double, and the intrinsics. */

#define UNARY(X)                                                                                   \
    X(sin)                                                                                         \
    X(cos)                                                                                         \
    X(tan)                                                                                         \
    X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh) X(acosh) X(atanh) X(exp) X(exp2)      \
        X(exp10) X(expm1) X(log) X(log2) X(log10) X(log1p) X(sqrt) X(rsqrt) X(cbrt) X(erf) X(erfc) \
            X(erfinv) X(normcdf) X(tgamma) X(lgamma) X(j0) X(y1) X(sinpi) X(cospi) X(floor)        \
                X(round) X(logb) X(fabs) X(nearbyint) X(erfcx) X(rcbrt)
#define BINARY(X) \
    X(pow) X(atan2) X(hypot) X(fmod) X(remainder) X(fmin) X(fmax) X(fdim) X(copysign) X(nextafter)

#define UNARY_KERNEL(name)                        \
    __global__ void float_##name(float *x) {      \
        x[threadIdx.x] = name##f(x[threadIdx.x]); \
    }                                             \
    __global__ void double_##name(double *x) {    \
        x[threadIdx.x] = name(x[threadIdx.x]);    \
    }
#define BINARY_KERNEL(name)                                       \
    __global__ void float_##name(float *x, const float *y) {      \
        x[threadIdx.x] = name##f(x[threadIdx.x], y[threadIdx.x]); \
    }                                                             \
    __global__ void double_##name(double *x, const double *y) {   \
        x[threadIdx.x] = name(x[threadIdx.x], y[threadIdx.x]);    \
    }
UNARY(UNARY_KERNEL)
BINARY(BINARY_KERNEL)

__global__ void mixed(float *f, double *d, int *i) {
    sincosf(f[0], &f[1], &f[2]);
    sincos(d[0], &d[1], &d[2]);
    f[3] = frexpf(f[4], i) + ldexpf(f[5], i[1]) + modff(f[6], &f[7]) + fmaf(f[8], f[9], f[10]);
    d[3] = frexp(d[4], i) + ldexp(d[5], i[1]) + modf(d[6], &d[7]) + fma(d[8], d[9], d[10]);
    i[2] = isnan(f[11]) + isinf(d[11]) + signbit(f[12]) + ilogb(d[12]) + (int)lrint(d[13]);
    i[3] = (int)llround(d[14]) + (int)lroundf(f[13]) + isfinite(f[14]);
    f[15] = f[16] / f[17] + 1.0f / f[18];
    d[15] = d[16] / d[17] + 1.0 / d[18];
}

__global__ void intrinsics(float *f, double *d) {
    f[0] = __sinf(f[1]) + __cosf(f[2]) + __expf(f[3]) + __logf(f[4]) + __powf(f[5], f[6]);
    f[1] = __fdividef(f[7], f[8]) + __frcp_rn(f[9]) + __fsqrt_rz(f[10]) + __frsqrt_rn(f[11]);
    f[2] = __fadd_ru(f[1], f[2]) + __fmul_rd(f[3], f[4]) + __fmaf_rz(f[5], f[6], f[7]);
    f[3] = __fdiv_ru(f[1], f[2]) + __tanf(f[3]) + __log2f(f[4]) + __exp10f(f[5]);
    d[0] = __dadd_rz(d[1], d[2]) + __dmul_ru(d[3], d[4]) + __fma_rd(d[5], d[6], d[7]);
    d[1] = __ddiv_rn(d[1], d[2]) + __dsqrt_ru(d[3]) + __drcp_rd(d[4]);
    asm("tanh.approx.f32 %0, %1;" : "=f"(f[20]) : "f"(f[21]));
    asm("add.rn.ftz.sat.f32 %0, %1, 0f3F800000;" : "=f"(f[22]) : "f"(f[23]));
    asm("fma.rn.f64 %0, %1, 0dBFF0000000000000, %2;" : "=d"(d[22]) : "d"(d[23]), "d"(d[24]));
}
