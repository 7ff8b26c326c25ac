/*
 * compare MEASURED MODELLED [--least=SHARE [--close=KERNELS]]
 *
 * Puts times of the same kernels side by side, as a Markdown table. Both files
 * have lines {"kernel": "name", "ms": 1.5}; of a kernel that is there several
 * times the middle one counts. Below the table: of all pairs that differ by 1.3
 * times or more as measured, the share that the model orders as the GPU does;
 * and how many kernels are off by no more than half. Exit status 1 when the
 * share is below SHARE or fewer than KERNELS are so near, 2 when a file is not
 * as it should be.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KERNELS = 64, MOST_TIMES = 16, NAME_BYTES = 64 };
static const double APART = 1.3;
static const double CLOSE = 1.5;

struct kernel {
    char name[NAME_BYTES];
    double times[MOST_TIMES]; /* ms */
    int count;
};

struct times {
    struct kernel kernels[MOST_KERNELS];
    int count;
};

struct score {
    int pairs, right; /* that differ; of these, ordered right */
    int close;        /* kernels */
};

static void fail(const char *path, int line, const char *why) {
    fprintf(stderr, "compare: %s:%d: %s\n", path, line, why);
    exit(2);
}

static void fail_missing(const char *path, const char *name) {
    fprintf(stderr, "compare: %s has no time of %s\n", path, name);
    exit(2);
}

static struct kernel *find(struct times *times, const char *name) {
    for (int n = 0; n < times->count; n++) {
        if (strcmp(times->kernels[n].name, name) == 0) {
            return &times->kernels[n];
        }
    }
    return NULL;
}

static void add(struct times *times, const char *name, double ms, const char *path, int line) {
    struct kernel *kernel = find(times, name);
    if (kernel == NULL) {
        if (times->count == MOST_KERNELS) {
            fail(path, line, "too many kernels");
        }
        kernel = &times->kernels[times->count++];
        snprintf(kernel->name, sizeof kernel->name, "%s", name);
    }
    if (kernel->count == MOST_TIMES) {
        fail(path, line, "too many times of one kernel");
    }
    kernel->times[kernel->count++] = ms;
}

static void read_times(const char *path, struct times *times) {
    char line[256], name[NAME_BYTES];
    double ms;
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fail(path, 0, "cannot be opened");
    }
    for (int number = 1; fgets(line, sizeof line, file) != NULL; number++) {
        if (sscanf(line, "{\"kernel\": \"%63[^\"]\", \"ms\": %lf}", name, &ms) != 2 || !(ms > 0)) {
            fail(path, number, "not a line {\"kernel\": \"name\", \"ms\": 1.5}");
        }
        add(times, name, ms, path, number);
    }
    fclose(file);
    if (times->count == 0) {
        fail(path, 1, "no times");
    }
}

static int compare_doubles(const void *left, const void *right) {
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(const struct kernel *kernel) {
    double times[MOST_TIMES];
    memcpy(times, kernel->times, sizeof times);
    qsort(times, (size_t)kernel->count, sizeof *times, compare_doubles);
    return times[kernel->count / 2];
}

static void print_table(const struct times *measured, const double *ms, const double *modelled) {
    printf("| kernel | measured ms | modelled ms | ratio |\n|---|---:|---:|---:|\n");
    for (int n = 0; n < measured->count; n++) {
        printf("| %s | %.4f | %.4f | %.2f |\n", measured->kernels[n].name, ms[n], modelled[n],
               modelled[n] / ms[n]);
    }
}

static struct score judge(int count, const double *ms, const double *modelled) {
    struct score score = {0};
    for (int a = 0; a < count; a++) {
        double ratio = modelled[a] / ms[a];
        score.close += ratio <= CLOSE && ratio >= 1 / CLOSE;
        for (int b = 0; b < a; b++) {
            if (fmax(ms[a], ms[b]) >= APART * fmin(ms[a], ms[b])) {
                score.pairs++;
                score.right +=
                    (ms[a] < ms[b]) == (modelled[a] < modelled[b]) && modelled[a] != modelled[b];
            }
        }
    }
    return score;
}

int main(int argc, char **argv) {
    struct times measured = {.count = 0};
    struct times modelled = {.count = 0};
    double measured_ms[MOST_KERNELS], modelled_ms[MOST_KERNELS];
    double least = 0;
    int close = 0;
    if (argc < 3 || (argc > 3 && sscanf(argv[3], "--least=%lf", &least) != 1) ||
        (argc > 4 && sscanf(argv[4], "--close=%d", &close) != 1)) {
        fprintf(stderr, "usage: compare MEASURED MODELLED [--least=SHARE [--close=KERNELS]]\n");
        return 2;
    }
    read_times(argv[1], &measured);
    read_times(argv[2], &modelled);
    for (int n = 0; n < measured.count; n++) {
        const struct kernel *other = find(&modelled, measured.kernels[n].name);
        if (other == NULL) {
            fail_missing(argv[2], measured.kernels[n].name);
        }
        measured_ms[n] = median(&measured.kernels[n]);
        modelled_ms[n] = median(other);
    }
    print_table(&measured, measured_ms, modelled_ms);
    struct score score = judge(measured.count, measured_ms, modelled_ms);
    double share = score.pairs > 0 ? (double)score.right / score.pairs : 1;
    printf("\nOrdered as measured: %d of %d pairs that differ by %.1f times or more (%.1f%%). "
           "Within %.1f times: %d of %d kernels.\n",
           score.right, score.pairs, APART, 100 * share, CLOSE, score.close, measured.count);
    return share >= least && score.close >= close ? 0 : 1;
}
