/* PTX corpus: half and bfloat16 arithmetic, conversions of all widths, packed integers. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <stdint.h>

template <typename T, typename T2> __global__ void narrow_arithmetic(const T2 *x, T2 *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    T2 a = x[i], b = y[i];
    T2 sum = __hadd2(a, b), product = __hmul2(a, b), fused = __hfma2(a, b, sum);
    T2 bounds = __hmin2(__hmax2(a, b), product);
    T2 other = __h2div(__hneg2(__habs2(fused)), __hsub2(a, bounds));
    bool less = __hlt(a.x, b.y) || __heq(a.y, b.x) || __hgt(sum.x, other.y);
    y[i] = less ? __hadd2(other, h2sqrt(a)) : h2exp2(__hadd2(h2rcp(b), h2log(a)));
    y[i].x = __hfma(a.x, b.x, hsin(a.y)) + T(1.5f) - hrsqrt(b.y) * __hadd_sat(a.x, b.x);
}

template __global__ void narrow_arithmetic<__half, __half2>(const __half2 *, __half2 *, int);
#if __CUDA_ARCH__ >= 800
template __global__ void narrow_arithmetic<__nv_bfloat16, __nv_bfloat162>(const __nv_bfloat162 *,
                                                                          __nv_bfloat162 *, int);
#endif

__global__ void narrow_conversions(const float *in, __half *h, __nv_bfloat16 *b, int *out) {
    float f = in[threadIdx.x];
    h[0] = __float2half(f);
    h[1] = __float2half_rz(f);
    h[2] = __int2half_rn(out[0]);
    h[3] = __double2half((double)f);
    h[4] = __ushort2half_rn((unsigned short)out[1]);
    b[0] = __float2bfloat16(f);
    b[1] = __float2bfloat16_rz(f);
    b[2] = __nv_bfloat16(out[2]);
    ((__half2 *)h)[8] = __floats2half2_rn(f, f * 2.0f);
    ((__nv_bfloat162 *)b)[8] = __floats2bfloat162_rn(f, f * 2.0f);
    out[0] = __half2int_rn(h[5]) + __half2uint_rd(h[6]) + __half2short_rz(h[7]);
    out[1] = (int)__bfloat162float(b[5]) + (int)__half2float(h[9]) + (int)__half2ll_rn(h[3]);
    out[2] = __nv_cvt_float_to_fp8(f, __NV_SATFINITE, __NV_E4M3) +
             __nv_cvt_float_to_fp8(f, __NV_SATFINITE, __NV_E5M2);
}

template <typename From, typename To> __global__ void convert(const From *in, To *out) {
    out[threadIdx.x] = static_cast<To>(in[threadIdx.x]);
}

#define CONVERT(from, to) template __global__ void convert<from, to>(const from *, to *);
#define CONVERT_FROM(from)     \
    CONVERT(from, signed char) \
    CONVERT(from, uint8_t)     \
    CONVERT(from, int16_t)     \
    CONVERT(from, uint16_t)    \
    CONVERT(from, int32_t)     \
    CONVERT(from, uint32_t)    \
    CONVERT(from, int64_t)     \
    CONVERT(from, uint64_t)    \
    CONVERT(from, float)       \
    CONVERT(from, double)
CONVERT_FROM(signed char)
CONVERT_FROM(uint8_t)
CONVERT_FROM(int16_t)
CONVERT_FROM(uint16_t)
CONVERT_FROM(int32_t)
CONVERT_FROM(uint32_t)
CONVERT_FROM(int64_t)
CONVERT_FROM(uint64_t)
CONVERT_FROM(float)
CONVERT_FROM(double)

__global__ void rounding(float *f, double *d, int *i, unsigned long long *u) {
    i[0] = __float2int_rn(f[0]) + __float2int_ru(f[1]) + __double2int_rd(d[0]);
    u[0] = __float2ull_rz(f[2]) + __double2ull_rn(d[1]);
    f[3] = __double2float_rd(d[2]) + __int2float_ru(i[1]) + __ull2float_rz(u[1]);
    d[3] = floor(d[4]) + ceil(d[5]) + trunc(d[6]) + rint(d[7]) + __uint2double_rn(i[2]);
    f[4] = floorf(f[5]) + ceilf(f[6]) + truncf(f[7]) + rintf(f[8]) + roundf(f[9]);
    f[5] = __saturatef(f[10]) + __int_as_float(i[3]) + __hiloint2double(i[4], i[5]);
}

__global__ void packed(unsigned *x) {
    unsigned a = x[0], b = x[1], c = x[2];
    x[3] = __byte_perm(a, b, c) + __dp4a((int)a, (int)b, (int)c) + __dp4a(a, b, c);
    x[4] = __vadd4(a, b) + __vabsdiffu4(a, b) + __vmaxs2(a, b) + __vcmpgtu4(a, c);
    x[5] = __funnelshift_l(a, b, c) + __funnelshift_rc(a, b, c) + __brev(a) + __sad(a, b, c);
    x[6] = __umulhi(a, b) + __mulhi((int)a, (int)b) + __umul24(a, b) + __ffs(a) + __clz(b);
    x[7] = __uhadd(a, b) + __urhadd(a, c) + __dp2a_lo(a, b, c) + __dp2a_hi((int)a, (int)b, (int)c);
    unsigned long long w = ((unsigned long long *)x)[8];
    ((unsigned long long *)x)[9] = __umul64hi(w, w + a) + __brevll(w) + __popcll(w) + __clzll(w);
    ((__int128 *)x)[10] += (__int128)w * w - ((__int128 *)x)[11];
    ((unsigned *)x)[60] = (unsigned)(w / (a | 1u)) + (unsigned)(w % (b | 1u)) + a / (b | 1u);
}
