/* PTX corpus: tensor cores, through wmma and through mma in inline assembly; ldmatrix. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

template <typename T, int M, int N, int K, typename LayoutA, typename LayoutB, typename Sum>
__global__ void wmma_tile(const T *a, const T *b, Sum *c, int n) {
    wmma::fragment<wmma::matrix_a, M, N, K, T, LayoutA> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, T, LayoutB> fb;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> sum;
    wmma::fill_fragment(sum, Sum(0));
    for (int k = 0; k < n; k += K) {
        wmma::load_matrix_sync(fa, a + k, n);
        wmma::load_matrix_sync(fb, b + k * n, n);
        wmma::mma_sync(sum, fa, fb, sum);
    }
    for (int i = 0; i < sum.num_elements; i++) {
        sum.x[i] = sum.x[i] * Sum(2);
    }
    wmma::store_matrix_sync(c, sum, n, wmma::mem_row_major);
}

template __global__ void
wmma_tile<half, 16, 16, 16, wmma::row_major, wmma::col_major, float>(const half *, const half *,
                                                                     float *, int);
template __global__ void
wmma_tile<half, 32, 8, 16, wmma::row_major, wmma::row_major, half>(const half *, const half *,
                                                                   half *, int);
template __global__ void wmma_tile<signed char, 8, 32, 16, wmma::col_major, wmma::row_major, int>(
    const signed char *, const signed char *, int *, int);
#if __CUDA_ARCH__ >= 800
template __global__ void
wmma_tile<__nv_bfloat16, 16, 16, 16, wmma::row_major, wmma::col_major, float>(const __nv_bfloat16 *,
                                                                              const __nv_bfloat16 *,
                                                                              float *, int);
template __global__ void
wmma_tile<double, 8, 8, 4, wmma::row_major, wmma::col_major, double>(const double *, const double *,
                                                                     double *, int);
#endif

__global__ void load_matrix(const half *in, unsigned *out) {
    __shared__ __align__(16) half tile[32][16];
    for (int i = threadIdx.x; i < 512; i += 32) {
        tile[i / 16][i % 16] = in[i];
    }
    __syncwarp();
    unsigned r[4], t[2];
    unsigned address =
        (unsigned)__cvta_generic_to_shared(&tile[threadIdx.x % 16][threadIdx.x / 16]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(t[0]), "=r"(t[1])
                 : "r"(address));
    float d[4] = {};
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(t[0]), "r"(t[1]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(t[0]), "r"(t[1]), "f"(d[0]),
                   "f"(d[1]), "f"(d[2]), "f"(d[3]));
#endif
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(r[0]), "r"(r[1]), "r"(t[0]));
    for (int i = 0; i < 4; i++) {
        out[threadIdx.x * 4 + i] = __float_as_uint(d[i]);
    }
}
