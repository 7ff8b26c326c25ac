/* w07 to w16: threads of a block together. */
#include <math.h>

#include "labs/00_warmups/given/tries.h"
#include "labs/00_warmups/warmups.h"

void try_w07_shared_tile(struct trial *t) {
    /* Each warp loads its own elements, and its part of each tile. */
    enum { N = 512, TILE = 128, REQUESTS = N / 32 * (1 + N / TILE) };
    struct simt_counters c;
    struct vectors v = vectors_create(t, N, N);
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            v.want[i] += fabs((double)v.x[i] - v.x[j]);
        }
    }
    trial_count(t);
    w07_shared_tile(v.d_y, v.d_x, N);
    trial_expect(t, "y", v.d_y, v.want, N, 0, 1e-3);
    if (trial_counted(t, &c) && c.global_load_requests > REQUESTS) {
        trial_fail(
            t,
            "the result is right, but its warps execute %d loads from device memory; %d would "
            "do",
            (int)c.global_load_requests, REQUESTS);
    }
}

void try_w08_padded_transpose(struct trial *t) {
    enum { ROWS = 64, COLUMNS = 96 };
    struct simt_counters c;
    struct vectors v = vectors_create(t, ROWS * COLUMNS, ROWS * COLUMNS);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        v.want[i % COLUMNS * ROWS + i / COLUMNS] = v.x[i];
    }
    trial_count(t);
    w08_padded_transpose(v.d_y, v.d_x, ROWS, COLUMNS);
    trial_expect(t, "y", v.d_y, v.want, ROWS * COLUMNS, ROWS, 0.0);
    if (trial_counted(t, &c) && c.shared_bank_conflicts > 0) {
        trial_fail(t,
                   "the result is right, but there are %d bank conflicts in %d loads; 0 would do",
                   (int)c.shared_bank_conflicts, (int)c.shared_load_requests);
    }
}

void try_w09_tiled_matmul(struct trial *t) {
    enum { M = 48, N = 32, K = 64 };
    struct vectors a = vectors_create(t, M * K, M * N);
    const float *B = trial_random(t, K * N);
    for (int i = 0; i < M * N; i++) {
        for (int k = 0; k < K; k++) {
            a.want[i] += (double)a.x[i / N * K + k] * B[k * N + i % N];
        }
    }
    w09_tiled_matmul(a.d_y, a.d_x, trial_put(t, B, K * N * sizeof *B), M, N, K);
    trial_expect(t, "C", a.d_y, a.want, M * N, N, 1e-4);
}

void try_w10_warp_reduction(struct trial *t) {
    enum { N = 1024, WARP = 32 };
    struct vectors v = vectors_create(t, N, N / WARP);
    for (int i = 0; i < N; i++) {
        v.want[i / WARP] += v.x[i];
    }
    w10_warp_reduction(v.d_y, v.d_x, N);
    trial_expect(t, "y", v.d_y, v.want, N / WARP, 0, 1e-4);
}

void try_w11_warp_broadcast(struct trial *t) {
    enum { N = 1024, WARP = 32, REQUESTS = N / WARP };
    struct simt_counters c;
    struct vectors v = vectors_create(t, N, N);
    for (int i = 0; i < N; i++) {
        v.want[i] = v.x[i] - v.x[i / WARP * WARP];
    }
    trial_count(t);
    w11_warp_broadcast(v.d_y, v.d_x, N);
    trial_expect(t, "y", v.d_y, v.want, N, 0, 1e-6);
    if (trial_counted(t, &c) && c.global_load_requests > REQUESTS) {
        trial_fail(t, "the result is right, but its warps execute %d loads of x; %d would do",
                   (int)c.global_load_requests, REQUESTS);
    }
}

void try_w12_block_reduction(struct trial *t) {
    enum { N = 1024, THREADS = 256 };
    struct vectors v = vectors_create(t, N, N / THREADS);
    for (int i = 0; i < N; i++) {
        v.want[i / THREADS] += v.x[i];
    }
    w12_block_reduction(v.d_y, v.d_x, N);
    trial_expect(t, "y", v.d_y, v.want, N / THREADS, 0, 1e-3);
}

/* Rows that are longer and shorter than a warp; all elements are below 0, so 0 is no maximum. */
void try_w13_row_reduction(struct trial *t) {
    enum { ROWS = 20, LONG = 100, SHORT = 7 };
    static const int lengths[] = {LONG, SHORT};
    for (int k = 0; k < 2; k++) {
        int columns = lengths[k];
        float *x = trial_random(t, (size_t)(ROWS * columns));
        double *want = trial_host(t, ROWS, sizeof *want);
        float *d_y = trial_output(t, ROWS);
        for (int i = 0; i < ROWS * columns; i++) {
            x[i] -= 2.0f;
            want[i / columns] = i % columns == 0 ? x[i] : fmax(want[i / columns], x[i]);
        }
        w13_row_reduction(d_y, trial_put(t, x, (size_t)(ROWS * columns) * sizeof *x), ROWS,
                          columns);
        trial_expect(t, columns == LONG ? "rows of 100: y" : "rows of 7: y", d_y, want, ROWS, 0,
                     0.0);
    }
}

void try_w14_scan(struct trial *t) {
    enum { N = 512, THREADS = 256 };
    struct vectors v = vectors_create(t, N, N);
    for (int i = 0; i < N; i++) {
        v.want[i] = v.x[i] + (i % THREADS > 0 ? v.want[i - 1] : 0.0);
    }
    w14_scan(v.d_y, v.d_x, N);
    trial_expect(t, "y", v.d_y, v.want, N, 0, 1e-3);
}

void try_w15_histogram(struct trial *t) {
    enum { N = 5000, BINS = 16 };
    int *keys = trial_host(t, N, sizeof *keys);
    int want[BINS] = {0};
    int *d_bins = trial_integers(t, BINS, 0);
    for (int i = 0; i < N; i++) {
        keys[i] =
            (int)(rng_below(&t->rng, BINS) & rng_below(&t->rng, BINS)); /* some far more often */
        want[keys[i]]++;
    }
    w15_histogram(d_bins, trial_put(t, keys, N * sizeof *keys), N);
    trial_expect_integers(t, "bins", d_bins, want, BINS);
}

static void judge_softmax_paper(struct trial *t) {
    static const float want[3] = {1.0f, 1.5f, 1.75f};
    for (int i = 0; i < 3; i++) {
        if (!(fabsf(w16_paper[i] - want[i]) < 1e-6f)) {
            trial_fail(t, "on paper: l after %s is not %g",
                       i == 0   ? "0"
                       : i == 1 ? "ln 2"
                                : "ln 4",
                       w16_paper[i]);
        }
    }
}

void try_w16_online_softmax(struct trial *t) {
    enum { ROWS = 40, COLUMNS = 30, WARPS = 2 };
    struct simt_counters c;
    float *x = trial_random(t, ROWS * COLUMNS);
    double *m = trial_host(t, ROWS, sizeof *m), *l = trial_host(t, ROWS, sizeof *l);
    float *d_m = trial_output(t, ROWS), *d_l = trial_output(t, ROWS);
    judge_softmax_paper(t);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        x[i] *= 150.0f; /* e^150 is no float */
        m[i / COLUMNS] = i % COLUMNS == 0 ? x[i] : fmax(m[i / COLUMNS], x[i]);
    }
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        l[i / COLUMNS] += exp(x[i] - m[i / COLUMNS]);
    }
    const float *d_x = trial_put(t, x, ROWS * COLUMNS * sizeof *x);
    trial_count(t);
    w16_online_softmax(d_m, d_l, d_x, ROWS, COLUMNS);
    trial_expect(t, "m", d_m, m, ROWS, 0, 0.0);
    trial_expect(t, "l", d_l, l, ROWS, 0, 1e-4);
    if (trial_counted(t, &c) && c.global_load_requests > WARPS * COLUMNS) {
        trial_fail(t, "the result is right, but %d loads are more than one pass has (%d)",
                   (int)c.global_load_requests, WARPS * COLUMNS);
    }
}
