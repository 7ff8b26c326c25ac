// Correct kernels that a careless checker would accuse. tricky_test.c runs them with full checks
// and computes their results again on the CPU.
#include <cooperative_groups.h>
#include <cstdio>
#include <cuda_fp16.h>

namespace cg = cooperative_groups;

__constant__ int polynomial[5] = {7, -3, 2, 5, -1};

extern "C" {

// Inside a warp.

// Sum, inclusive scan and maximum of each warp; the last warp has fewer lanes.
__global__ void warp_shuffles(int *sum, int *scan, int *most, const int *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    unsigned mask = __ballot_sync(0xffffffffu, i < n);
    if (i >= n) {
        return;
    }
    int value = in[i], total = value, before = value, highest = value;
    for (int s = 16; s > 0; s /= 2) {
        int other = __shfl_down_sync(mask, total, s);
        total += i + s < n && lane + s < 32 ? other : 0;
        other = __shfl_xor_sync(mask, highest, s);
        highest = (i ^ s) < n ? max(highest, other) : highest;
    }
    for (int s = 1; s < 32; s *= 2) {
        int other = __shfl_up_sync(mask, before, s);
        before += lane >= s ? other : 0;
    }
    scan[i] = before;
    most[i] = highest;
    if (lane == 0) {
        sum[i / 32] = total;
    }
}

// Lanes exchange through shared memory; __syncwarp() is enough.
__global__ void syncwarp_exchange(int *out, const int *in) {
    __shared__ int line[4][32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, value = in[threadIdx.x];
    for (int round = 0; round < 5; round++) {
        line[warp][lane] = value;
        __syncwarp();
        value += 3 * line[warp][(lane + round + 1) % 32];
        __syncwarp();
    }
    out[threadIdx.x] = value;
}

// Code from before __syncwarp(): volatile keeps every step in memory.
__global__ void volatile_warp_sum(int *out, const int *in) {
    __shared__ volatile int part[64];
    int t = threadIdx.x;
    part[t] = in[t] + in[t + 32];
    for (int s = 16; s > 0; s /= 2) {
        int other = part[t + s < 32 ? t + s : t];
        __syncwarp();
        part[t] = part[t] + (t + s < 32 ? other : 0);
        __syncwarp();
    }
    if (t == 0) {
        *out = part[0];
    }
}

// The two halves name different masks in one and the same instruction.
__global__ void masks_of_halves(unsigned *out, const int *in) {
    int t = threadIdx.x;
    unsigned mask = t % 32 < 16 ? 0x0000ffffu : 0xffff0000u;
    unsigned votes = __ballot_sync(mask, in[t] % 3 == 0);
    int all = __all_sync(mask, in[t] < 100), any = __any_sync(mask, in[t] > 150);
    unsigned alike = __match_any_sync(mask, in[t] % 4);
    out[t] = votes + 1000003u * alike + 31u * all + 17u * any;
}

// The lanes of one mask come on two ways.
__global__ void lanes_meet_again(int *out, const int *in) {
    int t = threadIdx.x, value = in[t];
    if (value % 2 == 0) {
        for (int i = 0; i < value % 7; i++) {
            value += i;
        }
    } else if (value % 3 == 0) {
        value = -value;
    }
    value += __shfl_sync(0xffffffffu, value, (t + 5) % 32);
    out[t] = value;
}

// Half of the warp ends; the mask still names it, as the programming guide allows.
__global__ void other_half_has_ended(int *out, const int *in) {
    int t = threadIdx.x;
    if (t >= 16) {
        out[t] = -1;
        return;
    }
    int value = in[t];
    for (int s = 8; s > 0; s /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, s);
    }
    out[t] = value;
}

// One atomic operation for all lanes that are here.
__global__ void aggregated_atomics(int *out, int *count, const int *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && in[i] % 3 == 1) {
        unsigned active = __activemask();
        int lane = threadIdx.x % 32, leader = __ffs(active) - 1, base = 0;
        if (lane == leader) {
            base = atomicAdd(count, __popc(active));
        }
        base = __shfl_sync(active, base, leader);
        out[base + __popc(active & ((1u << lane) - 1))] = in[i];
    }
}

__global__ void tiles_of_eight(int *out, const int *in) {
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    int value = in[threadIdx.x];
    for (int s = 4; s > 0; s /= 2) {
        value += tile.shfl_down(value, s);
    }
    unsigned votes = tile.ballot(in[threadIdx.x] % 2 == 0);
    if (tile.thread_rank() == 0) {
        out[threadIdx.x / 8] = value * 256 + (int)votes;
    }
}

// Inside a block.

// Whole warps leave before the barrier.
__global__ void warps_leave_early(int *out, const int *in, int n) {
    __shared__ int line[128];
    int t = threadIdx.x;
    if (t >= n) {
        return;
    }
    line[t] = in[t];
    __syncthreads();
    out[t] = line[n - 1 - t];
}

__global__ void barriers_in_uniform_loops(int *data, const int *rounds) {
    __shared__ int line[96];
    int t = threadIdx.x;
    line[t] = data[t];
    __syncthreads();
    for (int round = 0; round < rounds[0]; round++) {
        if (round == 3) {
            continue;
        }
        int next = line[(t + 1) % 96];
        __syncthreads();
        if (next % 5 == 4) {
            next += round;
        }
        line[t] = next;
        __syncthreads();
        if (line[0] > 500) {
            break;
        }
        __syncthreads();
    }
    data[t] = line[t];
}

// Two tiles: one is loaded while the other is used, so one barrier a step is enough.
__global__ void two_buffers(int *out, const int *in, int steps) {
    __shared__ int tile[2][64];
    int t = threadIdx.x, sum = 0;
    tile[0][t] = in[t];
    __syncthreads();
    for (int k = 0; k < steps; k++) {
        if (k + 1 < steps) {
            tile[(k + 1) % 2][t] = in[(k + 1) * 64 + t];
        }
        for (int i = 0; i < 64; i += 3) {
            sum += tile[k % 2][(t + i) % 64] * (i + 1);
        }
        __syncthreads();
    }
    out[t] = sum;
}

// The column of padding is never written and never read.
__global__ void padded_transposition(float *out, const float *in, int width, int height) {
    __shared__ float tile[16][17];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < width && y < height) {
        tile[threadIdx.y][threadIdx.x] = in[y * width + x];
    }
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x;
    y = blockIdx.x * 16 + threadIdx.y;
    if (x < height && y < width) {
        out[y * height + x] = tile[threadIdx.x][threadIdx.y];
    }
}

// All who find something store the same value.
__global__ void same_value_by_all(int *found, int *out, const int *in) {
    __shared__ int any;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) {
        any = 0;
    }
    __syncthreads();
    if (in[i] % 50 == 49) {
        any = 1;
        *found = 1;
    }
    __syncthreads();
    out[i] = any;
}

// Each byte of a word belongs to another warp.
__global__ void bytes_of_one_word(unsigned *out, const int *in) {
    __shared__ union {
        unsigned char bytes[128];
        unsigned words[32];
    } both;
    int t = threadIdx.x, warp = t / 32, lane = t % 32;
    both.bytes[4 * lane + warp] = (unsigned char)in[t];
    __syncthreads();
    out[t] = both.words[lane] + warp;
}

// A struct is copied whole, its padding with it.
struct item {
    char kind;
    double value;
    short part;
    int count;
};

__global__ void structs_with_padding(item *out, const int *in) {
    __shared__ item items[64];
    int t = threadIdx.x;
    items[t].kind = (char)(in[t] % 3);
    items[t].value = in[t];
    items[t].part = (short)(in[t] % 1000);
    items[t].count = t;
    __syncthreads();
    out[t] = items[63 - t];
}

__global__ void vectors_in_shared_memory(float4 *out, const float4 *in) {
    __shared__ __align__(16) float tile[32][36];
    int t = threadIdx.x, row = t / 8, column = t % 8;
    *reinterpret_cast<float4 *>(&tile[row][4 * column]) = in[t];
    __syncthreads();
    out[t] = make_float4(tile[4 * column][row], tile[4 * column + 1][row],
                         tile[4 * column + 2][row], tile[4 * column + 3][row]);
}

// One piece of dynamic shared memory, three arrays.
__global__ void split_dynamic_shared(double *out, const int *in, int n) {
    extern __shared__ __align__(8) unsigned char memory[];
    double *values = reinterpret_cast<double *>(memory);
    int *order = reinterpret_cast<int *>(values + n);
    char *odd = reinterpret_cast<char *>(order + n);
    int t = threadIdx.x;
    if (t < n) {
        values[t] = in[t] * 0.5;
        order[t] = (t * 7) % n;
        odd[t] = (char)(in[t] & 1);
    }
    __syncthreads();
    if (t < n) {
        out[t] = values[order[t]] + odd[n - 1 - t];
    }
}

__global__ void three_dimensions(int *out) {
    __shared__ int plane[2][3][4];
    plane[threadIdx.z][threadIdx.y][threadIdx.x] =
        threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z;
    __syncthreads();
    int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    out[block * 24 + thread] = plane[1 - threadIdx.z][2 - threadIdx.y][3 - threadIdx.x] + block;
}

// Warps 0 and 1 fill a buffer, warps 2 and 3 empty it. They meet when it is full and when it is
// empty.
__global__ void two_named_barriers(int *out, const int *in, int rounds) {
    __shared__ int slot[64];
    int t = threadIdx.x % 64;
    for (int round = 0; round < rounds; round++) {
        if (threadIdx.x < 64) {
            slot[t] = in[round * 64 + t];
            asm volatile("bar.sync 1, 128;" ::: "memory");
            asm volatile("bar.sync 2, 128;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 128;" ::: "memory");
            out[round * 64 + t] = slot[63 - t] + round;
            asm volatile("bar.sync 2, 128;" ::: "memory");
        }
    }
}

// The same with two slots, so that both sides work at the same time: barriers 1 and 2 say that
// a slot is full, 3 and 4 that it is empty. Who says so does not wait.
__global__ void producers_and_consumers(int *out, const int *in, int rounds) {
    __shared__ int slot[2][64];
    int t = threadIdx.x % 64;
    bool produces = threadIdx.x < 64;
    for (int round = 0; round < rounds; round++) {
        int full = 1 + round % 2, empty = 3 + round % 2;
        if (produces) {
            if (round >= 2) {
                asm volatile("bar.sync %0, 128;" ::"r"(empty) : "memory");
            }
            slot[round % 2][t] = in[round * 64 + t];
            asm volatile("bar.arrive %0, 128;" ::"r"(full) : "memory");
        } else {
            asm volatile("bar.sync %0, 128;" ::"r"(full) : "memory");
            out[round * 64 + t] = slot[round % 2][63 - t] + round;
            if (round + 2 < rounds) {
                asm volatile("bar.arrive %0, 128;" ::"r"(empty) : "memory");
            }
        }
    }
}

// A warp waits for another one by a flag in shared memory.
__global__ void flag_between_warps(int *out, const int *in) {
    __shared__ int line[32];
    __shared__ volatile int ready;
    int t = threadIdx.x;
    if (t == 0) {
        ready = 0;
    }
    __syncthreads();
    if (t >= 32) {
        line[t - 32] = in[t - 32] * 2;
        __threadfence_block();
        __syncwarp();
        if (t == 32) {
            ready = 1;
        }
    } else {
        while (ready == 0) {
        }
        __threadfence_block();
        out[t] = line[31 - t];
    }
}

__global__ void counts_with_barriers(int *out, const int *in) {
    int t = threadIdx.x;
    int odd = __syncthreads_count(in[t] % 2);
    int all = __syncthreads_and(in[t] < 300);
    int any = __syncthreads_or(in[t] == 77);
    out[t] = odd * 4 + (all != 0) * 2 + (any != 0);
}

// Local memory, calls, control flow.

__global__ void local_queue(int *out, const int *in) {
    int queue[16], head = 0, tail = 0, sum = 0;
    queue[tail++] = in[threadIdx.x] % 40;
    while (head != tail) {
        int x = queue[head++ % 16];
        sum = sum * 3 + x;
        if (x > 3) {
            queue[tail++ % 16] = x / 2;
        }
        if (x % 5 == 4) {
            queue[tail++ % 16] = x / 3;
        }
    }
    out[threadIdx.x] = sum;
}

__global__ void nested_loops(int *out, const int *limits) {
    int t = threadIdx.x, sum = 0;
    for (int a = 0; a < 6; a++) {
        for (int b = a; b < limits[t] % 11; b++) {
            if ((a + b) % 4 == 3) {
                continue;
            }
            int c = 0;
            while (true) {
                sum += a * b + c;
                if (++c * b > t) {
                    break;
                }
                if (sum > 3000) {
                    goto done;
                }
                if (b == 0) {
                    break;
                }
            }
        }
        sum ^= a;
    }
done:
    __syncthreads();
    out[t] = sum;
}

// A machine of states: its loops have several entries.
__global__ void jumps(int *out, const int *in) {
    int x = in[threadIdx.x], steps = 0;
    if (x % 2 == 0) {
        goto second;
    }
first:
    x = 3 * x + 1;
    steps++;
    if (steps > 40) {
        goto end;
    }
second:
    x /= 2;
    steps++;
    if (x > 1 && x % 2 == 1) {
        goto first;
    }
    if (x > 1) {
        goto second;
    }
end:
    out[threadIdx.x] = steps * 1000 + x % 1000;
}

// A table of jumps, by hand: nvcc mostly prefers branches. Lanes go four ways, one of them back,
// and meet again.
__global__ void table_of_jumps(int *out, const int *in) {
    int t = threadIdx.x, x = in[t], rounds = 0;
    asm volatile("{\n\t"
                 ".reg .b32 way;\n\t"
                 "WAYS: .branchtargets AGAIN, HALVE, NEGATE, FINISH;\n"
                 "AGAIN:\n\t"
                 "add.s32 %1, %1, 1;\n\t"
                 "add.s32 %0, %0, 5;\n\t"
                 "and.b32 way, %0, 3;\n\t"
                 "brx.idx way, WAYS;\n"
                 "HALVE: shr.s32 %0, %0, 1; bra.uni FINISH;\n"
                 "NEGATE: neg.s32 %0, %0;\n"
                 "FINISH:\n\t"
                 "}"
                 : "+r"(x), "+r"(rounds));
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    out[t] = x * 16 + rounds;
}

__global__ void many_cases(int *out, const int *in) {
    int x = in[threadIdx.x], y = 1;
    for (int round = 0; round < 4; round++) {
        switch ((x + round) % 9) {
        case 0: y += x; break;
        case 1: y *= 3; break;
        case 2: y -= 7; // falls through
        case 3: y ^= 0x2a; break;
        case 4: y = -y; break;
        case 5: out[threadIdx.x] = y; return;
        case 6: y <<= 1; continue;
        case 7: y |= 0x100; break;
        default: y += round;
        }
        y &= 0xffff;
    }
    out[threadIdx.x] = y;
}

__global__ void constants_and_ldg(int *out, const int *__restrict__ in, int degree) {
    int t = threadIdx.x, x = __ldg(&in[t]) % 6, y = 0;
    for (int k = degree; k >= 0; k--) {
        y = y * x + polynomial[k];
    }
    out[t] = y * polynomial[t % 5];
}

__global__ void says_hello(const int *in) {
    if (in[threadIdx.x] % 16 == 3) {
        printf("thread %d has %d\n", (int)threadIdx.x, in[threadIdx.x]);
    }
}

// Its lines come block after block.
__global__ void says_in_turn(const int *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (in[i] % 16 == 3) {
        printf("thread %d has %d\n", i, in[i]);
    }
}

// Threads of one block through global memory.

// Every thread counts, one at a time.
__global__ void lock_inside_a_block(int *lock, int *account, int *history) {
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            int n = account[0];
            account[0] = n + 1;
            history[n] = threadIdx.x;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

// Each warp waits for the one before it and adds to what that one left.
__global__ void chain_of_warps(int *sums, const int *in, volatile int *ready) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp > 0) {
        while (ready[warp - 1] == 0) {
        }
        __threadfence_block();
    }
    int before = warp > 0 ? sums[threadIdx.x - 32] : 0;
    sums[threadIdx.x] = before + in[threadIdx.x];
    __syncwarp();
    if (lane == 0) {
        __threadfence_block();
        ready[warp] = 1;
    }
}

// The same with the operations of the memory model.
__global__ void chain_with_acquire_and_release(int *sums, const int *in, int *ready) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp > 0) {
        int seen;
        do {
            asm volatile("ld.acquire.cta.global.s32 %0, [%1];"
                         : "=r"(seen)
                         : "l"(ready + warp - 1)
                         : "memory");
        } while (seen == 0);
    }
    sums[threadIdx.x] = (warp > 0 ? sums[threadIdx.x - 32] : 0) + in[threadIdx.x];
    __syncwarp();
    if (lane == 0) {
        asm volatile("st.release.cta.global.s32 [%0], 1;" ::"l"(ready + warp) : "memory");
    }
}

// Scratch memory that a block uses again and again, with a barrier each time.
__global__ void sort_in_global_memory(int *data, int n) {
    int t = threadIdx.x;
    for (int step = 0; step < n; step++) {
        int i = 2 * t + step % 2;
        if (i + 1 < n) {
            int a = data[i], b = data[i + 1];
            if (a > b) {
                data[i] = b;
                data[i + 1] = a;
            }
        }
        __syncthreads();
    }
}

// All warps leave the same in the same place, and each reads it.
__global__ void all_warps_write_the_same(int *total, int *out, const int *in) {
    __shared__ int part[4];
    int warp = threadIdx.x / 32, sum = in[threadIdx.x];
    for (int s = 16; s > 0; s /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, s);
    }
    part[warp] = sum;
    __syncthreads();
    sum = part[0] + part[1] + part[2] + part[3];
    *total = sum;
    out[threadIdx.x] = *total - in[threadIdx.x];
}

// Lanes take turns on words of global memory; every turn ends with __syncwarp().
__global__ void lanes_exchange_in_global_memory(int *data) {
    int t = threadIdx.x;
    for (int step = 1; step < 32; step *= 2) {
        int other = data[t ^ step];
        __syncwarp();
        data[t] += other * step;
        __syncwarp();
    }
}

// Bytes, halves and words of one piece of shared memory, each lane with its own.
__global__ void lanes_with_parts_of_words(int *out, const int *in) {
    __shared__ unsigned char bytes[64];
    __shared__ unsigned short halves[64];
    int t = threadIdx.x;
    bytes[t] = (unsigned char)in[t];
    halves[t] = (unsigned short)(3 * in[t]);
    for (int i = 0; i < 3; i++) {
        bytes[t] = (unsigned char)(bytes[t] * 5 + halves[t]);
        halves[t] = (unsigned short)(halves[t] + bytes[t]);
    }
    out[t] = bytes[t] + halves[t];
}

// Arrays of a function's own that are filled in part.

// An empty stack: the compiler may look at its first element all the same.
__global__ void stack_that_may_be_empty(int *out, const int *in) {
    int stack[8], used = 0;
    for (int i = 0; i < in[threadIdx.x] % 8; i++) {
        stack[used++] = in[(threadIdx.x + i) % 64];
    }
    int first = used > 0 ? stack[0] : -1;
    int last = used > 0 ? stack[used - 1] : -2;
    out[threadIdx.x] = first * 1000 + last;
}

// The four least of all, in order; what is not there yet is not looked at.
__global__ void least_of_all(int *out, const int *in, int n) {
    int least[4], found = 0;
    for (int i = threadIdx.x; i < n; i += 64) {
        int at = found < 4 ? found++ : 3;
        if (at == 3 && found == 4 && i >= 4 * 64 && least[3] <= in[i]) {
            continue;
        }
        for (; at > 0 && least[at - 1] > in[i]; at--) {
            least[at] = least[at - 1];
        }
        least[at] = in[i];
    }
    int sum = 0;
    for (int i = 0; i < found; i++) {
        sum = sum * 7 + least[i];
    }
    out[threadIdx.x] = sum;
}

struct record {
    int used;
    int values[6];
};

// Structs are copied whole, with what was never filled in.
__global__ void records_filled_in_part(int *out, const int *in) {
    record records[3];
    for (int r = 0; r < 3; r++) {
        records[r].used = (in[threadIdx.x] + r) % 5 + 1;
        for (int i = 0; i < records[r].used; i++) {
            records[r].values[i] = in[(threadIdx.x + i) % 64] + r;
        }
    }
    record mine = records[in[threadIdx.x] % 3];
    int sum = 0;
    for (int i = 0; i < mine.used; i++) {
        sum = sum * 3 + mine.values[i];
    }
    out[threadIdx.x] = sum;
}

struct node {
    int kind, number;
    float value;
};

// Of each struct only the part that its kind says is filled in, and looked at.
__global__ void nodes_of_two_kinds(int *out, const int *in) {
    node stack[8];
    int used = 0, sum = 0;
    for (int i = 0; i < 4; i++) {
        node *top = &stack[used++];
        top->kind = (in[threadIdx.x] + i) % 2;
        if (top->kind == 0) {
            top->number = in[threadIdx.x] + i;
        } else {
            top->value = in[threadIdx.x] * 0.5f;
        }
        used -= in[threadIdx.x] % 3 == 0 && used > 2;
    }
    while (used > 0) {
        node top = stack[--used];
        sum = sum * 3 + (top.kind == 0 ? top.number : (int)(2.0f * top.value));
    }
    out[threadIdx.x] = sum;
}

// Several shared arrays.

// Two arrays change their parts from step to step.
__global__ void arrays_that_swap(int *out, const int *in) {
    __shared__ int one[64];
    __shared__ int two[64];
    int t = threadIdx.x;
    int *from = one, *to = two;
    from[t] = in[t];
    __syncthreads();
    for (int s = 1; s < 64; s *= 2) {
        to[t] = from[t] + (t >= s ? from[t - s] : 0);
        __syncthreads();
        int *kept = from;
        from = to;
        to = kept;
    }
    out[t] = from[t];
}

// A pointer walks to one past the end, and back; another begins in the middle.
__global__ void pointers_that_walk(int *out, const int *in) {
    __shared__ int line[64];
    __shared__ int rest[64];
    int t = threadIdx.x, sum = 0;
    line[t] = in[t];
    rest[63 - t] = in[t] * 2;
    __syncthreads();
    for (const int *p = line + t; p != line + 64; p++) {
        sum += *p;
    }
    for (const int *p = rest + 64; p-- != rest + t;) {
        sum -= *p;
    }
    const int *middle = &rest[32];
    out[t] = sum + middle[t % 32 - 32] + (t % 2 == 0 ? line : rest)[t];
}

// One struct, one array in another: an index of a row may reach the next.
__global__ void rows_of_one_array(int *out, const int *in) {
    __shared__ struct {
        int rows[4][16];
        int sums[4];
    } tile;
    int t = threadIdx.x;
    tile.rows[0][t] = in[t];
    if (t < 4) {
        tile.sums[t] = 0;
    }
    __syncthreads();
    atomicAdd(&tile.sums[t / 16], tile.rows[t / 16][t % 16]);
    __syncthreads();
    out[t] = tile.sums[t % 4] + (&tile.rows[0][0])[63 - t];
}

// Between blocks.

__global__ void histogram_of_all_blocks(int *bins, int *most, float *sum, const int *in, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&bins[in[i] % 10], 1);
        atomicMax(most, in[i]);
        unsigned *bits = reinterpret_cast<unsigned *>(sum);
        unsigned old = __float_as_uint(*reinterpret_cast<volatile float *>(sum)), seen;
        do {
            seen = old;
            old = atomicCAS(bits, seen, __float_as_uint(__uint_as_float(seen) + in[i]));
        } while (old != seen);
    }
}

// The last block to finish adds up what the others left.
__global__ void last_block_adds_up(int *part, unsigned *done, int *out, const int *in) {
    __shared__ bool last;
    int sum = in[blockIdx.x * 32 + threadIdx.x];
    for (int s = 16; s > 0; s /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, s);
    }
    if (threadIdx.x == 0) {
        part[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        __threadfence();
        int total = 0;
        for (unsigned b = 0; b < gridDim.x; b++) {
            total += part[b];
        }
        *out = total;
    }
}

__device__ unsigned long long load_relaxed(const unsigned long long *from) {
    unsigned long long value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
}

__device__ void store_relaxed(unsigned long long *to, unsigned long long value) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}

// Drops multiples of three in place, in one launch: status and count of a block are one word, read
// and written by relaxed accesses with no fence. A block writes where others have read, but how far
// they have come it knows from what they made of it.
__global__ void look_back_compact(int *data, unsigned long long *state) {
    __shared__ int counts[2], before;
    int t = threadIdx.x, warp = t / 32;
    int value = data[blockIdx.x * 64 + t];
    unsigned kept = __ballot_sync(0xffffffffu, value % 3 != 0);
    counts[warp] = __popc(kept);
    __syncthreads();
    if (t == 0) {
        unsigned long long seen = 1ull << 32;
        while (blockIdx.x > 0 && (seen = load_relaxed(state + blockIdx.x - 1)) == 0) {
        }
        before = (int)(unsigned)seen;
        store_relaxed(state + blockIdx.x, seen + counts[0] + counts[1]);
    }
    __syncthreads();
    if (value % 3 != 0) {
        int rank = __popc(kept & ((1u << t % 32) - 1));
        data[before + (warp == 1 ? counts[0] : 0) + rank] = value;
    }
}

// A scan in one launch: each block adds what the blocks before it have published.
__global__ void look_back_scan(int *out, const int *in, volatile int *state, volatile int *sums,
                               unsigned *ticket) {
    __shared__ int line[64];
    __shared__ int number, before;
    int t = threadIdx.x;
    if (t == 0) {
        number = (int)atomicAdd(ticket, 1u);
    }
    __syncthreads();
    int block = number;
    line[t] = in[block * 64 + t];
    __syncthreads();
    for (int s = 1; s < 64; s *= 2) {
        int left = t >= s ? line[t - s] : 0;
        __syncthreads();
        line[t] += left;
        __syncthreads();
    }
    if (t == 0) {
        sums[2 * block] = line[63];
        __threadfence();
        state[block] = block == 0 ? 2 : 1;
        int sum = 0;
        for (int b = block - 1; b >= 0; b--) {
            int seen;
            while ((seen = state[b]) == 0) {
            }
            __threadfence();
            sum += seen == 2 && b > 0 ? sums[2 * b + 1] : sums[2 * b];
            if (seen == 2) {
                break;
            }
        }
        before = sum;
        sums[2 * block + 1] = sum + line[63];
        __threadfence();
        state[block] = 2;
    }
    __syncthreads();
    out[block * 64 + t] = before + line[t];
}

// A lock guards plain memory of several blocks.
__global__ void lock_between_blocks(int *lock, int *account, int *history) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {
        }
        __threadfence();
        int n = account[0];
        account[0] = n + 1;
        history[n] = blockIdx.x + 1;
        __threadfence();
        atomicExch(lock, 0);
    }
}

// Blocks take work until there is none.
__global__ void queue_of_work(int *next, int *out, const int *in, int items) {
    __shared__ int item;
    while (true) {
        if (threadIdx.x == 0) {
            item = atomicAdd(next, 1);
        }
        __syncthreads();
        int mine = item;
        __syncthreads();
        if (mine >= items) {
            return;
        }
        out[mine * 32 + threadIdx.x] = in[mine * 32 + threadIdx.x] * (mine + 1);
    }
}

// In place, but each block stays in its own part.
__global__ void reversed_in_place(int *data) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = (blockIdx.x + 1) * blockDim.x - 1 - threadIdx.x;
    int value = data[j];
    __syncthreads();
    data[i] = value;
}

// Each block has a byte of its own in a word that four share, and reads it before it writes.
__global__ void bytes_of_blocks(unsigned char *data) {
    unsigned char *mine = data + blockIdx.x;
    unsigned char before = *mine;
    __syncthreads();
    *mine = 2 * before + 1;
}

// The same for pairs of bytes of two warps each, in shared and in global memory.
__global__ void halves_of_warps(unsigned short *data) {
    __shared__ unsigned short kept[8];
    int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) {
        kept[warp] = data[warp];
        kept[warp] = kept[warp] + kept[warp];
        data[warp] = kept[warp] + 1;
    }
}

// A cooperative grid whose blocks exchange values that carry the number of their round, so that
// whoever needs one reads until it is there, with no fence: in 8 bytes with the number beside the
// value, and, where only the last round's value can be there, in 4 with the round's lowest bit.
// Blocks of 64.
__global__ void tagged_values(unsigned long long *messages, unsigned *mailboxes, unsigned *out,
                              const int *in, int rounds) {
    __shared__ unsigned sums[2];
    int t = threadIdx.x, i = blockIdx.x * 64 + t, all = 64 * gridDim.x;
    unsigned value = in[i];
    for (unsigned round = 1; round <= rounds; round++) {
        unsigned long long post = (unsigned long long)round << 32 | value, a, b;
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(messages + i), "l"(post) : "memory");
        for (int k = 2 * (t % 32); k < all; k += 64) {
            do {
                asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                             : "=l"(a), "=l"(b)
                             : "l"(messages + k)
                             : "memory");
            } while (a >> 32 != round || b >> 32 != round);
            value += (unsigned)a + 3 * (unsigned)b;
        }
        unsigned bit = round & 1, shown = (value & ~1u) | bit, x, y, z, w;
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(mailboxes + i), "r"(shown) : "memory");
        unsigned sum = 0, wrong;
        for (int k = 4 * (t % 32); k < all; k += 128) {
            do {
                asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
                             : "l"(mailboxes + k)
                             : "memory");
                wrong = ((x ^ bit) | (y ^ bit) | (z ^ bit) | (w ^ bit)) & 1;
            } while (__any_sync(0xffffffffu, wrong));
            sum += (x >> 1) + (y >> 1) + (z >> 1) + (w >> 1);
        }
        for (int step = 16; step > 0; step /= 2) {
            sum += __shfl_xor_sync(0xffffffffu, sum, step);
        }
        if (t % 32 == 0) {
            sums[t / 32] = sum;
        }
        __syncthreads();
        value += sums[0] + 5 * sums[1];
        __syncthreads();
    }
    out[i] = value;
}

} // extern "C"

__device__ __noinline__ void swap_values(int *a, int *b) {
    int kept = *a;
    *a = *b;
    *b = kept;
}

// Sorts in its own frames; every call has an array that the next one is given.
__device__ __noinline__ int permutations(int *values, int first, int count, int target) {
    if (first == count) {
        int number = 0;
        for (int i = 0; i < count; i++) {
            number = number * 10 + values[i];
        }
        return number % target == 0;
    }
    int mine[4], found = 0;
    for (int i = first; i < count; i++) {
        for (int k = 0; k < count; k++) {
            mine[k] = values[k];
        }
        swap_values(&mine[first], &mine[i]);
        found += permutations(mine, first + 1, count, target);
    }
    return found;
}

extern "C" __global__ void recursion_with_arrays(int *out) {
    int values[4] = {1, 2, 3, (int)(threadIdx.x % 10)};
    out[threadIdx.x] = permutations(values, 0, 2 + threadIdx.x % 3, 3 + threadIdx.x % 5);
}

// Undefined values that are dropped: reads of shared memory that nothing has written, and shuffles
// from lanes that are not there.

extern "C" {

// Reads the left neighbour before it knows whether there is one, as CUB's block operations do.
__global__ void neighbour_is_dropped(int *out, const int *in, int n) {
    __shared__ int line[65];
    int t = threadIdx.x, left, right;
    if (t < n) {
        line[t + 1] = in[t];
    }
    __syncthreads();
    unsigned at = (unsigned)__cvta_generic_to_shared(&line[t]);
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(left) : "r"(at));
    asm volatile("ld.shared.u32 %0, [%1+4];" : "=r"(right) : "r"(at));
    left = t > 0 && t <= n ? left : -1;
    right = t < n ? right : -2;
    bool rises = t > 0 && t < n && left < right;
    bool first = t == 0 || t >= n || left > 190;
    out[t] = 4 * (left + right) + 2 * rises + first;
}

// An aggregate with garbage at its end goes through shared memory and back.
__global__ void garbage_goes_along(int *out, const int *in, int n) {
    __shared__ int first[64], second[64];
    int t = threadIdx.x, value;
    if (t < n) {
        first[t] = in[t];
    }
    __syncthreads();
    unsigned at = (unsigned)__cvta_generic_to_shared(&first[t]);
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(at));
    second[63 - t] = value + 1;
    __syncthreads();
    if (t < n) {
        out[t] = second[63 - t];
    }
}

__global__ void reduction_of_few_lanes(int *out, const int *in) {
    int t = threadIdx.x;
    if (t < 8) {
        int sum = in[t];
        for (int s = 4; s > 0; s /= 2) {
            sum += __shfl_down_sync(0xffu, sum, s);
        }
        if (t == 0) {
            *out = sum;
        }
    }
}

__global__ void reduction_of_a_short_block(int *out, const int *in) {
    int t = threadIdx.x, sum = in[t], scan = in[t];
    for (int s = 16; s > 0; s /= 2) {
        int other = __shfl_down_sync(0xffffffffu, sum, s);
        sum += t + s < blockDim.x ? other : 0;
    }
    for (int s = 1; s < 32; s *= 2) {
        int other = __shfl_up_sync(0xffffffffu, scan, s);
        scan += t >= s ? other : 0;
    }
    out[t] = t == 0 ? sum : scan;
}

// The tile has fewer rows than the instruction; the rows of garbage are not stored.
__global__ void rows_of_garbage(float *out, const __half *a, const __half *b, int rows) {
    __shared__ __align__(16) __half tile[16][16];
    int lane = threadIdx.x;
    for (int i = lane; i < rows * 16; i += 32) {
        tile[i / 16][i % 16] = a[i];
    }
    __syncwarp();
    unsigned at = (unsigned)__cvta_generic_to_shared(&tile[lane % 16][lane / 16 * 8]);
    unsigned fa[4], fb[2];
    float d[4] = {0, 0, 0, 0};
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
                 : "r"(at));
    const unsigned *words = reinterpret_cast<const unsigned *>(b);
    fb[0] = words[lane / 4 * 8 + lane % 4];
    fb[1] = words[lane / 4 * 8 + lane % 4 + 4];
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
    for (int half = 0; half < 2; half++) {
        int row = lane / 4 + 8 * half;
        if (row < rows) {
            out[row * 8 + lane % 4 * 2] = d[2 * half];
            out[row * 8 + lane % 4 * 2 + 1] = d[2 * half + 1];
        }
    }
}

// Clocks tick, never go back in a block, and loops that wait by them end.
__global__ void clocks_tick(unsigned long long *out) {
    __shared__ unsigned long long before;
    int t = threadIdx.x;
    unsigned long long start = clock64(), nanoseconds, later, sum = 0;
    unsigned low = clock();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
    for (int i = 0; i < 100; i++) {
        sum += __ldg(out + 7) ^ i;
    }
    if (t == 0) {
        before = clock64();
    }
    __syncthreads();
    unsigned long long after = clock64();
    bool right = after > before && after > start + 100 && sum != 1 && low >= (unsigned)start;
    while (clock64() - after < 1000000000) {
    }
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(later));
    right = right && later - nanoseconds > 100000000 && clock64() - after < 1100000000;
    if (t % 32 == 0) {
        out[8 + blockIdx.x * 4 + t / 32 * 2] = right;
        out[9 + blockIdx.x * 4 + t / 32 * 2] = clock64();
    }
}

// Hints for the L2 cache change nothing.
__global__ void cache_policies(int *out, const int *in) {
    int t = threadIdx.x, value;
    unsigned long long first, last;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(first));
    asm volatile("createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %0, 0.5;"
                 : "=l"(last));
    asm volatile("ld.global.L2::cache_hint.s32 %0, [%1], %2;"
                 : "=r"(value)
                 : "l"(in + t), "l"(first));
    asm volatile("st.global.L2::cache_hint.s32 [%0], %1, %2;" ::"l"(out + t), "r"(3 * value),
                 "l"(last)
                 : "memory");
}

// Shared memory that the system reserves is behind the block's own, and zero at first.
__global__ void reserved_shared_memory(int *out, const int *in) {
    __shared__ int line[33];
    int t = threadIdx.x, mine;
    unsigned at;
    asm volatile("mov.u32 %0, %%reserved_smem_offset_1;" : "=r"(at));
    line[t] = in[t];
    if (t % 2 == 0) {
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(at + 4 * t), "r"(t + 1) : "memory");
    }
    __syncthreads();
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(mine) : "r"(at + 4 * (31 - t)));
    out[t] = line[31 - t] + 1000 * mine;
}

// Rows are doubled in place. An index behind a row becomes that of its last element, which another
// thread may be writing; what is read there is dropped.
__global__ void clamped_rows(int *rows, int columns) {
    int *row = rows + blockIdx.x * columns;
    for (int i = threadIdx.x; i < columns; i += 4 * blockDim.x) {
        int value[4];
#pragma unroll
        for (int u = 0; u < 4; u++) {
            value[u] = row[min(columns - 1, i + u * (int)blockDim.x)];
        }
#pragma unroll
        for (int u = 0; u < 4; u++) {
            if (i + u * (int)blockDim.x < columns) {
                row[i + u * blockDim.x] = 2 * value[u];
            }
        }
    }
}

// The same in shared memory.
__global__ void clamped_row(int *out, const int *in) {
    __shared__ int row[100];
    int t = threadIdx.x;
    if (t < 100) {
        row[t] = in[t];
    }
    __syncthreads();
    volatile int other = t + 64; // the load is not to depend on the condition below
    int mine = row[min(99, t)], more = row[min(99, (int)other)];
    if (t == 99) {
        row[99] = 3 * mine;
    }
    if (t < 100) {
        out[t] = t < 35 ? more : mine;
    }
}

} // extern "C"
