/*
 * Products with a sparse A, on a GPU or on simt: mma.sp and wgmma.mma_async.sp.
 *
 *     sparse layout    for each lane and nibble of metadata: which rows and groups of A it moves
 *     sparse random    checksums of D for random A, B and metadata
 *
 * A is sparse along K: of each group of 4 elements (of tf32: 2; of 4 bits: 4 pairs) half are
 * stored, and the metadata says which. Elements are small integers, so sums are exact whatever
 * their order.
 */
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

namespace {

constexpr unsigned LANES = 32, MOST_THREADS = 128, MOST_REGISTERS = 4;
constexpr unsigned SHARED_A = 2048, SHARED_B = 1024; /* bytes */

/* What a product reads and writes: registers of each thread, and matrices in shared memory. */
struct input {
    uint32_t a[MOST_THREADS][MOST_REGISTERS], b[MOST_THREADS][MOST_REGISTERS], e[MOST_THREADS];
    unsigned char shared_a[SHARED_A], shared_b[SHARED_B];
};
struct output {
    uint32_t d[MOST_THREADS][4];
};

struct registers {
    uint32_t a[MOST_REGISTERS], b[MOST_REGISTERS], e;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define ONLY_90A(...) __VA_ARGS__
#else
#define ONLY_90A(...)
#endif

/* mma.sp with A and B of two or four registers; D of C type, named by its constraint. */
#define MMA(NAME, CONSTRAINT, TYPE, SHAPE, FORMATS, SELECTOR, AS, BS, ...)             \
    struct NAME {                                                                      \
        static __device__ __forceinline__ void run(TYPE *d, const registers &r) {      \
            ONLY_90A(asm volatile("mma.sp::ordered_metadata.sync.aligned." SHAPE       \
                                  ".row.col." FORMATS " {%0, %1, %2, %3}, " AS ", " BS \
                                  ", {%0, %1, %2, %3}, %4, " SELECTOR ";"              \
                                  : "+" CONSTRAINT(d[0]), "+" CONSTRAINT(d[1]),        \
                                    "+" CONSTRAINT(d[2]), "+" CONSTRAINT(d[3])         \
                                  : "r"(r.e), __VA_ARGS__);)                           \
        }                                                                              \
    };
#define TWO_REGISTERS "r"(r.a[0]), "r"(r.a[1]), "r"(r.b[0]), "r"(r.b[1])
#define FOUR_REGISTERS                                                                         \
    "r"(r.a[0]), "r"(r.a[1]), "r"(r.a[2]), "r"(r.a[3]), "r"(r.b[0]), "r"(r.b[1]), "r"(r.b[2]), \
        "r"(r.b[3])
#define MMA_2(NAME, CONSTRAINT, TYPE, SHAPE, FORMATS, SELECTOR) \
    MMA(NAME, CONSTRAINT, TYPE, SHAPE, FORMATS, SELECTOR, "{%5, %6}", "{%7, %8}", TWO_REGISTERS)
#define MMA_4(NAME, CONSTRAINT, TYPE, SHAPE, FORMATS, SELECTOR)               \
    MMA(NAME, CONSTRAINT, TYPE, SHAPE, FORMATS, SELECTOR, "{%5, %6, %7, %8}", \
        "{%9, %10, %11, %12}", FOUR_REGISTERS)

MMA_2(f16_k16_0, "f", float, "m16n8k16", "f32.f16.f16.f32", "0")
MMA_2(f16_k16_1, "f", float, "m16n8k16", "f32.f16.f16.f32", "1")
MMA_2(f16_k16_2, "f", float, "m16n8k16", "f32.f16.f16.f32", "2")
MMA_2(f16_k16_3, "f", float, "m16n8k16", "f32.f16.f16.f32", "3")
MMA_4(f16_k32_0, "f", float, "m16n8k32", "f32.f16.f16.f32", "0")
MMA_4(f16_k32_1, "f", float, "m16n8k32", "f32.f16.f16.f32", "1")
MMA_4(bf16_k32_1, "f", float, "m16n8k32", "f32.bf16.bf16.f32", "1")
MMA_2(tf32_k8_0, "f", float, "m16n8k8", "f32.tf32.tf32.f32", "0")
MMA_2(tf32_k8_3, "f", float, "m16n8k8", "f32.tf32.tf32.f32", "3")
MMA_4(tf32_k16_0, "f", float, "m16n8k16", "f32.tf32.tf32.f32", "0")
MMA_4(tf32_k16_1, "f", float, "m16n8k16", "f32.tf32.tf32.f32", "1")
MMA_2(s8_k32_0, "r", uint32_t, "m16n8k32", "s32.s8.s8.s32", "0")
MMA_2(s8_k32_1, "r", uint32_t, "m16n8k32", "s32.s8.s8.s32", "1")
MMA_4(s8_k64_0, "r", uint32_t, "m16n8k64", "s32.s8.s8.s32", "0")
MMA_4(e4m3_k64_0, "f", float, "m16n8k64", "f32.e4m3.e4m3.f32", "0")
MMA_2(s4_k64_0, "r", uint32_t, "m16n8k64", "s32.s4.s4.s32", "0")
MMA_2(s4_k64_1, "r", uint32_t, "m16n8k64", "s32.s4.s4.s32", "1")
MMA_4(s4_k128_0, "r", uint32_t, "m16n8k128", "s32.s4.s4.s32", "0")

template <typename OPERATION, typename TYPE>
__global__ void multiply(const input *in, output *out) {
    registers r;
    TYPE d[4] = {0, 0, 0, 0};
    for (unsigned i = 0; i < MOST_REGISTERS; i++) {
        r.a[i] = in->a[threadIdx.x][i];
        r.b[i] = in->b[threadIdx.x][i];
    }
    r.e = in->e[threadIdx.x];
    OPERATION::run(d, r);
    for (unsigned i = 0; i < 4; i++) {
        memcpy(&out->d[threadIdx.x][i], &d[i], 4);
    }
}

/* wgmma with n = 8: A in shared memory (descriptor) or registers. */
#define WGMMA_SS(NAME, CONSTRAINT, TYPE, FORM, SELECTOR, FLAGS)                              \
    struct NAME {                                                                            \
        static __device__ __forceinline__ void run(TYPE *d, const registers &, uint64_t a,   \
                                                   uint64_t b, uint32_t e) {                 \
            ONLY_90A(asm volatile("wgmma.mma_async.sp.sync.aligned." FORM                    \
                                  " {%0, %1, %2, %3}, %4, %5, %6, " SELECTOR ", 0" FLAGS ";" \
                                  : "+" CONSTRAINT(d[0]), "+" CONSTRAINT(d[1]),              \
                                    "+" CONSTRAINT(d[2]), "+" CONSTRAINT(d[3])               \
                                  : "l"(a), "l"(b), "r"(e));)                                \
        }                                                                                    \
    };
#define WGMMA_RS(NAME, CONSTRAINT, TYPE, FORM, SELECTOR, FLAGS)                                   \
    struct NAME {                                                                                 \
        static __device__ __forceinline__ void run(TYPE *d, const registers &r, uint64_t,         \
                                                   uint64_t b, uint32_t e) {                      \
            ONLY_90A(asm volatile(                                                                \
                         "wgmma.mma_async.sp.sync.aligned." FORM                                  \
                         " {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, %9, " SELECTOR ", 0" FLAGS ";" \
                         : "+" CONSTRAINT(d[0]), "+" CONSTRAINT(d[1]), "+" CONSTRAINT(d[2]),      \
                           "+" CONSTRAINT(d[3])                                                   \
                         : "r"(r.a[0]), "r"(r.a[1]), "r"(r.a[2]), "r"(r.a[3]), "l"(b), "r"(e));)  \
        }                                                                                         \
    };

WGMMA_SS(wgmma_f16_0, "f", float, "m64n8k32.f32.f16.f16", "0", ", 1, 1, 0, 0")
WGMMA_SS(wgmma_f16_1, "f", float, "m64n8k32.f32.f16.f16", "1", ", 1, 1, 0, 0")
WGMMA_RS(wgmma_f16_registers_0, "f", float, "m64n8k32.f32.f16.f16", "0", ", 1, 1, 0")
WGMMA_RS(wgmma_bf16_registers_1, "f", float, "m64n8k32.f32.bf16.bf16", "1", ", 1, -1, 0")
WGMMA_SS(wgmma_tf32_0, "f", float, "m64n8k16.f32.tf32.tf32", "0", ", 1, 1")
WGMMA_RS(wgmma_tf32_registers_1, "f", float, "m64n8k16.f32.tf32.tf32", "1", ", 1, 1")
WGMMA_SS(wgmma_s8_0, "r", uint32_t, "m64n8k64.s32.s8.s8", "0", "")
WGMMA_RS(wgmma_s8_registers_0, "r", uint32_t, "m64n8k64.s32.s8.s8", "0", "")
WGMMA_SS(wgmma_e4m3_0, "f", float, "m64n8k64.f32.e4m3.e4m3", "0", ", 1, 1")

/* Bytes between chunks of 16 bytes of a row, and between groups of 8 rows. */
constexpr unsigned CHUNK_STRIDE = 128, GROUP_STRIDE = 256;

__device__ __forceinline__ uint64_t descriptor(const void *matrix, unsigned leading,
                                               unsigned stride) {
    uint64_t start = (unsigned)__cvta_generic_to_shared(matrix);
    return (start & 0x3ffff) >> 4 | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32;
}

template <typename OPERATION, typename TYPE>
__global__ void multiply_by_warpgroup(const input *in, output *out) {
    __shared__ __align__(1024) unsigned char a[SHARED_A], b[SHARED_B];
    registers r;
    TYPE d[4] = {0, 0, 0, 0};
    for (unsigned i = threadIdx.x; i < SHARED_A; i += blockDim.x) {
        a[i] = in->shared_a[i];
    }
    for (unsigned i = threadIdx.x; i < SHARED_B; i += blockDim.x) {
        b[i] = in->shared_b[i];
    }
    for (unsigned i = 0; i < MOST_REGISTERS; i++) {
        r.a[i] = in->a[threadIdx.x][i];
    }
    ONLY_90A(asm volatile("fence.proxy.async;" ::: "memory");)
    __syncthreads();
    ONLY_90A(asm volatile("wgmma.fence.sync.aligned;" ::: "memory");)
    OPERATION::run(d, r, descriptor(a, CHUNK_STRIDE, GROUP_STRIDE),
                   descriptor(b, CHUNK_STRIDE, GROUP_STRIDE), in->e[threadIdx.x]);
    ONLY_90A(asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
                          : "+r"(*(uint32_t *)&d[0]), "+r"(*(uint32_t *)&d[1]),
                            "+r"(*(uint32_t *)&d[2]), "+r"(*(uint32_t *)&d[3])::"memory");)
    for (unsigned i = 0; i < 4; i++) {
        memcpy(&out->d[threadIdx.x][i], &d[i], 4);
    }
}

enum format { F16, BF16, TF32, S8, E4M3, S4 };

struct product {
    const char *name;
    enum format format;
    unsigned k, threads;
    void (*kernel)(const input *, output *);
};

const product products[] = {
    {"f16_k16_0", F16, 16, 32, multiply<f16_k16_0, float>},
    {"f16_k16_1", F16, 16, 32, multiply<f16_k16_1, float>},
    {"f16_k16_2", F16, 16, 32, multiply<f16_k16_2, float>},
    {"f16_k16_3", F16, 16, 32, multiply<f16_k16_3, float>},
    {"f16_k32_0", F16, 32, 32, multiply<f16_k32_0, float>},
    {"f16_k32_1", F16, 32, 32, multiply<f16_k32_1, float>},
    {"bf16_k32_1", BF16, 32, 32, multiply<bf16_k32_1, float>},
    {"tf32_k8_0", TF32, 8, 32, multiply<tf32_k8_0, float>},
    {"tf32_k8_3", TF32, 8, 32, multiply<tf32_k8_3, float>},
    {"tf32_k16_0", TF32, 16, 32, multiply<tf32_k16_0, float>},
    {"tf32_k16_1", TF32, 16, 32, multiply<tf32_k16_1, float>},
    {"s8_k32_0", S8, 32, 32, multiply<s8_k32_0, uint32_t>},
    {"s8_k32_1", S8, 32, 32, multiply<s8_k32_1, uint32_t>},
    {"s8_k64_0", S8, 64, 32, multiply<s8_k64_0, uint32_t>},
    {"e4m3_k64_0", E4M3, 64, 32, multiply<e4m3_k64_0, float>},
    {"s4_k64_0", S4, 64, 32, multiply<s4_k64_0, uint32_t>},
    {"s4_k64_1", S4, 64, 32, multiply<s4_k64_1, uint32_t>},
    {"s4_k128_0", S4, 128, 32, multiply<s4_k128_0, uint32_t>},
    {"wgmma_f16_0", F16, 32, 128, multiply_by_warpgroup<wgmma_f16_0, float>},
    {"wgmma_f16_1", F16, 32, 128, multiply_by_warpgroup<wgmma_f16_1, float>},
    {"wgmma_f16_registers_0", F16, 32, 128, multiply_by_warpgroup<wgmma_f16_registers_0, float>},
    {"wgmma_bf16_registers_1", BF16, 32, 128, multiply_by_warpgroup<wgmma_bf16_registers_1, float>},
    {"wgmma_tf32_0", TF32, 16, 128, multiply_by_warpgroup<wgmma_tf32_0, float>},
    {"wgmma_tf32_registers_1", TF32, 16, 128, multiply_by_warpgroup<wgmma_tf32_registers_1, float>},
    {"wgmma_s8_0", S8, 64, 128, multiply_by_warpgroup<wgmma_s8_0, uint32_t>},
    {"wgmma_s8_registers_0", S8, 64, 128, multiply_by_warpgroup<wgmma_s8_registers_0, uint32_t>},
    {"wgmma_e4m3_0", E4M3, 64, 128, multiply_by_warpgroup<wgmma_e4m3_0, float>},
};

unsigned bits_of(enum format format) {
    return format == TF32 ? 32 : format == S4 ? 4 : format == S8 || format == E4M3 ? 8 : 16;
}

/* Bits of a small integer, at most 7 in absolute value. */
uint32_t encode(enum format format, int value) {
    static const uint32_t e4m3[] = {0x00, 0x38, 0x40, 0x44, 0x48, 0x4a, 0x4c, 0x4e};
    static const uint32_t f16[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700};
    float number = (float)value;
    uint32_t bits, size = (uint32_t)(value < 0 ? -value : value);
    memcpy(&bits, &number, 4);
    switch (format) {
    case TF32:
        return bits;
    case BF16:
        return bits >> 16;
    case F16:
        return f16[size] | (value < 0 ? 0x8000u : 0u);
    case E4M3:
        return e4m3[size] | (value < 0 ? 0x80u : 0u);
    case S8:
        return (uint32_t)value & 0xff;
    default:
        return (uint32_t)value & 0xf;
    }
}

/* Puts element (row, column) of A, of which K / 2 columns are stored, where the product reads it.
 */
void put_a(input *in, const product &p, unsigned row, unsigned column, int value) {
    unsigned bits = bits_of(p.format), each = 32 / bits, inner = row % 16;
    unsigned lane = row / 16 * 32 + inner % 8 * 4 + column / each % 4;
    unsigned number = inner / 8 + column / (4 * each) * 2;
    in->a[lane][number] |= encode(p.format, value) << bits * (column % each);
    if (p.threads == MOST_THREADS) {
        unsigned byte = column * bits / 8;
        uint32_t element = encode(p.format, value);
        memcpy(in->shared_a + row % 8 * 16 + row / 8 * GROUP_STRIDE + byte / 16 * CHUNK_STRIDE +
                   byte % 16,
               &element, bits / 8);
    }
}

void put_b(input *in, const product &p, unsigned k, unsigned column, int value) {
    unsigned bits = bits_of(p.format), each = 32 / bits;
    unsigned lane = column * 4 + k / each % 4, number = k / (4 * each);
    in->b[lane][number] |= encode(p.format, value) << bits * (k % each);
    if (p.threads == MOST_THREADS) {
        unsigned byte = k * bits / 8;
        uint32_t element = encode(p.format, value);
        memcpy(in->shared_b + column * 16 + byte / 16 * CHUNK_STRIDE + byte % 16, &element,
               bits / 8);
    }
}

/* Where D's registers lie. */
void place_of(unsigned lane, unsigned number, unsigned *row, unsigned *column) {
    *row = lane / 32 * 16 + lane % 32 / 4 + number / 2 * 8;
    *column = lane % 4 * 2 + number % 2;
}

input *d_in;
output *d_out;

bool run(const product &p, const input &in, output *out) {
    cudaMemcpy(d_in, &in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(d_out, 0, sizeof *d_out);
    p.kernel<<<1, p.threads>>>(d_in, d_out);
    cudaError_t error = cudaMemcpy(out, d_out, sizeof *out, cudaMemcpyDeviceToHost);
    if (error != cudaSuccess) {
        printf("%s: %s\n", p.name, cudaGetErrorString(error));
    }
    return error == cudaSuccess;
}

/* Random numbers of a seed. */
uint32_t draw(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* A nibble of metadata: which two of four; of tf32, which one of two. */
uint32_t draw_nibble(uint32_t *state, enum format format) {
    static const uint32_t pairs[] = {0x4, 0x8, 0xc, 0x9, 0xd, 0xe};
    return format == TF32 ? (draw(state) & 1 ? 0xe : 0x4) : pairs[draw(state) % 6];
}

bool random_case(const product &p, uint32_t seed) {
    static input in;
    static output out;
    uint32_t state = seed * 2654435761u + 1;
    memset(&in, 0, sizeof in);
    memset(&out, 0, sizeof out);
    for (unsigned row = 0; row < p.threads / 2; row++) {
        for (unsigned column = 0; column < p.k / 2; column++) {
            put_a(&in, p, row, column, (int)(draw(&state) % 15) - 7);
        }
    }
    for (unsigned k = 0; k < p.k; k++) {
        for (unsigned column = 0; column < 8; column++) {
            put_b(&in, p, k, column, (int)(draw(&state) % 15) - 7);
        }
    }
    for (unsigned lane = 0; lane < p.threads; lane++) {
        for (unsigned n = 0; n < 8; n++) {
            in.e[lane] |= draw_nibble(&state, p.format) << 4 * n;
        }
    }
    if (!run(p, in, &out)) {
        return false;
    }
    uint32_t sum = 2166136261u;
    for (unsigned lane = 0; lane < p.threads; lane++) {
        for (unsigned n = 0; n < 4; n++) {
            sum = (sum ^ out.d[lane][n]) * 16777619u;
        }
    }
    printf("%s %u %08x\n", p.name, seed, sum);
    return true;
}

/* Columns of the sparse A where row has something, as bits: by passes whose B has ones at 8 of k.
 */
bool find_columns(const product &p, const input &from, unsigned char places[64][128]) {
    static input in;
    static output out;
    for (unsigned first = 0; first < p.k; first += 8) {
        in = from;
        for (unsigned n = 0; n < 8; n++) {
            put_b(&in, p, first + n, n, 1);
        }
        if (!run(p, in, &out)) {
            return false;
        }
        for (unsigned lane = 0; lane < p.threads; lane++) {
            for (unsigned n = 0; n < 4; n++) {
                unsigned row, column;
                place_of(lane, n, &row, &column);
                places[row][first + column] = out.d[lane][n] != 0;
            }
        }
    }
    return true;
}

bool print_layout(const product &p) {
    static input in;
    static unsigned char before[64][128], after[64][128];
    memset(&in, 0, sizeof in);
    for (unsigned row = 0; row < p.threads / 2; row++) {
        for (unsigned column = 0; column < p.k / 2; column++) {
            put_a(&in, p, row, column, 1);
        }
    }
    for (unsigned lane = 0; lane < p.threads; lane++) {
        in.e[lane] = 0x44444444;
    }
    if (!find_columns(p, in, before)) {
        return false;
    }
    printf("%s row 0:", p.name);
    for (unsigned k = 0; k < p.k; k++) {
        printf(" %d", before[0][k]);
    }
    printf("\n");
    for (unsigned lane = 0; lane < LANES; lane++) {
        for (unsigned n = 0; n < 8; n++) {
            input changed = in;
            changed.e[lane] ^= (0x4u ^ 0xeu) << 4 * n;
            if (!find_columns(p, changed, after)) {
                return false;
            }
            printf("%s lane %u nibble %u:", p.name, lane, n);
            for (unsigned row = 0; row < p.threads / 2; row++) {
                for (unsigned k = 0; k < p.k; k++) {
                    if (before[row][k] != after[row][k]) {
                        printf(" %c(%u,%u)", after[row][k] ? '+' : '-', row, k);
                    }
                }
            }
            printf("\n");
        }
    }
    return true;
}

} // namespace

int main(int argc, char **argv) {
    bool layout = argc > 1 && strcmp(argv[1], "layout") == 0;
    if (argc < 2 || (!layout && strcmp(argv[1], "random") != 0)) {
        fprintf(stderr, "sparse: usage: sparse layout|random [NAME]\n");
        return 2;
    }
    bool right = cudaMalloc(&d_in, sizeof *d_in) == cudaSuccess &&
                 cudaMalloc(&d_out, sizeof *d_out) == cudaSuccess;
    for (const product &p : products) {
        if (argc > 2 && strcmp(argv[2], p.name) != 0) {
            continue;
        }
        for (uint32_t seed = 1; !layout && seed <= 3; seed++) {
            right = random_case(p, seed) && right;
        }
        right = (!layout || print_layout(p)) && right;
    }
    cudaFree(d_in);
    cudaFree(d_out);
    return right ? 0 : 1;
}
