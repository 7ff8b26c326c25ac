/* Kernels for tensor_test: one matrix product each, on fragments that the test lays out itself. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

/* Registers of all lanes: (32, NA), (32, NB), (32, NC); the result replaces c. */
template <int N> __device__ void fetch(unsigned (&registers)[N], const unsigned *from) {
    for (int i = 0; i < N; i++) {
        registers[i] = from[threadIdx.x * N + i];
    }
}

template <int N> __device__ void put(const unsigned (&registers)[N], unsigned *to) {
    for (int i = 0; i < N; i++) {
        to[threadIdx.x * N + i] = registers[i];
    }
}

#define OUT4 "{%0, %1, %2, %3}"
#define OUT2 "{%0, %1}"
#define RW4(d) "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])

/* A of four registers, B of two, C of four. */
#define MMA_4_2_4(name, form)                                                                    \
    extern "C" __global__ void name(const unsigned *pa, const unsigned *pb, unsigned *pc) {      \
        unsigned a[4], b[2], d[4];                                                               \
        fetch(a, pa);                                                                            \
        fetch(b, pb);                                                                            \
        fetch(d, pc);                                                                            \
        asm volatile("mma.sync.aligned." form " " OUT4 ", {%4, %5, %6, %7}, {%8, %9}, " OUT4 ";" \
                     : RW4(d)                                                                    \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));        \
        put(d, pc);                                                                              \
    }

/* A of two registers, B of one, C of four. */
#define MMA_2_1_4(name, form)                                                               \
    extern "C" __global__ void name(const unsigned *pa, const unsigned *pb, unsigned *pc) { \
        unsigned a[2], b[1], d[4];                                                          \
        fetch(a, pa);                                                                       \
        fetch(b, pb);                                                                       \
        fetch(d, pc);                                                                       \
        asm volatile("mma.sync.aligned." form " " OUT4 ", {%4, %5}, {%6}, " OUT4 ";"        \
                     : RW4(d)                                                               \
                     : "r"(a[0]), "r"(a[1]), "r"(b[0]));                                    \
        put(d, pc);                                                                         \
    }

/* As the first, with two registers of C. */
#define MMA_4_2_2(name, form)                                                                    \
    extern "C" __global__ void name(const unsigned *pa, const unsigned *pb, unsigned *pc) {      \
        unsigned a[4], b[2], d[2];                                                               \
        fetch(a, pa);                                                                            \
        fetch(b, pb);                                                                            \
        fetch(d, pc);                                                                            \
        asm volatile("mma.sync.aligned." form " " OUT2 ", {%2, %3, %4, %5}, {%6, %7}, " OUT2 ";" \
                     : "+r"(d[0]), "+r"(d[1])                                                    \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));        \
        put(d, pc);                                                                              \
    }

MMA_4_2_4(f16_k16, "m16n8k16.row.col.f32.f16.f16.f32")
MMA_2_1_4(f16_k8, "m16n8k8.row.col.f32.f16.f16.f32")
MMA_4_2_2(f16_k16_f16, "m16n8k16.row.col.f16.f16.f16.f16")
MMA_4_2_4(bf16_k16, "m16n8k16.row.col.f32.bf16.bf16.f32")
MMA_2_1_4(bf16_k8, "m16n8k8.row.col.f32.bf16.bf16.f32")
MMA_4_2_4(tf32_k8, "m16n8k8.row.col.f32.tf32.tf32.f32")
MMA_2_1_4(tf32_k4, "m16n8k4.row.col.f32.tf32.tf32.f32")
MMA_4_2_4(s8_k32, "m16n8k32.row.col.s32.s8.s8.s32")
MMA_4_2_4(s8_k32_saturating, "m16n8k32.row.col.satfinite.s32.s8.s8.s32")
MMA_2_1_4(s8_k16, "m16n8k16.row.col.s32.s8.s8.s32")
MMA_4_2_4(u8_s8_k32, "m16n8k32.row.col.s32.u8.s8.s32")
MMA_4_2_4(s4_k64, "m16n8k64.row.col.s32.s4.s4.s32")
MMA_2_1_4(u4_k32, "m16n8k32.row.col.s32.u4.u4.s32")
MMA_4_2_4(e4m3_k32, "m16n8k32.row.col.f32.e4m3.e4m3.f32")
MMA_4_2_4(e5m2_e4m3_k32, "m16n8k32.row.col.f32.e5m2.e4m3.f32")

extern "C" __global__ void f64_k4(const double *a, const double *b, double *c) {
    int t = threadIdx.x;
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(c[2 * t]), "+d"(c[2 * t + 1])
                 : "d"(a[t]), "d"(b[t]));
}

extern "C" __global__ void f64_k8(const double *a, const double *b, double *c) {
    int t = threadIdx.x;
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(c[4 * t]), "+d"(c[4 * t + 1]), "+d"(c[4 * t + 2]), "+d"(c[4 * t + 3])
                 : "d"(a[4 * t]), "d"(a[4 * t + 1]), "d"(a[4 * t + 2]), "d"(a[4 * t + 3]),
                   "d"(b[2 * t]), "d"(b[2 * t + 1]));
}

/* Volta's: A and B of two registers; sums of eight fp32, or of eight fp16 in four registers. */
#define OUT8 "{%0, %1, %2, %3, %4, %5, %6, %7}"
#define VOLTA_FLOAT(name, layouts)                                                                 \
    extern "C" __global__ void name(const unsigned *pa, const unsigned *pb, unsigned *pc) {        \
        unsigned a[2], b[2], d[8];                                                                 \
        fetch(a, pa);                                                                              \
        fetch(b, pb);                                                                              \
        fetch(d, pc);                                                                              \
        asm volatile("mma.sync.aligned.m8n8k4." layouts ".f32.f16.f16.f32 " OUT8                   \
                     ", {%8, %9}, {%10, %11}, " OUT8 ";"                                           \
                     : RW4(d), "+r"(d[4]), "+r"(d[5]), "+r"(d[6]), "+r"(d[7])                      \
                     : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]));                                \
        put(d, pc);                                                                                \
    }
VOLTA_FLOAT(volta_row_col, "row.col")
VOLTA_FLOAT(volta_row_row, "row.row")
VOLTA_FLOAT(volta_col_col, "col.col")
VOLTA_FLOAT(volta_col_row, "col.row")

extern "C" __global__ void volta_half(const unsigned *pa, const unsigned *pb, unsigned *pc) {
    unsigned a[2], b[2], d[4];
    fetch(a, pa);
    fetch(b, pb);
    fetch(d, pc);
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 " OUT4 ", {%4, %5}, {%6, %7}, " OUT4
                 ";"
                 : RW4(d)
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]));
    put(d, pc);
}

/* c = 2 * (3 * a * b + c) + 1, element-wise work on the fragments of A and of the sum. */
template <int M, int N, int K, typename T, typename LA, typename LB, typename Store, typename Sum>
__device__ void tile(const Store *a, const Store *b, Sum *c, int lda, int ldb, int ldc,
                     wmma::layout_t order) {
    wmma::fragment<wmma::matrix_a, M, N, K, T, LA> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, T, LB> fb;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> sum;
    wmma::load_matrix_sync(fa, a, lda);
    wmma::load_matrix_sync(fb, b, ldb);
    wmma::load_matrix_sync(sum, c, ldc, order);
    for (int i = 0; i < fa.num_elements; i++) {
        fa.x[i] = fa.x[i] * Store(3);
    }
    wmma::mma_sync(sum, fa, fb, sum);
    for (int i = 0; i < sum.num_elements; i++) {
        sum.x[i] = sum.x[i] * Sum(2) + Sum(1);
    }
    wmma::store_matrix_sync(c, sum, ldc, order);
}

#define TILE(name, M, N, K, T, Store, Sum, LA, LB, order)                                     \
    extern "C" __global__ void name(const Store *a, const Store *b, Sum *c, int lda, int ldb, \
                                    int ldc) {                                                \
        tile<M, N, K, T, wmma::LA, wmma::LB>(a, b, c, lda, ldb, ldc, wmma::order);            \
    }

TILE(w_f16_rr, 16, 16, 16, half, half, float, row_major, row_major, mem_row_major)
TILE(w_f16_rc, 16, 16, 16, half, half, float, row_major, col_major, mem_row_major)
TILE(w_f16_cr, 16, 16, 16, half, half, float, col_major, row_major, mem_col_major)
TILE(w_f16_cc, 16, 16, 16, half, half, float, col_major, col_major, mem_col_major)
TILE(w_f16_tall, 32, 8, 16, half, half, float, row_major, col_major, mem_row_major)
TILE(w_f16_wide, 8, 32, 16, half, half, float, col_major, row_major, mem_row_major)
TILE(w_half_sum, 16, 16, 16, half, half, half, row_major, col_major, mem_row_major)
TILE(w_bf16, 16, 16, 16, __nv_bfloat16, __nv_bfloat16, float, row_major, row_major, mem_row_major)
TILE(w_bf16_tall, 32, 8, 16, __nv_bfloat16, __nv_bfloat16, float, col_major, col_major,
     mem_row_major)
TILE(w_tf32, 16, 16, 8, wmma::precision::tf32, float, float, row_major, col_major, mem_row_major)
TILE(w_s8, 16, 16, 16, signed char, signed char, int, row_major, col_major, mem_row_major)
TILE(w_u8_wide, 8, 32, 16, unsigned char, unsigned char, int, row_major, row_major, mem_col_major)
TILE(w_s8_tall, 32, 8, 16, signed char, signed char, int, col_major, col_major, mem_row_major)
TILE(w_f64, 8, 8, 4, double, double, double, row_major, col_major, mem_row_major)

/* Through shared memory, with addresses of 32 bits. */
extern "C" __global__ void w_shared(const half *a, const half *b, float *c) {
    __shared__ __align__(32) half sa[256], sb[256];
    __shared__ __align__(32) float sc[256];
    for (int i = threadIdx.x; i < 256; i += 32) {
        sa[i] = a[i];
        sb[i] = b[i];
        sc[i] = c[i];
    }
    __syncwarp();
    tile<16, 16, 16, half, wmma::row_major, wmma::row_major>(sa, sb, sc, 16, 16, 16,
                                                             wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < 256; i += 32) {
        c[i] = sc[i];
    }
}

/* in: 32 rows of 8; out (32, 11): x4, x2.trans, x1, and x4 moved with movmatrix. */
extern "C" __global__ void matrices(const unsigned short *in, unsigned *out) {
    __shared__ __align__(16) unsigned short rows[32][8];
    unsigned r[11];
    int t = threadIdx.x;
    for (int i = 0; i < 8; i++) {
        rows[t][i] = in[8 * t + i];
    }
    __syncwarp();
    unsigned address = (unsigned)__cvta_generic_to_shared(rows[t]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[4]), "=r"(r[5])
                 : "r"(address));
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared::cta.b16 {%0}, [%1];"
                 : "=r"(r[6])
                 : "r"(address));
    for (int i = 0; i < 4; i++) {
        asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r[7 + i]) : "r"(r[i]));
    }
    put(r, out);
}

/* in (32, 4) registers; out: 64 rows of 8 as stmatrix leaves them, x4 and then x4.trans. */
extern "C" __global__ void stored_matrices(const unsigned *in, unsigned short *out) {
    __shared__ __align__(16) unsigned short rows[64][8];
    unsigned r[4];
    int t = threadIdx.x;
    fetch(r, in);
    unsigned address = (unsigned)__cvta_generic_to_shared(rows[t]);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0+512], {%1, %2, %3, %4};" ::"r"(address),
        "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
        : "memory");
    __syncwarp();
    for (int i = 0; i < 8; i++) {
        out[8 * t + i] = rows[t][i];
        out[8 * (t + 32) + i] = rows[t + 32][i];
    }
}

/* Only half a warp comes to the product. */
extern "C" __global__ void half_a_warp(const unsigned *in, unsigned *out) {
    unsigned d[4] = {0, 0, 0, 0};
    unsigned x = in[threadIdx.x];
    if (threadIdx.x < 16) {
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 " OUT4
                     ", {%4, %4}, {%4}, " //
                     OUT4 ";"
                     : RW4(d)
                     : "r"(x));
    }
    out[threadIdx.x] = d[0];
}

/* Pairs of floats to pairs of 8-bit floats and on to halves: (n) e4m3x2, then (n) e5m2x2. */
extern "C" __global__ void small_floats(const float2 *in, unsigned short *bytes, unsigned *halves,
                                        int n) {
    for (int i = threadIdx.x; i < n; i += 32) {
        unsigned short e4m3, e5m2;
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(e4m3) : "f"(in[i].y), "f"(in[i].x));
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(e5m2) : "f"(in[i].y), "f"(in[i].x));
        bytes[i] = e4m3;
        bytes[n + i] = e5m2;
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves[i]) : "h"(e4m3));
        asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves[n + i]) : "h"(e5m2));
    }
}

/* Absolute differences of bytes, unsigned, signed, and their sum onto a third number. */
extern "C" __global__ void byte_differences(const unsigned *a, const unsigned *b, unsigned *out) {
    int t = threadIdx.x;
    asm("vabsdiff4.u32.u32.u32 %0, %1, %2, %3;" : "=r"(out[t]) : "r"(a[t]), "r"(b[t]), "r"(0));
    asm("vabsdiff4.u32.s32.s32 %0, %1, %2, %3;" : "=r"(out[32 + t]) : "r"(a[t]), "r"(b[t]), "r"(0));
    asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;"
        : "=r"(out[64 + t])
        : "r"(a[t]), "r"(b[t]), "r"(t));
}
