/* f01 to f08: find the fault. simt stops a kernel at its fault, and the wait reports it. */
#include "labs/00_warmups/given/tries.h"
#include "labs/00_warmups/warmups.h"

enum { BLOCK = 256 };

void try_f01_triple(struct trial *t) {
    enum { N = 1000 };
    struct vectors v = vectors_create(t, N, N);
    for (int i = 0; i < N; i++) {
        v.want[i] = 3.0f * v.x[i];
    }
    f01_triple(v.d_y, v.d_x, N);
    trial_expect(t, "y", v.d_y, v.want, N, 0, 0.0);
}

/* The element that has i's place in its block of groups, counted from the end. */
static int opposite(int i, int block, int group) {
    int place = i / group % block, first = i / group - place;
    return (first + block - 1 - place) * group + i % group;
}

void try_f02_reverse(struct trial *t) {
    enum { N = 1024 };
    struct vectors v = vectors_create(t, N, N);
    for (int i = 0; i < N; i++) {
        v.want[i] = v.x[opposite(i, BLOCK, 1)];
    }
    f02_reverse(v.d_y, v.d_x, N);
    trial_expect(t, "y", v.d_y, v.want, N, 0, 0.0);
}

void try_f03_rounds(struct trial *t) {
    enum { N = 512, ROUNDS = 3, FURTHER = 32 };
    struct vectors v = vectors_create(t, N, N);
    double before[N];
    for (int i = 0; i < N; i++) {
        v.want[i] = v.x[i];
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++) {
            before[i] = v.want[i];
        }
        for (int i = 0; i < N; i++) {
            v.want[i] += before[i / BLOCK * BLOCK + (i + FURTHER) % BLOCK];
        }
    }
    f03_rounds(v.d_y, v.d_x, N);
    trial_expect(t, "y", v.d_y, v.want, N, 0, 1e-5);
}

void try_f04_any_length(struct trial *t) {
    enum { N = 1000 };
    struct vectors v = vectors_create(t, N, N);
    for (int i = 0; i < N; i++) {
        int other = opposite(i, BLOCK, 1);
        v.want[i] = other < N ? v.x[other] : 0.0;
    }
    f04_any_length(v.d_y, v.d_x, N);
    trial_expect(t, "y", v.d_y, v.want, N, 0, 0.0);
}

void try_f05_neighbours(struct trial *t) {
    enum { N = 1024 };
    struct vectors v = vectors_create(t, N, N);
    for (int i = 0; i < N; i++) {
        v.want[i] =
            (i > 0 ? (double)v.x[i - 1] : 0.0) + v.x[i] + (i + 1 < N ? (double)v.x[i + 1] : 0.0);
    }
    f05_neighbours(v.d_y, v.d_x, N);
    trial_expect(t, "y", v.d_y, v.want, N, 0, 1e-6);
}

void try_f06_copy_ahead(struct trial *t) {
    enum { N = 1024, THREADS = 128, GROUP = 4 };
    struct vectors v = vectors_create(t, N, N);
    for (int i = 0; i < N; i++) {
        v.want[i] = v.x[opposite(i, THREADS, GROUP)];
    }
    f06_copy_ahead(v.d_y, v.d_x, N);
    trial_expect(t, "y", v.d_y, v.want, N, 0, 0.0);
}

void try_f07_row_sums(struct trial *t) {
    enum { ROWS = 40, COLUMNS = 30 };
    struct vectors v = vectors_create(t, ROWS * COLUMNS, ROWS);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        v.want[i / COLUMNS] += v.x[i];
    }
    f07_row_sums(v.d_y, v.d_x, ROWS, COLUMNS);
    trial_expect(t, "y", v.d_y, v.want, ROWS, 0, 1e-4);
}

void try_f08_search(struct trial *t) {
    enum { N = 200, SIZE = 100 };
    struct vectors v = vectors_create(t, N, 1);
    float table[SIZE];
    int want[N] = {0};
    int *d_y = trial_integers(t, N, -1);
    for (int k = 0; k < SIZE; k++) {
        table[k] = 0.02f * (float)k - 1.0f;
    }
    for (int i = 0; i < N; i++) {
        while (want[i] < SIZE && table[want[i]] <= v.x[i]) {
            want[i]++;
        }
    }
    f08_search(d_y, v.d_x, N, trial_put(t, table, sizeof table), SIZE);
    trial_expect_integers(t, "y", d_y, want, N);
}
