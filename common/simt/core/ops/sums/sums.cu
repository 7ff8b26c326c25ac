/*
 * Sums of tensor cores, on a GPU or on simt: which bits are cut off.
 *
 *     sums            checksums of D for random A, B and C
 *     sums values     D itself, a line of words a product
 *
 * A product is one instruction: mma, mma.sp or wgmma, of each format of floats. Elements are random
 * bits whose exponents lie in a range, close together or far apart, down to subnormal numbers.
 * Every place of a fragment is random, so how the elements lie makes no difference.
 */
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

namespace {

constexpr unsigned MOST_THREADS = 128, REGISTERS = 4, SHARED_WORDS = 128;

struct input {
    uint32_t a[MOST_THREADS][REGISTERS], b[MOST_THREADS][REGISTERS], c[MOST_THREADS][REGISTERS];
    uint32_t shared_b[SHARED_WORDS]; /* 8 columns, 64 bytes of K */
};
struct output {
    uint32_t d[MOST_THREADS][REGISTERS];
};

struct registers {
    uint32_t a[REGISTERS], b[REGISTERS], d[REGISTERS];
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define ONLY_90A(...) __VA_ARGS__
#else
#define ONLY_90A(...)
#endif

#define SUMS_4 "{%0, %1, %2, %3}"
#define SUMS_2 "{%0, %1}"
#define A_4 "{%4, %5, %6, %7}"
#define A_2 "{%4, %5}"

/* mma: SUMS of D and C, A, B, and what follows. */
#define MMA(NAME, FORM, SUMS, A, B, REST)                                                  \
    struct NAME {                                                                          \
        static __device__ __forceinline__ void run(registers &r, uint64_t) {               \
            ONLY_90A(asm volatile(FORM " " SUMS ", " A ", " B ", " SUMS REST ";"           \
                                  : "+r"(r.d[0]), "+r"(r.d[1]), "+r"(r.d[2]), "+r"(r.d[3]) \
                                  : "r"(r.a[0]), "r"(r.a[1]), "r"(r.a[2]), "r"(r.a[3]),    \
                                    "r"(r.b[0]), "r"(r.b[1]), "r"(r.b[2]), "r"(r.b[3]));)  \
        }                                                                                  \
    };
#define PLAIN(SHAPE, FORMATS) "mma.sync.aligned." SHAPE ".row.col." FORMATS
#define SPARSE(SHAPE, FORMATS) "mma.sp::ordered_metadata.sync.aligned." SHAPE ".row.col." FORMATS

MMA(mma_f16_k8, PLAIN("m16n8k8", "f32.f16.f16.f32"), SUMS_4, A_2, "{%8}", "")
MMA(mma_f16_k16, PLAIN("m16n8k16", "f32.f16.f16.f32"), SUMS_4, A_4, "{%8, %9}", "")
MMA(mma_f16_to_f16, PLAIN("m16n8k16", "f16.f16.f16.f16"), SUMS_2, A_4, "{%8, %9}", "")
MMA(mma_bf16_k16, PLAIN("m16n8k16", "f32.bf16.bf16.f32"), SUMS_4, A_4, "{%8, %9}", "")
MMA(mma_tf32_k4, PLAIN("m16n8k4", "f32.tf32.tf32.f32"), SUMS_4, A_2, "{%8}", "")
MMA(mma_tf32_k8, PLAIN("m16n8k8", "f32.tf32.tf32.f32"), SUMS_4, A_4, "{%8, %9}", "")
MMA(mma_e4m3_k32, PLAIN("m16n8k32", "f32.e4m3.e4m3.f32"), SUMS_4, A_4, "{%8, %9}", "")
MMA(mma_e5m2_k32, PLAIN("m16n8k32", "f32.e5m2.e5m2.f32"), SUMS_4, A_4, "{%8, %9}", "")

/* mma.sp of f16, whose metadata is 0x44444444. */
struct sparse_f16_k32 {
    static __device__ __forceinline__ void run(registers &r, uint64_t) {
        ONLY_90A(asm volatile(SPARSE("m16n8k32", "f32.f16.f16.f32") " " SUMS_4 ", " A_4
                                                                    ", {%8, %9, %10, %11}, " SUMS_4
                                                                    ", %12, 0x0;"
                              : "+r"(r.d[0]), "+r"(r.d[1]), "+r"(r.d[2]), "+r"(r.d[3])
                              : "r"(r.a[0]), "r"(r.a[1]), "r"(r.a[2]), "r"(r.a[3]), "r"(r.b[0]),
                                "r"(r.b[1]), "r"(r.b[2]), "r"(r.b[3]), "r"(0x44444444));)
    }
};

/* wgmma with n = 8 and A in registers; D has four registers of fp32, two of fp16. */
#define WGMMA(NAME, FORM, SUMS, A, B, FLAGS)                                                   \
    struct NAME {                                                                              \
        static __device__ __forceinline__ void run(registers &r, uint64_t b) {                 \
            ONLY_90A(asm volatile("wgmma.fence.sync.aligned;\n"                                \
                                  "wgmma.mma_async.sync.aligned." FORM " " SUMS ", " A ", " B  \
                                  ", 1, 1, 1" FLAGS ";\nwgmma.commit_group.sync.aligned;\n"    \
                                  "wgmma.wait_group.sync.aligned 0;"                           \
                                  : "+r"(r.d[0]), "+r"(r.d[1]), "+r"(r.d[2]), "+r"(r.d[3])     \
                                  : "r"(r.a[0]), "r"(r.a[1]), "r"(r.a[2]), "r"(r.a[3]), "l"(b) \
                                  : "memory");)                                                \
        }                                                                                      \
    };

WGMMA(wgmma_f16, "m64n8k16.f32.f16.f16", SUMS_4, A_4, "%8", ", 0")
WGMMA(wgmma_f16_to_f16, "m64n8k16.f16.f16.f16", SUMS_2, A_4, "%8", ", 0")
WGMMA(wgmma_bf16, "m64n8k16.f32.bf16.bf16", SUMS_4, A_4, "%8", ", 0")
WGMMA(wgmma_tf32, "m64n8k8.f32.tf32.tf32", SUMS_4, A_4, "%8", "")
WGMMA(wgmma_e4m3, "m64n8k32.f32.e4m3.e4m3", SUMS_4, A_4, "%8", "")
WGMMA(wgmma_e5m2, "m64n8k32.f32.e5m2.e5m2", SUMS_4, A_4, "%8", "")
WGMMA(wgmma_e4m3_to_f16, "m64n8k32.f16.e4m3.e4m3", SUMS_2, A_4, "%8", "")

/* Without a swizzle: 8 rows of 16 bytes lie together. */
__device__ __forceinline__ uint64_t descriptor(const void *matrix) {
    uint64_t start = (unsigned)__cvta_generic_to_shared(matrix);
    return (start & 0x3ffff) >> 4 | (uint64_t)(128 >> 4) << 16 | (uint64_t)(256 >> 4) << 32;
}

template <typename OPERATION> __global__ void multiply(const input *in, output *out) {
    __shared__ __align__(1024) uint32_t b[SHARED_WORDS];
    registers r;
    for (unsigned i = threadIdx.x; i < SHARED_WORDS; i += blockDim.x) {
        b[i] = in->shared_b[i];
    }
    for (unsigned i = 0; i < REGISTERS; i++) {
        r.a[i] = in->a[threadIdx.x][i];
        r.b[i] = in->b[threadIdx.x][i];
        r.d[i] = in->c[threadIdx.x][i];
    }
    ONLY_90A(asm volatile("fence.proxy.async;" ::: "memory");)
    __syncthreads();
    OPERATION::run(r, descriptor(b));
    for (unsigned i = 0; i < REGISTERS; i++) {
        out->d[threadIdx.x][i] = r.d[i];
    }
}

/* Of an element: bits of the exponent, and below it. */
struct format {
    unsigned bits, exponent, fraction;
};
constexpr format F16 = {16, 5, 10}, BF16 = {16, 8, 7}, TF32 = {32, 8, 23}, F32 = {32, 8, 23},
                 E4M3 = {8, 4, 3}, E5M2 = {8, 5, 2};

const struct product {
    const char *name;
    format factor, sum;
    unsigned threads;
    void (*kernel)(const input *, output *);
} products[] = {
    {"mma_f16_k8", F16, F32, 32, multiply<mma_f16_k8>},
    {"mma_f16_k16", F16, F32, 32, multiply<mma_f16_k16>},
    {"mma_f16_to_f16", F16, F16, 32, multiply<mma_f16_to_f16>},
    {"mma_bf16_k16", BF16, F32, 32, multiply<mma_bf16_k16>},
    {"mma_tf32_k4", TF32, F32, 32, multiply<mma_tf32_k4>},
    {"mma_tf32_k8", TF32, F32, 32, multiply<mma_tf32_k8>},
    {"mma_e4m3_k32", E4M3, F32, 32, multiply<mma_e4m3_k32>},
    {"mma_e5m2_k32", E5M2, F32, 32, multiply<mma_e5m2_k32>},
    {"sparse_f16_k32", F16, F32, 32, multiply<sparse_f16_k32>},
    {"wgmma_f16", F16, F32, 128, multiply<wgmma_f16>},
    {"wgmma_f16_to_f16", F16, F16, 128, multiply<wgmma_f16_to_f16>},
    {"wgmma_bf16", BF16, F32, 128, multiply<wgmma_bf16>},
    {"wgmma_tf32", TF32, F32, 128, multiply<wgmma_tf32>},
    {"wgmma_e4m3", E4M3, F32, 128, multiply<wgmma_e4m3>},
    {"wgmma_e5m2", E5M2, F32, 128, multiply<wgmma_e5m2>},
    {"wgmma_e4m3_to_f16", E4M3, F16, 128, multiply<wgmma_e4m3_to_f16>},
};

/* Exponents of factors, from the one of 1 on, or for BOTTOM from the least (subnormals) on; how
   many of them; the same of C. One in `zeros` elements is 0. */
constexpr int BOTTOM = -1000;
const struct range {
    const char *name;
    int first, count, c_first, c_count;
    unsigned zeros;
} ranges[] = {
    {"near", -1, 3, -2, 5, 1000},
    {"wide", -4, 9, -6, 14, 1000},
    {"far", -6, 13, -20, 36, 1000},
    {"large_c", -3, 6, 6, 8, 1000},
    {"small_c", -2, 4, -30, 20, 1000},
    {"zeros", -3, 6, -6, 10, 2},
    {"subnormal", BOTTOM, 3, BOTTOM, 30, 1000},
};

/* Random numbers of a seed. */
uint32_t draw(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* Never infinite and no NaN. */
uint32_t element(uint32_t *state, const format &f, int first, int count, unsigned zeros) {
    int bias = (1 << (f.exponent - 1)) - 1, most = 2 * bias;
    int exponent = (first == BOTTOM ? 0 : bias + first) + (int)(draw(state) >> 8) % count;
    uint32_t fraction = draw(state) & ((1u << f.fraction) - 1);
    uint32_t sign = draw(state) >> 31;
    exponent = exponent < 0 ? 0 : exponent > most ? most : exponent;
    bool zero = (draw(state) >> 8) % zeros == 0;
    return zero ? 0 : sign << (f.bits - 1) | (uint32_t)exponent << f.fraction | fraction;
}

uint32_t word(uint32_t *state, const format &f, int first, int count, unsigned zeros) {
    uint32_t all = 0;
    for (unsigned at = 0; at < 32; at += f.bits) {
        all |= element(state, f, first, count, zeros) << at;
    }
    return all;
}

void fill(input *in, const product &p, const range &r, uint32_t seed) {
    uint32_t state = seed * 2654435761u + 1;
    for (unsigned lane = 0; lane < MOST_THREADS; lane++) {
        for (unsigned i = 0; i < REGISTERS; i++) {
            in->a[lane][i] = word(&state, p.factor, r.first, r.count, r.zeros);
            in->b[lane][i] = word(&state, p.factor, r.first, r.count, r.zeros);
            in->c[lane][i] = word(&state, p.sum, r.c_first, r.c_count, r.zeros);
        }
    }
    for (unsigned i = 0; i < SHARED_WORDS; i++) {
        in->shared_b[i] = word(&state, p.factor, r.first, r.count, r.zeros);
    }
}

bool run(const product &p, const range &r, uint32_t seed, bool values, input *d_in, output *d_out) {
    static input in;
    static output out;
    fill(&in, p, r, seed);
    cudaMemcpy(d_in, &in, sizeof in, cudaMemcpyHostToDevice);
    p.kernel<<<1, p.threads>>>(d_in, d_out);
    cudaError_t error = cudaMemcpy(&out, d_out, sizeof out, cudaMemcpyDeviceToHost);
    if (error != cudaSuccess) {
        printf("%s: %s\n", p.name, cudaGetErrorString(error));
        return false;
    }
    unsigned count = p.sum.bits == 16 ? 2 : 4;
    uint32_t sum = 2166136261u;
    printf("%s %s %u", p.name, r.name, seed);
    for (unsigned lane = 0; lane < p.threads; lane++) {
        for (unsigned n = 0; n < count; n++) {
            sum = (sum ^ out.d[lane][n]) * 16777619u;
            if (values) {
                printf(" %08x", out.d[lane][n]);
            }
        }
    }
    printf(values ? "\n" : " %08x\n", sum);
    return true;
}

} // namespace

int main(int argc, char **argv) {
    bool values = argc == 2 && strcmp(argv[1], "values") == 0;
    constexpr uint32_t SEEDS = 3;
    input *d_in;
    output *d_out;
    if (argc > 2 || (argc == 2 && !values)) {
        fprintf(stderr, "sums: usage: sums [values]\n");
        return 2;
    }
    bool right = cudaMalloc(&d_in, sizeof *d_in) == cudaSuccess &&
                 cudaMalloc(&d_out, sizeof *d_out) == cudaSuccess;
    for (const product &p : products) {
        for (const range &r : ranges) {
            for (uint32_t seed = 1; right && seed <= SEEDS; seed++) {
                right = run(p, r, seed, values, d_in, d_out);
            }
        }
    }
    cudaFree(d_in);
    cudaFree(d_out);
    return right ? 0 : 1;
}
