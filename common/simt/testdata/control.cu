/* PTX corpus: control flow, and inline assembly with scopes, labels and guards of its own. */

__global__ void nested_loops(const int *in, int *out, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) {
        for (int j = i; j < n; j += in[j] + 1) {
            if (in[j] == 7) {
                continue;
            }
            if (in[i] > in[j]) {
                break;
            }
            sum += in[j];
            while (sum > 100) {
                sum = sum / 2 - in[sum & 31];
            }
        }
        if (sum < -5) {
            return;
        }
    }
    out[threadIdx.x] = sum;
}

__global__ void early_exit(float *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    do {
        data[i] *= 0.5f;
    } while (data[i] > 1.0f || (i & 1 && data[i] < -1.0f));
    if (data[i] != data[i]) {
        asm volatile("exit;");
    }
}

__device__ int spin_until(int *lock, int value) {
    int seen;
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 ".reg .b32 r, tmp<3>;\n"
                 "AGAIN:\n\t"
                 "ld.volatile.global.s32 r, [%1];\n\t"
                 "setp.ne.s32 p, r, %2;\n\t"
                 "@p bra AGAIN;\n\t"
                 "mov.b32 tmp2, r;\n\t"
                 "{ .reg .b32 r; mov.b32 r, tmp2; mov.b32 %0, r; }\n\t"
                 "}"
                 : "=r"(seen)
                 : "l"(lock), "r"(value)
                 : "memory");
    return seen;
}

__global__ void spin(int *lock) {
    int a = spin_until(lock, 1);
    int b = spin_until(lock + 1, 2);
    lock[2] = a + b;
}

__global__ void spin_lock(int *lock, int *counter) {
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            *counter += 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

/* What a switch becomes when it is dense enough, by hand: nvcc mostly prefers branches. */
__global__ void jump_table(int *x) {
    int r;
    asm volatile("{\n\t"
                 ".reg .pred in;\n\t"
                 "table: .branchtargets CASE_0, CASE_1, CASE_2;\n\t"
                 "mov.b32 %0, -1;\n\t"
                 "setp.lt.u32 in, %1, 3;\n\t"
                 "@!in bra DONE;\n\t"
                 "brx.idx %1, table;\n"
                 "CASE_0: mov.b32 %0, 10; bra.uni DONE;\n"
                 "CASE_1: mov.b32 %0, 11; bra.uni DONE;\n"
                 "CASE_2: mov.b32 %0, 12;\n"
                 "DONE:\n\t"
                 "}"
                 : "=&r"(r)
                 : "r"(x[0]));
    x[1] = r;
}

__global__ void assembly(unsigned *x, float *f) {
    unsigned a = x[0], b = x[1], r;
    asm("{ .reg .pred p, q; setp.lt.and.u32 p|q, %1, %2, 1; selp.u32 %0, 1, 2, p;\n"
        "@!q add.u32 %0, %0, 0x10U; }"
        : "=r"(r)
        : "r"(a), "r"(b));
    x[2] = r;
    asm("lop3.b32 %0, %1, %2, %0, 0xE8;" : "+r"(r) : "r"(a), "r"(b));
    asm("add.cc.u32 %0, %1, %2; addc.u32 %0, %0, 0;" : "=r"(x[3]) : "r"(a), "r"(b));
    asm("bfe.u32 %0, %1, 4, 0b1000;" : "=r"(x[5]) : "r"(a));
    asm("bfi.b32 %0, %1, %2, 010, 8;" : "=r"(x[6]) : "r"(a), "r"(b));
    asm("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, %1; mov.b32 %0, {hi, lo}; }" : "=r"(x[7]) : "r"(a));
    asm("{ .reg .pred p; shfl.sync.up.b32 %0|p, %1, 1, 0, -1; @p add.u32 %0, %0, 1; }"
        : "=r"(x[8])
        : "r"(a));
    asm("vote.sync.ballot.b32 %0, 1, 0xffffffff;" : "=r"(x[9]));
    asm("cvt.rn.f32.s32 %0, -12;" : "=f"(f[0]));
    asm("prefetch.global.L2 [%0]; prefetchu.L1 [%0 + 128];" ::"l"(x));
    asm("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2+-8];"
        : "=r"(x[10]), "=r"(x[11])
        : "l"(x + 4));
    asm("st.global.cs.v4.f32 [%0+16], {%1, 0f00000000, %1, %1};" ::"l"(f), "f"(f[9]));
}
