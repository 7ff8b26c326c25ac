// Kernels with one mistake each, such as learners make. faulty_test.c expects every one of them
// to be stopped at the line that carries its mark.
#include <cassert>
#include <cstdio>

__constant__ int weights[4] = {1, 2, 3, 4};
__device__ int totals[10];

// Helpers that the compiler puts where they are called.
static __device__ __forceinline__ int element(const int *array, int index) {
    return array[index]; // FAULT: helper_is_called_with_a_wrong_index
}

static __device__ __forceinline__ int sum_of_two(const int *array, int index) {
    return element(array, index) + element(array, index + 1); // CALL: helper_is_called_with_a_wrong_index
}

extern "C" {

__global__ void helper_is_called_with_a_wrong_index(int *out, const int *in) {
    int t = threadIdx.x;
    out[t] = sum_of_two(in, t); // CALL: helper_is_called_with_a_wrong_index
}

// Beyond an array in global memory.

__global__ void reads_one_past(int *out, const int *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i + 1]; // FAULT: reads_one_past
}

__global__ void guard_lets_one_more_in(int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) {
        out[i] = i; // FAULT: guard_lets_one_more_in
    }
}

__global__ void guard_forgotten(float *y, const float *x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = 2.0f * x[i]; // FAULT: guard_forgotten
}

__global__ void guard_with_size_of_grid(int *out, int n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < gridDim.x * blockDim.x) {
        out[i] = n; // FAULT: guard_with_size_of_grid
    }
}

__global__ void neighbour_of_the_first(int *out, const int *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] - in[i - 1]; // FAULT: neighbour_of_the_first
}

__global__ void row_and_column_swapped(int *out, int width) {
    int x = threadIdx.x, y = threadIdx.y;
    out[x * width + y] = x; // FAULT: row_and_column_swapped
}

__global__ void count_taken_for_bytes(float *out) {
    out[threadIdx.x] = 1.0f; // FAULT: count_taken_for_bytes
}

__global__ void bytes_one_past(char *text, int n) {
    for (int i = threadIdx.x; i <= n; i += blockDim.x) {
        text[i] = 'a'; // FAULT: bytes_one_past
    }
}

__global__ void pairs_of_an_odd_array(float2 *out, const float2 *in, int n) {
    int i = threadIdx.x;
    if (2 * i < n) {
        out[i] = in[i]; // FAULT: pairs_of_an_odd_array
    }
}

__global__ void read_only_one_past(int *out, const int *__restrict__ in) {
    out[threadIdx.x] = __ldg(&in[2 * threadIdx.x]); // FAULT: read_only_one_past
}

__global__ void bin_too_many(int *bins, const int *data) {
    atomicAdd(&bins[data[threadIdx.x]], 1); // FAULT: bin_too_many
}

__global__ void constants_overrun(int *out) {
    out[threadIdx.x] = weights[threadIdx.x]; // FAULT: constants_overrun
}

__global__ void device_variable_overrun(int value) {
    totals[threadIdx.x] = value; // FAULT: device_variable_overrun
}

__global__ void index_overflows(int *out, int row, int pitch) {
    int index = row * pitch + (int)threadIdx.x;
    out[index] = 1; // FAULT: index_overflows
}

__global__ void unsigned_counts_below_zero(int *out, const int *in, unsigned n) {
    int sum = 0;
    for (unsigned i = n - 1; (int)i >= -1; i--) {
        sum += in[i]; // FAULT: unsigned_counts_below_zero
    }
    *out = sum;
}

// Pointers to nowhere.

__global__ void null_pointer(int *out) {
    out[threadIdx.x] = 1; // FAULT: null_pointer
}

__global__ void pointer_of_the_host(const int *in, int *out) {
    out[threadIdx.x] = in[threadIdx.x]; // FAULT: pointer_of_the_host
}

__global__ void table_of_null_pointers(int *out, int **rows) {
    int *row = rows[threadIdx.y];
    out[threadIdx.x] = row[threadIdx.x]; // FAULT: table_of_null_pointers
}

__global__ void freed_input(int *out, const int *in) {
    out[threadIdx.x] = in[threadIdx.x]; // FAULT: freed_input
}

__global__ void freed_output(int *out) {
    out[threadIdx.x] = 1; // FAULT: freed_output
}

// Misaligned.

__global__ void misaligned_float4(float4 *out, const float *in) {
    const float4 *shifted = reinterpret_cast<const float4 *>(in + 1);
    out[threadIdx.x] = shifted[threadIdx.x]; // FAULT: misaligned_float4
}

__global__ void misaligned_float2(float *out) {
    float2 *pairs = reinterpret_cast<float2 *>(out + 3);
    pairs[threadIdx.x] = make_float2(1.0f, 2.0f); // FAULT: misaligned_float2
}

__global__ void misaligned_double(double *out, const char *bytes, int header) {
    const double *values = reinterpret_cast<const double *>(bytes + header);
    out[threadIdx.x] = values[threadIdx.x]; // FAULT: misaligned_double
}

__global__ void misaligned_int(int *out, const char *bytes) {
    out[threadIdx.x] = *reinterpret_cast<const int *>(bytes + threadIdx.x); // FAULT: misaligned_int
}

__global__ void misaligned_row_of_a_tile(float4 *out) {
    __shared__ float tile[8][33];
    int t = threadIdx.x;
    for (int row = 0; row < 8; row++) {
        tile[row][t] = t;
    }
    __syncthreads();
    out[t] = *reinterpret_cast<float4 *>(&tile[t % 8][4]); // FAULT: misaligned_row_of_a_tile
}

// Beyond shared and local arrays.

__global__ void shared_one_past(int *out) {
    __shared__ int line[64];
    int t = threadIdx.x;
    line[t + 1] = t; // FAULT: shared_one_past
    __syncthreads();
    out[t] = line[t];
}

__global__ void shared_before_start(int *out, int n) {
    __shared__ int line[64];
    int t = threadIdx.x;
    line[t] = n;
    __syncthreads();
    out[t] = line[t - 1]; // FAULT: shared_before_start
}

__global__ void more_threads_than_the_tile(int *out) {
    __shared__ int tile[128];
    tile[threadIdx.x] = 1; // FAULT: more_threads_than_the_tile
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
}

__global__ void dynamic_shared_too_small(int *out) {
    extern __shared__ int dynamic[];
    dynamic[threadIdx.x] = 1; // FAULT: dynamic_shared_too_small
    __syncthreads();
    out[threadIdx.x] = dynamic[threadIdx.x ^ 1];
}

__global__ void dynamic_shared_forgotten(int *out) {
    extern __shared__ int dynamic[];
    dynamic[threadIdx.x] = 1; // FAULT: dynamic_shared_forgotten
    __syncthreads();
    out[threadIdx.x] = dynamic[threadIdx.x ^ 1];
}

__global__ void shared_bin_too_many(int *out, const int *data) {
    __shared__ int bins[16];
    if (threadIdx.x < 16) {
        bins[threadIdx.x] = 0;
    }
    __syncthreads();
    atomicAdd(&bins[data[threadIdx.x]], 1); // FAULT: shared_bin_too_many
    __syncthreads();
    out[threadIdx.x] = bins[threadIdx.x % 16];
}

__global__ void local_one_past(int *out, int n, int pick) {
    int mine[8];
    for (int i = 0; i <= n; i++) {
        mine[i] = i * pick; // FAULT: local_one_past
    }
    out[threadIdx.x] = mine[pick];
}

__global__ void local_before_start(int *out, int n) {
    int mine[8];
    for (int i = 0; i < 8; i++) {
        mine[i] = i * n;
    }
    out[threadIdx.x] = mine[n - 1 - (int)threadIdx.x]; // FAULT: local_before_start
}

__global__ void first_array_into_the_second(int *out, const int *in) {
    __shared__ int low[32];
    __shared__ int high[32];
    int t = threadIdx.x;
    high[t] = in[t];
    low[t] = in[t] + 1;
    __syncthreads();
    out[t] = low[t + 1] + high[31 - t]; // FAULT: first_array_into_the_second
}

__global__ void second_array_into_the_first(int *out, const int *in) {
    __shared__ int low[32];
    __shared__ int high[32];
    int t = threadIdx.x;
    low[t] = in[t];
    high[t] = in[t] + 1;
    __syncthreads();
    for (int i = t; i >= -1; i--) {
        out[t] += high[i] * low[31 - t]; // FAULT: second_array_into_the_first
    }
}

__global__ void bins_into_the_tile(int *out, const int *data) {
    __shared__ int bins[16];
    __shared__ int tile[64];
    int t = threadIdx.x;
    tile[t] = data[t];
    if (t < 16) {
        bins[t] = 0;
    }
    __syncthreads();
    atomicAdd(&bins[tile[t]], 1); // FAULT: bins_into_the_tile
    __syncthreads();
    out[t] = bins[t % 16] + tile[63 - t];
}

__global__ void dynamic_array_before_its_start(int *out, const int *in) {
    __shared__ int fixed[64];
    extern __shared__ int dynamic[];
    int t = threadIdx.x;
    fixed[t] = in[t];
    dynamic[t] = in[t];
    __syncthreads();
    out[t] = dynamic[t - 1] + fixed[63 - t]; // FAULT: dynamic_array_before_its_start
}

// Read before anything was written.

__global__ void sum_never_set(int *sum, const int *in) {
    sum[threadIdx.x] += in[threadIdx.x]; // FAULT: sum_never_set
}

__global__ void atomic_sum_never_set(int *sum, const int *in) {
    atomicAdd(sum, in[threadIdx.x]); // FAULT: atomic_sum_never_set
}

__global__ void neighbour_never_set(int *data, int *out) {
    int t = threadIdx.x;
    if (t % 2 == 0) {
        data[t] = t;
    }
    __syncthreads();
    out[t] = data[t ^ 1]; // FAULT: neighbour_never_set
}

__global__ void shared_count_never_set(int *out) {
    __shared__ int count[32];
    count[threadIdx.x] += 1; // READ: shared_count_never_set
    __syncthreads();
    out[threadIdx.x] = count[31 - threadIdx.x]; // FAULT: shared_count_never_set
}

__global__ void shared_bins_never_set(int *out, const int *data) {
    __shared__ int bins[64];
    atomicAdd(&bins[data[threadIdx.x]], 1); // FAULT: shared_bins_never_set
    __syncthreads();
    out[threadIdx.x] = bins[threadIdx.x];
}

__global__ void halo_never_loaded(int *out, const int *in) {
    __shared__ int tile[66];
    int t = threadIdx.x;
    tile[t + 1] = in[t];
    __syncthreads();
    int left = tile[t];                        // READ: halo_never_loaded
    out[t] = left + tile[t + 1] + tile[t + 2]; // FAULT: halo_never_loaded
}

__global__ void fewer_threads_than_the_tile(int *out, const int *in) {
    __shared__ int tile[256];
    int t = threadIdx.x;
    tile[t] = in[t];
    __syncthreads();
    for (int s = 128; s > 0; s /= 2) {
        if (t < s) {
            tile[t] += tile[t + s]; // READ: fewer_threads_than_the_tile
        }
        __syncthreads();
    }
    if (t == 0) {
        *out = tile[0]; // FAULT: fewer_threads_than_the_tile
    }
}

__global__ void writers_left_early(int *out, const int *in, int n) {
    __shared__ int tile[64];
    int t = threadIdx.x;
    if (t < n) {
        return;
    }
    tile[t] = in[t];
    __syncthreads();
    out[t] = tile[63 - t]; // FAULT: writers_left_early
}

__global__ void local_never_filled(int *out, int n, int pick) {
    int mine[16];
    for (int i = 0; i < n; i++) {
        mine[i] = i * pick;
    }
    out[threadIdx.x] = mine[pick + (threadIdx.x & 3)]; // FAULT: local_never_filled
}

__global__ void local_count_not_zeroed(int *out, const int *in, int n) {
    int count[8];
    for (int i = 0; i < n; i++) {
        count[in[i] & 7]++; // READ: local_count_not_zeroed
    }
    for (int i = 0; i < 8; i++) {
        out[i] = count[i]; // FAULT: local_count_not_zeroed
    }
}

// Values that nothing has written are told where they are used.

__global__ void undefined_branch(int *out, int n) {
    __shared__ int line[64];
    int t = threadIdx.x;
    if (t < n) {
        line[t] = t;
    }
    __syncthreads();
    int value = 3 * line[t]; // READ: undefined_branch
    out[t] = 0;
    for (int i = 0; i < value; i += n) { // FAULT: undefined_branch
        out[t] += i & t;
    }
}

__global__ void undefined_index(int *out, const int *in) {
    __shared__ int order[64];
    int t = threadIdx.x;
    if (in[t] < 40) {
        order[t] = t ^ 1;
    }
    __syncthreads();
    int place = order[t] & 31; // READ: undefined_index
    out[t] = in[place];        // FAULT: undefined_index
}

__global__ void undefined_through_shared(int *out, int n) {
    __shared__ int a[32], b[32];
    int t = threadIdx.x;
    if (t < n) {
        a[t] = t;
    }
    __syncthreads();
    b[t] = a[t] + 1; // READ: undefined_through_shared
    __syncthreads();
    out[t] = b[31 - t]; // FAULT: undefined_through_shared
}

__device__ __noinline__ int weighted(int a, int b) {
    return 3 * a + b;
}

__global__ void undefined_through_a_call(int *out, const int *never) {
    int sum = weighted(threadIdx.x, never[threadIdx.x]); // READ: undefined_through_a_call
    out[threadIdx.x] = sum;                              // FAULT: undefined_through_a_call
}

__global__ void undefined_through_a_shuffle(int *out, int n) {
    __shared__ int line[32];
    int t = threadIdx.x;
    if (t < n) {
        line[t] = t;
    }
    __syncthreads();
    int sum = line[t]; // READ: undefined_through_a_shuffle
    for (int s = 16; s > 0; s /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, s);
    }
    if (t == 0) {
        *out = sum; // FAULT: undefined_through_a_shuffle
    }
}

__global__ void undefined_vote(int *out, int n) {
    __shared__ int line[32];
    int t = threadIdx.x;
    if (t < n) {
        line[t] = t;
    }
    __syncthreads();
    unsigned votes = __ballot_sync(0xffffffffu, line[t] > 5); // READ: undefined_vote
    if (t < 4) {
        out[t] = votes; // FAULT: undefined_vote
    }
}

__global__ void undefined_printed(int *out, int n) {
    __shared__ int line[32];
    int t = threadIdx.x;
    if (t < n) {
        line[t] = t;
    }
    __syncthreads();
    int value = line[t]; // READ: undefined_printed
    if (t >= n) {
        printf("%d\n", value); // FAULT: undefined_printed
    }
    out[t] = n;
}

__global__ void undefined_member(int *out, int n, int pick) {
    struct {
        int count, sum;
    } pairs[4];
    for (int i = 0; i < n; i++) {
        pairs[i & 3].count = i;
        if (i > 9) {
            pairs[i & 3].sum = i;
        }
    }
    out[threadIdx.x] = n > 50 ? pairs[pick].count : pairs[pick].sum; // FAULT: undefined_member
}

__global__ void undefined_product(float *out, const float *in, int n) {
    __shared__ float tile[16][17];
    int x = threadIdx.x, y = threadIdx.y;
    if (x < n && y < n) {
        tile[y][x] = in[y * 16 + x];
    }
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 16; k++) {
        sum += tile[y][k] * tile[k][x]; // READ: undefined_product
    }
    out[y * 16 + x] = sum; // FAULT: undefined_product
}

// Shuffles from lanes that are not there.

__global__ void shuffle_from_outside_the_mask(int *out, const int *in) {
    int t = threadIdx.x;
    if (t < 8) {
        int value = in[t];
        value += __shfl_down_sync(0xffu, value, 16); // READ: shuffle_from_outside_the_mask
        out[t] = value;                              // FAULT: shuffle_from_outside_the_mask
    }
} // OTHER: shuffle_from_outside_the_mask

__global__ void shuffle_from_the_returned(int *out, const int *in) {
    int t = threadIdx.x, value = in[t];
    if (t >= 16) {
        return;
    }
    for (int s = 16; s > 0; s /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, s); // READ: shuffle_from_the_returned
    }
    out[t] = value; // FAULT: shuffle_from_the_returned
}

__global__ void shuffle_beyond_the_block(int *out, const int *in) {
    int t = threadIdx.x, sum = in[t];
    for (int s = 16; s > 0; s /= 2) {
        sum += __shfl_down_sync(0xffffffffu, sum, s); // READ: shuffle_beyond_the_block
    }
    if (t == 0) {
        *out = sum; // FAULT: shuffle_beyond_the_block
    }
}

__global__ void shuffle_from_another_branch(int *out, const int *in) {
    int t = threadIdx.x, value = in[t];
    if (value % 2 == 0) {
        value = __shfl_sync(0x55555555u, value, 5); // READ: shuffle_from_another_branch
        if (value > 2) {                            // FAULT: shuffle_from_another_branch
            out[t] = 5;
        }
    } else {
        for (int i = 0; i < in[t]; i++) {
            out[t] = i;
        }
    }
} // OTHER: shuffle_from_another_branch

// Races in shared memory.

__global__ void tile_without_barrier(int *out, const int *in) {
    __shared__ int tile[128];
    int t = threadIdx.x;
    tile[t] = in[t];
    out[t] = tile[127 - t]; // FAULT: tile_without_barrier
}

__global__ void reduction_without_barrier(int *out, const int *in) {
    __shared__ int part[256];
    int t = threadIdx.x;
    part[t] = in[t];
    __syncthreads();
    for (int s = 128; s > 0; s /= 2) {
        if (t < s) {
            part[t] += part[t + s]; // FAULT: reduction_without_barrier
        }
    }
    if (t == 0) {
        *out = part[0];
    }
}

__global__ void tile_loaded_again_too_early(float *out, const float *in, int n) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < n; k += 64) {
        tile[t] = in[k + t]; // FAULT: tile_loaded_again_too_early
        __syncthreads();
        for (int i = 0; i < 64; i++) {
            sum += tile[i] * (i ^ t); // FAULT: tile_loaded_again_too_early
        }
    }
    out[t] = sum;
}

__global__ void transposition_without_barrier(int *out, const int *in) {
    __shared__ int tile[16][17];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = in[y * 16 + x];  // OTHER: transposition_without_barrier
    out[y * 16 + x] = tile[x][y]; // FAULT: transposition_without_barrier
}

__global__ void scan_in_place(int *data) {
    __shared__ int line[128];
    int t = threadIdx.x;
    line[t] = data[t];
    __syncthreads();
    for (int s = 1; s < 128; s *= 2) {
        if (t >= s) {
            line[t] += line[t - s]; // FAULT: scan_in_place
        }
        __syncthreads();
    }
    data[t] = line[t];
}

__global__ void broadcast_without_barrier(int *out, const int *in) {
    __shared__ int mean;
    if (threadIdx.x == 0) {
        mean = in[0];
    }
    out[threadIdx.x] = in[threadIdx.x] - mean; // FAULT: broadcast_without_barrier
}

__global__ void shared_counter_not_atomic(int *out, const int *in) {
    __shared__ int count;
    if (threadIdx.x == 0) {
        count = 0;
    }
    __syncthreads();
    if (in[threadIdx.x] % 2 == 0) {
        count++; // FAULT: shared_counter_not_atomic
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        *out = count;
    }
}

__global__ void winner_takes_the_slot(int *out, const int *in) {
    __shared__ int slot;
    slot = in[threadIdx.x]; // FAULT: winner_takes_the_slot
    __syncthreads();
    out[threadIdx.x] = slot;
}

__global__ void warp_exchange_without_syncwarp(int *out, const int *in) {
    __shared__ int line[32];
    int t = threadIdx.x;
    line[t] = in[t]; // OTHER: warp_exchange_without_syncwarp
    out[t] = line[31 - t]; // FAULT: warp_exchange_without_syncwarp
}

// Neighbours are of one warp, and yet the whole block needs the barrier.
__global__ void neighbour_in_a_tile(int *out, const int *in) {
    __shared__ int tile[128];
    int t = threadIdx.x;
    tile[t] = in[t]; // OTHER: neighbour_in_a_tile
    out[t] = tile[t ^ 1]; // FAULT: neighbour_in_a_tile
}

// Only one warp writes, but all of them read.
__global__ void leader_tells_the_block_again(int *out, const int *in) {
    __shared__ int value[1];
    int t = threadIdx.x, sum = 0;
    for (int i = 0; i < 4; i++) {
        if (t == 0) {
            value[in[0]] = in[i]; // FAULT: leader_tells_the_block_again
        }
        __syncthreads();
        sum += value[in[0]]; // OTHER: leader_tells_the_block_again
    }
    out[t] = sum;
}

__global__ void leader_tells_all(int *out, const int *in, int n) {
    __shared__ int slot[32];
    int t = threadIdx.x;
    if (t == 0) {
        slot[n] = in[t]; // OTHER: leader_tells_all
    }
    out[t] = slot[in[n]]; // FAULT: leader_tells_all
}

__global__ void last_warp_without_syncwarp(int *out, const int *in) {
    __shared__ int part[64];
    int t = threadIdx.x;
    part[t] = in[t];
    __syncthreads();
    if (t < 32) {
        for (int s = 32; s > 0; s /= 2) {
            if (t < s) {
                part[t] += part[t + s]; // FAULT: last_warp_without_syncwarp
            }
        }
    }
    __syncthreads();
    out[t] = part[0];
}

__global__ void shifted_in_place_in_one_warp(int *out, const int *in) {
    __shared__ int line[33];
    int t = threadIdx.x;
    line[t] = in[t];
    line[32] = 0;
    __syncwarp();
    int next = line[t + 1]; // OTHER: shifted_in_place_in_one_warp
    line[t] = next; // FAULT: shifted_in_place_in_one_warp
    __syncwarp();
    out[t] = line[31 - t];
}

__global__ void leader_replaces_what_others_read(int *out, const int *in) {
    __shared__ int seed;
    int t = threadIdx.x, sum = 0;
    if (t == 0) {
        seed = in[0];
    }
    __syncwarp();
    for (int i = 0; i < 4; i++) {
        sum = sum * 5 + seed; // OTHER: leader_replaces_what_others_read
        if (t == 0) {
            seed = in[i]; // FAULT: leader_replaces_what_others_read
        }
        __syncwarp();
    }
    out[t] = sum;
}

__global__ void lanes_one_after_the_other(int *out, const int *in) {
    __shared__ int last;
    int t = threadIdx.x;
    if (in[t] % 2 == 0) {
        if (t == 4) {
            last = in[t]; // FAULT: lanes_one_after_the_other
        }
    } else if (t == 7) {
        last = in[t]; // FAULT: lanes_one_after_the_other
    }
    __syncwarp();
    out[t] = last;
}

// Races of one block in global memory.

__global__ void reversed_without_barrier(int *data) {
    int t = threadIdx.x;
    int value = data[t] * 2; // FAULT: reversed_without_barrier
    data[127 - t] = value; // FAULT: reversed_without_barrier
}

__global__ void results_asked_for_too_early(int *part, int *out) {
    int t = threadIdx.x;
    part[t] = t * t; // FAULT: results_asked_for_too_early
    out[t] = part[127 - t]; // FAULT: results_asked_for_too_early
}

__global__ void global_sum_without_barrier(int *part, const int *in) {
    int t = threadIdx.x;
    part[t] = in[t];
    __syncthreads();
    for (int s = 128; s > 0; s /= 2) {
        if (t < s) {
            part[t] += part[t + s]; // FAULT: global_sum_without_barrier
        }
    }
}

// Every other thread drops what it reads of its neighbour, the rest add it.
__global__ void neighbours_of_every_other_thread(int *row) {
    int t = threadIdx.x;
    int next = row[min(127, t + 1)]; // OTHER: neighbours_of_every_other_thread
    row[t] = t % 2 == 1 ? t + next : 7; // FAULT: neighbours_of_every_other_thread
}

__global__ void neighbours_in_one_warp(int *out, int *data) {
    int t = threadIdx.x;
    data[t] = 3 * t; // OTHER: neighbours_in_one_warp
    out[t] = data[(t + 1) % 32]; // FAULT: neighbours_in_one_warp
}

__global__ void global_counter_not_atomic(int *count) {
    int old = *count;
    __syncthreads();
    *count = old + threadIdx.x; // FAULT: global_counter_not_atomic
}

__global__ void flag_without_a_fence(int *data, volatile int *flag) {
    if (threadIdx.x == 0) {
        *data = 5; // OTHER: flag_without_a_fence
        *flag = 1;
    } else if (threadIdx.x == 32) {
        while (*flag == 0) {
        }
        data[1] = *data; // FAULT: flag_without_a_fence
    }
}

// Races between blocks.

// The sum that a block has published is read with no fence: only its flag is relaxed.
__global__ void look_back_without_a_fence(int *sums, volatile int *state) {
    if (blockIdx.x == 0) {
        sums[0] = 5; // OTHER: look_back_without_a_fence
        state[0] = 1;
        return;
    }
    while (state[0] == 0) {
    }
    state[1] = 2 + sums[0]; // FAULT: look_back_without_a_fence
}

// The block that publishes has a fence, the one that waits has none.
__global__ void looks_without_a_fence(int *sums, volatile int *state) {
    if (blockIdx.x == 0) {
        sums[0] = 5; // OTHER: looks_without_a_fence
        __threadfence();
        state[0] = 1;
        return;
    }
    while (state[0] == 0) {
    }
    state[1] = 2 + sums[0]; // FAULT: looks_without_a_fence
}

// A block reads its part again after it has published that it is done with it.
__global__ void look_back_reads_again(int *data, volatile int *state) {
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        int value = data[t];
        __syncthreads();
        if (t == 0) {
            state[0] = 1;
        }
        __syncthreads();
        if (value + data[63 - t] < 0) { // OTHER: look_back_reads_again
            state[1] = 1;
        }
        return;
    }
    while (state[0] == 0) {
    }
    data[t] = -1; // FAULT: look_back_reads_again
}

// As look_back_compact of tricky.cu, but no block waits for the one before it.
__global__ void compacts_without_looking_back(int *data, volatile int *state) {
    int value = data[blockIdx.x * 32 + threadIdx.x]; // OTHER: compacts_without_looking_back
    state[blockIdx.x] = value;
    if (blockIdx.x > 0) {
        data[blockIdx.x * 32 + threadIdx.x - 32] = value; // FAULT: compacts_without_looking_back
    }
}

__global__ void sum_of_blocks_not_atomic(int *sum, const int *in) {
    if (threadIdx.x == 0) {
        *sum += in[blockIdx.x]; // FAULT: sum_of_blocks_not_atomic
    }
}

__global__ void blur_in_place(int *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 1 < n) {
        int next = data[i + 1]; // OTHER: blur_in_place
        __syncthreads();
        data[i] += next; // FAULT: blur_in_place
    }
}

__global__ void asks_the_next_block(int *part, int *out) {
    int b = blockIdx.x;
    if (threadIdx.x == 0) {
        part[b] = b * b + 7; // FAULT: asks_the_next_block
        out[b] = part[(b + 1) % gridDim.x]; // OTHER: asks_the_next_block
    }
}

__global__ void asks_the_block_before(int *part, int *out) {
    int b = blockIdx.x;
    if (threadIdx.x == 0) {
        part[b] = b * b + 7; // OTHER: asks_the_block_before
        if (b > 0) {
            out[b] = part[b - 1]; // FAULT: asks_the_block_before
        }
    }
}

__global__ void blocks_overlap(int *out) {
    int i = blockIdx.x * (blockDim.x - 1) + threadIdx.x;
    out[i] = blockIdx.x + 5; // FAULT: blocks_overlap
}

__global__ void last_block_without_fence(int *part, unsigned *done, int *out) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        part[blockIdx.x] = blockIdx.x + 3; // OTHER: last_block_without_fence
        last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x < gridDim.x) {
        atomicAdd(out, part[threadIdx.x]); // FAULT: last_block_without_fence
    }
}

__global__ void bins_of_all_blocks_not_atomic(int *bins, const int *data) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bins[data[i] % 8 + 8 * (threadIdx.x / 8)] += 1; // FAULT: bins_of_all_blocks_not_atomic
}

// Barriers and operations of a warp that not all reach.

__global__ void barrier_in_a_branch(int *out) {
    int t = threadIdx.x;
    if (t < 40) {
        out[t] = t;
        __syncthreads(); // FAULT: barrier_in_a_branch
        out[t] += out[t ^ 1];
    } else {
        out[t] = 0;
        __syncthreads(); // FAULT: barrier_in_a_branch
        out[t] -= 1;
    }
    __syncthreads();
}

__global__ void barrier_in_a_loop_of_own_length(int *out, const int *lengths) {
    int t = threadIdx.x, sum = 0;
    for (int i = 0; i < lengths[t]; i++) {
        sum += i;
        __syncthreads(); // FAULT: barrier_in_a_loop_of_own_length
    }
    __syncthreads(); // FAULT: barrier_in_a_loop_of_own_length
    out[t] = sum;
}

__global__ void barriers_of_two_numbers(int *out) {
    if (threadIdx.x < 32) {
        asm volatile("bar.sync 1, 64;" ::: "memory"); // FAULT: barriers_of_two_numbers
    } else {
        asm volatile("bar.sync 2, 64;" ::: "memory"); // FAULT: barriers_of_two_numbers
    }
    out[threadIdx.x] = 1;
}

__global__ void barrier_counts_too_many(int *out) {
    out[threadIdx.x] = 1;
    asm volatile("bar.sync 1, 96;" ::: "memory"); // FAULT: barrier_counts_too_many
    out[threadIdx.x] = 2;
}

// The producers wait until slot 1 is full, the consumers until slot 0 is empty.
__global__ void both_sides_wait(int *out, const int *in) {
    __shared__ int slot[2][32];
    int t = threadIdx.x % 32;
    for (int round = 0; round < 4; round++) {
        if (threadIdx.x < 32) {
            slot[round % 2][t] = in[t];
            asm volatile("bar.sync %0, 64;" ::"r"(1 + round % 2) : "memory"); // FAULT: both_sides_wait
        } else {
            asm volatile("bar.sync %0, 64;" ::"r"(1 + round % 2) : "memory");
            out[t] = slot[round % 2][31 - t];
            asm volatile("bar.sync %0, 64;" ::"r"(3 + round % 2) : "memory");
        }
    }
}

__global__ void shuffle_of_half_a_warp(int *out, const int *in) {
    int t = threadIdx.x, value = in[t];
    if (t < 16) {
        value += __shfl_xor_sync(0xffffffffu, value, 1); // FAULT: shuffle_of_half_a_warp
    }
    __syncthreads();
    out[t] = value;
}

__global__ void ballot_of_half_a_warp(unsigned *out, const int *in) {
    int t = threadIdx.x;
    unsigned votes = 0;
    if (in[t] % 2 == 1) {
        votes = __ballot_sync(0xffffffffu, in[t] > 7); // FAULT: ballot_of_half_a_warp
    }
    __syncwarp();
    out[t] = votes;
}

__global__ void mask_without_the_caller(int *out, const int *in) {
    int t = threadIdx.x;
    out[t] = __shfl_xor_sync(0x0000ffffu, in[t], 1); // FAULT: mask_without_the_caller
}

// Never ends, or ends early.

__global__ void waits_for_a_flag(volatile int *flag) {
    while (*flag == 0) { // FAULT: waits_for_a_flag
    }
}

__global__ void step_of_zero(int *out, int n, int step) {
    int sum = 0;
    for (int i = threadIdx.x; i < n; i += step) { // FAULT: step_of_zero
        sum ^= i;                                 // FAULT: step_of_zero
        out[threadIdx.x] = sum; // FAULT: step_of_zero
    }
}

__global__ void waits_for_a_later_block(volatile int *flags) {
    if (blockIdx.x + 1 < gridDim.x) {
        while (flags[blockIdx.x + 1] == 0) { // FAULT: waits_for_a_later_block
        }
    }
    flags[blockIdx.x] = 1;
}

__global__ void counts_for_ever(int *out, unsigned end, unsigned step) {
    unsigned i = 0;
    while (i != end) { // FAULT: counts_for_ever
        for (unsigned k = 0; k < end; k++) {
            out[k] = i;
        }
        i += step;
    }
}

__global__ void index_not_checked(int *out, int n) {
    int i = threadIdx.x;
    assert(i < n); // FAULT: index_not_checked
    out[i] = i;
}

__global__ void gives_up(int *out, int n) {
    if (n != 7) {
        __trap(); // FAULT: gives_up
    }
    *out = n;
}

} // extern "C"

__device__ __noinline__ int depth(int n, int *trace) {
    int mine[4] = {n, n + 1, n + 2, n + 3};
    *trace = n;
    if (n < 0) {
        return mine[trace[0] & 3];
    }
    return depth(n + 1, trace) + mine[*trace & 3]; // FAULT: recursion_without_end
}

extern "C" __global__ void recursion_without_end(int *out) {
    *out = depth(threadIdx.x, out);
}
