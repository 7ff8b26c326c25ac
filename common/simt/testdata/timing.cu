// Kernels whose blocks get in one another's way: what they do on a GPU is a matter of timing.
// host_threads_test.c expects the same of them for any number of host threads.

// Long enough for blocks on several host threads to overlap.
__device__ __noinline__ int long_sum(int seed, int steps) {
    for (int i = 0; i < steps; i++) {
        seed = seed * 1103515245 + 12345;
    }
    return seed & 0xff;
}

extern "C" {

// part has never been written: does the next block's come in time?
__global__ void reads_what_a_later_block_writes(int *part, int *out, int steps) {
    int b = blockIdx.x;
    if (threadIdx.x == 0) {
        part[b] = long_sum(b, steps);
        out[b] = b + 1 < gridDim.x ? part[b + 1] : 0;
    }
}

__global__ void reads_what_an_earlier_block_writes(int *part, int *out, int steps) {
    int b = blockIdx.x;
    if (threadIdx.x == 0) {
        out[b] = b > 7 ? part[b - 8] : 0;
        part[b] = long_sum(b, steps);
    }
}

__global__ void sum_of_all_blocks(int *sum, int *out, int steps) {
    int mine = long_sum(blockIdx.x, steps);
    if (threadIdx.x == 0) {
        *sum += mine;
        out[blockIdx.x] = mine;
    }
}

// The index may lie far outside by then.
__global__ void index_of_another_block(int *index, int *out, int steps) {
    int b = blockIdx.x;
    if (threadIdx.x == 0) {
        index[b] = b + long_sum(b, steps) * 4096;
        out[index[(b + 5) % gridDim.x]] = b;
    }
}

// Blocks in the middle go elsewhere when they see the flag.
__global__ void flag_decides(int *flag, int *out, int steps) {
    int b = blockIdx.x, mine = long_sum(b, steps);
    if (b == 3) {
        *flag = 1;
    }
    if (b > 8 && *flag != 0) {
        out[b * 100000] = mine;
    } else {
        out[b] = mine;
    }
}

// Block 5 makes a mistake of its own, blocks behind it race.
__global__ void mistake_before_a_race(int *part, int *out, int steps) {
    int b = blockIdx.x, mine = long_sum(b, steps);
    if (b > 5 && threadIdx.x == 0) {
        part[0] = mine;
    }
    out[b == 5 ? 1 << 20 : b] = mine;
}

// No fault by the rules, but results that depend on timing.

// What one of the blocks sees of a sum that only atomic operations add to.
__global__ void reads_a_growing_sum(int *sum, int *out, int steps) {
    int mine = long_sum(blockIdx.x, steps);
    if (threadIdx.x == 0) {
        atomicAdd(sum, mine);
        out[blockIdx.x] = *sum;
    }
}

__global__ void all_set_the_same_flag(int *flag, int *out, int steps) {
    int mine = long_sum(blockIdx.x, steps);
    *flag = 1;
    out[blockIdx.x] = mine;
}

// Blocks in no one's way.

__global__ void bytes_side_by_side(unsigned char *bytes, int *out, int steps) {
    int b = blockIdx.x, mine = long_sum(b, steps);
    bytes[b] = (unsigned char)mine;
    out[b] = bytes[b];
}

__global__ void bins_of_all_blocks(int *bins, int *out, int steps) {
    int b = blockIdx.x, mine = long_sum(b, steps);
    atomicAdd(&bins[mine % 16], 1);
    out[b] = mine;
}

} // extern "C"
