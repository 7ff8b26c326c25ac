/* w01 to w06: one thread, one element. */
#include "labs/00_warmups/given/tries.h"
#include "labs/00_warmups/warmups.h"

struct vectors vectors_create(struct trial *t, int inputs, int outputs) {
    float *x = trial_random(t, (size_t)inputs);
    return (struct vectors){
        .x = x,
        .d_x = trial_put(t, x, (size_t)inputs * sizeof *x),
        .d_y = trial_output(t, (size_t)outputs),
        .want = trial_host(t, (size_t)outputs, sizeof(double)),
    };
}

void try_w01_map(struct trial *t) {
    enum { N = 1000 };
    struct vectors v = vectors_create(t, N, N);
    for (int i = 0; i < N; i++) {
        v.want[i] = 2.0f * v.x[i] + 1.0f;
    }
    w01_map(v.d_y, v.d_x, N);
    trial_expect(t, "y", v.d_y, v.want, N, 0, 1e-6);
}

void try_w02_index_2d(struct trial *t) {
    enum { ROWS = 30, COLUMNS = 50 };
    struct vectors v = vectors_create(t, ROWS * COLUMNS, ROWS * COLUMNS);
    const float *bias = trial_random(t, ROWS);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        v.want[i] = v.x[i] + bias[i / COLUMNS];
    }
    w02_index_2d(v.d_y, v.d_x, trial_put(t, bias, ROWS * sizeof *bias), ROWS, COLUMNS);
    trial_expect(t, "y", v.d_y, v.want, ROWS * COLUMNS, COLUMNS, 1e-6);
}

void try_w03_coalescing(struct trial *t) {
    enum { N = 8192, SECTORS = 4 };
    struct simt_counters c;
    struct vectors v = vectors_create(t, N, N);
    for (int i = 0; i < N; i++) {
        v.want[i] = v.x[i];
    }
    trial_count(t);
    w03_coalescing(v.d_y, v.d_x, N);
    trial_expect(t, "y", v.d_y, v.want, N, 0, 0.0);
    if (!trial_counted(t, &c)) {
        return;
    }
    if (c.global_load_sectors > SECTORS * c.global_load_requests ||
        c.global_store_sectors > SECTORS * c.global_store_requests) {
        trial_fail(
            t, "the result is right, but a load moves %.1f sectors and a store %.1f; %d would do",
            (double)c.global_load_sectors / (double)c.global_load_requests,
            (double)c.global_store_sectors / (double)c.global_store_requests, SECTORS);
    }
}

void try_w04_grid_stride(struct trial *t) {
    enum { N = 10000, REQUESTS = (N + 31) / 32 };
    struct simt_counters c;
    struct vectors v = vectors_create(t, N, N);
    for (int i = 0; i < N; i++) {
        v.want[i] = v.x[i] * v.x[i];
    }
    trial_count(t);
    w04_grid_stride(v.d_y, v.d_x, N);
    trial_expect(t, "y", v.d_y, v.want, N, 0, 1e-6);
    if (trial_counted(t, &c) && c.global_store_requests > 2 * REQUESTS) {
        trial_fail(t,
                   "the result is right, but warps store %d times; each element once is %d times",
                   (int)c.global_store_requests, REQUESTS);
    }
}

void try_w05_vector_loads(struct trial *t) {
    enum { N = 4096, REQUESTS = N / 4 / 32 };
    struct simt_counters c;
    struct vectors v = vectors_create(t, N, N);
    for (int i = 0; i < N; i++) {
        v.want[i] = 2.0f * v.x[i];
    }
    trial_count(t);
    w05_vector_loads(v.d_y, v.d_x, N);
    trial_expect(t, "y", v.d_y, v.want, N, 0, 0.0);
    if (!trial_counted(t, &c)) {
        return;
    }
    if (c.global_load_requests > REQUESTS || c.global_store_requests > REQUESTS) {
        trial_fail(t,
                   "the result is right, but its warps execute %d loads and %d stores; %d would do",
                   (int)c.global_load_requests, (int)c.global_store_requests, REQUESTS);
    }
}

void try_w06_error_check(struct trial *t) {
    enum { N = 1000, THREADS = 256, TOO_MANY = 2048 };
    struct vectors v = vectors_create(t, N, N);
    for (int i = 0; i < N; i++) {
        v.want[i] = -v.x[i];
    }
    int good = w06_error_check(v.d_y, v.d_x, N, THREADS);
    trial_expect(t, "y", v.d_y, v.want, N, 0, 0.0);
    if (good != 0) {
        trial_fail(t, "blocks of %d threads: the launch is fine, but you return %d", THREADS, good);
    }
    if (w06_error_check(v.d_y, v.d_x, N, TOO_MANY) == 0) {
        trial_fail(
            t,
            "blocks of %d threads: you return 0, success, but CUDA refuses blocks of more than "
            "1024",
            TOO_MANY);
    }
    trial_wait(t); /* whoever asked has taken the error away */
}
