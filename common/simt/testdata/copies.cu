/* Kernels for copies_test: cp.async, waited for in time, or not. One block of 64 threads if nothing
 * else is said; a line with MISTAKE is where it must be stopped. */

#define FROM(from) "l"(from)
#define TO(to) "r"((unsigned)__cvta_generic_to_shared(to))

static __device__ void copy_int(int *to, const int *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::TO(to), FROM(from) : "memory");
}

static __device__ void commit(void) {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int PENDING> static __device__ void wait(void) {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

static __device__ void wait_all(void) {
    asm volatile("cp.async.wait_all;" ::: "memory");
}

extern "C" {

/* ---- In time ---- */

/* Each thread reads what it has copied itself, through three slots: no barrier. Behind the last
   copies empty groups stand for those that would come. */
__global__ void ring(int *out, const int *in) {
    __shared__ int slots[3][64];
    const int steps = 10;
    int t = threadIdx.x, sum = 0;
    for (int i = 0; i < 3; i++) {
        copy_int(&slots[i][t], in + 64 * i + t);
        commit();
    }
    for (int i = 0; i < steps; i++) {
        wait<2>();
        sum = 3 * sum + slots[i % 3][t];
        if (i + 3 < steps) {
            copy_int(&slots[i % 3][t], in + 64 * (i + 3) + t);
        }
        commit();
    }
    out[t] = sum;
}

/* Lanes of a warp that have committed unlike numbers of groups. */
__global__ void uneven_groups(int *out, const int *in) {
    __shared__ int tile[64];
    int t = threadIdx.x;
    copy_int(&tile[t], in + t);
    commit();
    if (t % 2 == 0) {
        commit();
        wait<1>();
    } else {
        wait<0>();
    }
    __syncthreads();
    out[t] = tile[63 - t];
}

/* wait_all commits by itself. */
__global__ void not_committed(int *out, const int *in) {
    __shared__ int tile[64];
    int t = threadIdx.x;
    copy_int(&tile[t], in + t);
    wait_all();
    out[t] = tile[t];
}

/* What nobody reads nobody has to wait for. */
__global__ void never_read(int *out, const int *in) {
    __shared__ int tile[64];
    int t = threadIdx.x;
    copy_int(&tile[t], in + t);
    commit();
    out[t] = 7 * t;
}

/* Places that are stored to and copied to in turn, by unlike threads. */
__global__ void in_turn(int *out, const int *in) {
    __shared__ int tile[64];
    int t = threadIdx.x, sum = 0;
    for (int i = 0; i < 4; i++) {
        copy_int(&tile[t], in + 64 * i + t);
        commit();
        wait<0>();
        __syncthreads();
        sum += tile[(t + 33) % 64];
        __syncthreads();
        tile[63 - t] = sum;
        __syncthreads();
        sum += tile[t];
        __syncthreads();
    }
    out[t] = sum;
}

/* ---- Too early ---- */

__global__ void reads_at_once(int *out, const int *in) {
    __shared__ int tile[64];
    int t = threadIdx.x;
    copy_int(&tile[t], in + t);
    commit();
    out[t] = tile[t]; // MISTAKE
}

__global__ void barrier_instead(int *out, const int *in) {
    __shared__ int tile[64];
    int t = threadIdx.x;
    copy_int(&tile[t], in + t);
    commit();
    __syncthreads();
    out[t] = tile[63 - t]; // MISTAKE
}

__global__ void waits_for_too_few(int *out, const int *in) {
    __shared__ int tiles[3][64];
    int t = threadIdx.x;
    for (int i = 0; i < 3; i++) {
        copy_int(&tiles[i][t], in + 64 * i + t);
        commit();
    }
    wait<2>();
    int sum = tiles[0][t];
    wait<2>();
    sum += tiles[1][t]; // MISTAKE
    out[t] = sum;
}

/* wait_group knows committed groups only. */
__global__ void waits_for_no_group(int *out, const int *in) {
    __shared__ int tile[64];
    int t = threadIdx.x;
    copy_int(&tile[t], in + t);
    wait<0>();
    out[t] = tile[t]; // MISTAKE
}

__global__ void some_lanes_wait(int *out, const int *in) {
    __shared__ int tile[64];
    int t = threadIdx.x;
    copy_int(&tile[t], in + t);
    commit();
    if (t % 32 < 16) {
        wait<0>();
    }
    __syncwarp();
    out[t] = tile[t ^ 16]; // MISTAKE
}

/* The second time round a slot has the old bytes, which look as if they were there. */
__global__ void ring_too_short(int *out, const int *in) {
    __shared__ int slots[2][64];
    int t = threadIdx.x, sum = 0;
    for (int i = 0; i < 6; i++) {
        copy_int(&slots[i % 2][t], in + 64 * i + t);
        commit();
        if (i > 0) {
            wait<1>();
        } else {
            wait<0>();
        }
        sum += slots[i % 2][t]; // MISTAKE
    }
    out[t] = sum;
}

__global__ void stores_over_it(int *out, const int *in) {
    __shared__ int tile[64];
    int t = threadIdx.x;
    copy_int(&tile[t], in + t);
    commit();
    tile[t] = 1; // MISTAKE
    wait<0>();
    out[t] = tile[t];
}

__global__ void copies_over_it(int *out, const int *in) {
    __shared__ int tile[64];
    int t = threadIdx.x;
    for (int i = 0; i < 2; i++) {
        int *to = &tile[t];
        const int *from = in + 64 * i + t;
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::TO(to), FROM(from)); // MISTAKE
        commit();
    }
    wait<0>();
    out[t] = tile[t];
}

/* The other warp's copies have been waited for, but with no barrier behind the wait. */
__global__ void waits_behind_the_barrier(int *out, const int *in) {
    __shared__ int tile[32];
    int t = threadIdx.x;
    if (t < 32) {
        copy_int(&tile[t], in + t);
        commit();
    }
    __syncthreads();
    if (t < 32) {
        wait<0>();
        out[t] = tile[t];
    } else {
        out[t] = tile[63 - t]; // MISTAKE
    }
}

#define FIRST_MATRIX "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"

/* One warp. */
__global__ void matrix_too_early(int *out, const int *in) {
    __shared__ __align__(16) int tile[32][4];
    int t = threadIdx.x, x;
    for (int i = 0; i < 4; i++) {
        copy_int(&tile[t][i], in + 4 * t + i);
    }
    commit();
    __syncwarp();
    unsigned p = (unsigned)__cvta_generic_to_shared(tile[t % 8]);
    asm volatile(FIRST_MATRIX : "=r"(x) : "r"(p)); // MISTAKE
    out[t] = x;
}

} // extern "C"
