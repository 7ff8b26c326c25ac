// Kernels of everyday programs, for launch_bench: products, filters, sorting, random numbers.
// All take an output, two inputs of N x N floats, and N.

// C = A * B by tiles of 32 x 32, one result a thread; the loop over a tile is unrolled.
extern "C" __global__ void matmul(float *C, const float *A, const float *B, int N) {
    __shared__ float a[32][32];
    __shared__ float b[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 32 + y, column = blockIdx.x * 32 + x;
    float sum = 0.0f;
    for (int k = 0; k < N; k += 32) {
        a[y][x] = A[row * N + k + x];
        b[y][x] = B[(k + y) * N + column];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 32; i++) {
            sum += a[y][i] * b[i][x];
        }
        __syncthreads();
    }
    C[row * N + column] = sum;
}

#define RADIUS 8
#define STEPS 8 /* results of a thread */

__constant__ float filter[2 * RADIUS + 1] = {0.01f, 0.02f, 0.03f, 0.05f, 0.06f, 0.08f,
                                             0.09f, 0.10f, 0.12f, 0.10f, 0.09f, 0.08f,
                                             0.06f, 0.05f, 0.03f, 0.02f, 0.01f};

// Rows of an image: blocks of 16 x 4 threads, so that a warp has two rows. What lies beyond the
// image counts as zero.
extern "C" __global__ void filter_rows(float *out, const float *in, const float *unused, int N) {
    __shared__ float tile[4][16 * (STEPS + 2)];
    int x = threadIdx.x, y = threadIdx.y;
    int first = blockIdx.x * 16 * STEPS - 16 + x;
    const float *row = in + (blockIdx.y * 4 + y) * N;
#pragma unroll
    for (int n = 0; n < STEPS + 2; n++) {
        int column = first + 16 * n;
        tile[y][16 * n + x] = column >= 0 && column < N ? row[column] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int n = 1; n <= STEPS; n++) {
        float sum = 0.0f;
#pragma unroll
        for (int k = -RADIUS; k <= RADIUS; k++) {
            sum += filter[RADIUS - k] * tile[y][16 * n + x + k];
        }
        out[(blockIdx.y * 4 + y) * N + first + 16 * n] = sum;
    }
}

// Columns: blocks of 16 x 8 threads; a row of padding keeps the banks apart.
extern "C" __global__ void filter_columns(float *out, const float *in, const float *unused,
                                          int N) {
    __shared__ float tile[16][8 * (STEPS + 2) + 1];
    int x = threadIdx.x, y = threadIdx.y;
    int first = blockIdx.y * 8 * STEPS - 8 + y;
    const float *column = in + blockIdx.x * 16 + x;
#pragma unroll
    for (int n = 0; n < STEPS + 2; n++) {
        int row = first + 8 * n;
        tile[x][8 * n + y] = row >= 0 && row < N ? column[row * N] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int n = 1; n <= STEPS; n++) {
        float sum = 0.0f;
#pragma unroll
        for (int k = -RADIUS; k <= RADIUS; k++) {
            sum += filter[RADIUS - k] * tile[x][8 * n + y + k];
        }
        out[(first + 8 * n) * N + blockIdx.x * 16 + x] = sum;
    }
}

// How many of `count` ascending keys lie before `key`; equal ones do where `equal` says so.
static __device__ int rank_of(const float *keys, int count, float key, bool equal) {
    int rank = 0;
    for (int step = count; step > 0; step /= 2) {
        int next = min(rank + step, count);
        float other = keys[next - 1];
        if (other < key || (equal && other == key)) {
            rank = next;
        }
    }
    return rank;
}

// Sorts pieces of 1024 keys, each by 512 threads: runs of 1, 2, 4 ... keys are merged in pairs; each
// thread finds the places of two keys.
extern "C" __global__ void merge_sort(float *out, const float *in, const float *unused, int N) {
    __shared__ float keys[1024];
    int t = threadIdx.x;
    int base = blockIdx.x * 1024;
    keys[t] = in[base + t];
    keys[t + 512] = in[base + t + 512];
    for (int run = 1; run < 1024; run *= 2) {
        int at = t & (run - 1);
        float *left = keys + 2 * (t - at), *right = left + run;
        __syncthreads();
        float a = left[at], b = right[at];
        int place_a = at + rank_of(right, run, a, false);
        int place_b = at + rank_of(left, run, b, true);
        __syncthreads();
        left[place_a] = a;
        left[place_b] = b;
    }
    __syncthreads();
    out[base + t] = keys[t];
    out[base + t + 512] = keys[t + 512];
}

// Marsaglia's xorwow.
struct generator {
    unsigned x[5], counter;
};

static __device__ float next_uniform(struct generator *g) {
    unsigned t = g->x[0] ^ (g->x[0] >> 2);
    g->x[0] = g->x[1];
    g->x[1] = g->x[2];
    g->x[2] = g->x[3];
    g->x[3] = g->x[4];
    g->x[4] = (g->x[4] ^ (g->x[4] << 4)) ^ (t ^ (t << 1));
    g->counter += 362437;
    return (g->x[4] + g->counter + 1.0f) * 2.3283064e-10f;
}

// The price of an option: normal numbers by Box and Muller, an exponential, a sum over the block.
extern "C" __global__ void monte_carlo(float *out, const float *start, const float *strike, int N) {
    __shared__ float sums[8];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    struct generator g = {{123456789u ^ i * 2654435761u, 362436069u + i, 521288629u, 88675123u ^ i,
                           5783321u},
                          6615241u};
    float s = 100.0f + start[i], k = 100.0f + strike[i], sum = 0.0f;
    for (int n = 0; n < N; n++) {
        float radius = sqrtf(-2.0f * logf(next_uniform(&g))), angle = 6.2831853f * next_uniform(&g);
        sum += fmaxf(s * __expf(0.02f + 0.2f * radius * __cosf(angle)) - k, 0.0f);
        sum += fmaxf(s * __expf(0.02f + 0.2f * radius * __sinf(angle)) - k, 0.0f);
    }
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        sum += __shfl_down_sync(0xffffffffu, sum, lanes);
    }
    if (t % 32 == 0) {
        sums[t / 32] = sum;
    }
    __syncthreads();
    if (t == 0) {
        for (int n = 1; n < 8; n++) {
            sum += sums[n];
        }
        out[blockIdx.x] = sum;
    }
}
