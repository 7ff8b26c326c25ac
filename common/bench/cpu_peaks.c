#include "common/bench/cpu_peaks.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cpu.h"
#include "common/bench/bench.h"
#include "common/bench/cpu_probe_kernels.h"

/* One thread: its part of the buffer, and when its last run ended. */
struct worker {
    struct cpu_probe *probe;
    pthread_t thread;
    float *buffer;
    double end;
    double ran;          /* processor time of its last run, without waiting for the others */
    volatile float sink; /* keeps the compiler from removing the work */
};

enum job { JOB_FILL, JOB_ARITHMETIC, JOB_READ, JOB_END };

struct cpu_probe {
    size_t lanes;
    size_t part; /* bytes of the buffer that belong to one thread */
    size_t at;   /* where the next run reads, the same in every part */
    float *buffer;
    int threads;          /* running */
    pthread_mutex_t gate; /* locked while threads are being started */
    bool go;              /* under the gate; false: the threads return at once */
    pthread_barrier_t together;
    double took;   /* by the last run */
    enum job job;  /* of the next run; written between two barriers */
    size_t amount; /* of one thread and one loop: rounds or bytes */
    int loops;     /* parallel loops of the next run */
    atomic_int arrived, meetings;
    struct worker workers[];
};

/* Of this thread, in seconds. */
static double processor_time(void) {
    struct timespec ran;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran);
    return (double)ran.tv_sec + 1e-9 * (double)ran.tv_nsec;
}

/* Between two loops of a run: waits awake for some microseconds, as OpenMP's threads do. */
static void meet(struct cpu_probe *probe) {
    int meeting = atomic_load(&probe->meetings);
    if (atomic_fetch_add(&probe->arrived, 1) + 1 == probe->threads) {
        atomic_store(&probe->arrived, 0);
        atomic_fetch_add(&probe->meetings, 1);
    }
    for (int spins = 1; atomic_load(&probe->meetings) == meeting; spins++) {
        if (spins % 4096 == 0) {
            sched_yield();
        }
    }
}

static void read_part(struct worker *worker) {
    struct cpu_probe *probe = worker->probe;
    size_t at = probe->at;
    for (int loop = 0; loop < probe->loops; loop++) {
        for (size_t left = probe->amount, bytes; left > 0; left -= bytes) {
            bytes = left < probe->part - at ? left : probe->part - at;
            worker->sink = cpu_probe_sum(probe->lanes, worker->buffer + at / sizeof(float), bytes);
            at = (at + bytes) % probe->part;
        }
        double before = processor_time();
        meet(probe);
        worker->ran -= processor_time() - before;
    }
}

static void work(struct worker *worker) {
    const struct cpu_probe *probe = worker->probe;
    worker->ran = -processor_time();
    if (probe->job == JOB_FILL) {
        for (size_t i = 0; i < probe->part / sizeof(float); i++) {
            worker->buffer[i] = 1.0f;
        }
    } else if (probe->job == JOB_ARITHMETIC) {
        worker->sink = cpu_probe_multiply_add(probe->lanes, probe->amount);
    } else {
        read_part(worker);
    }
    worker->ran += processor_time();
    worker->end = bench_now();
}

static void *run_worker(void *argument) {
    struct worker *worker = argument;
    struct cpu_probe *probe = worker->probe;
    pthread_mutex_lock(&probe->gate);
    bool go = probe->go;
    pthread_mutex_unlock(&probe->gate);
    while (go) {
        pthread_barrier_wait(&probe->together);
        if (probe->job == JOB_END) {
            break;
        }
        work(worker);
        pthread_barrier_wait(&probe->together);
    }
    return NULL;
}

/* @return seconds from waking the threads to the end of the last one */
static double run(struct cpu_probe *probe, enum job job, size_t amount) {
    probe->job = job;
    probe->amount = amount;
    double start = bench_now(), end = start;
    pthread_barrier_wait(&probe->together);
    pthread_barrier_wait(&probe->together);
    for (int i = 0; i < probe->threads; i++) {
        end = probe->workers[i].end > end ? probe->workers[i].end : end;
    }
    probe->took = end - start;
    return probe->took;
}

/*
 * Threads that wake each other are often put on one CPU, and leave another idle. So thread i of n
 * may run on every nth CPU from the ith on, and the system picks one there that has nothing to do.
 */
static void spread(pthread_t thread, int number, int threads) {
    cpu_set_t allowed, part;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        return;
    }
    CPU_ZERO(&part);
    int count = CPU_COUNT(&allowed), groups = threads < count ? threads : count;
    for (int cpu = 0, nth = 0; nth < count; cpu++) {
        if (CPU_ISSET(cpu, &allowed)) {
            if (nth % groups == number % groups) {
                CPU_SET(cpu, &part);
            }
            nth++;
        }
    }
    (void)pthread_setaffinity_np(thread, sizeof part, &part); /* without it the figure is lower */
}

/* Starts all threads, or none of them. */
static enum status start_threads(struct cpu_probe *probe, int threads, struct error *error) {
    if (pthread_barrier_init(&probe->together, NULL, (unsigned)threads + 1) != 0) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "no memory for the probe's barrier");
    }
    int started = 0;
    pthread_mutex_lock(&probe->gate);
    while (started < threads && pthread_create(&probe->workers[started].thread, NULL, run_worker,
                                               &probe->workers[started]) == 0) {
        spread(probe->workers[started].thread, started, threads);
        started++;
    }
    probe->go = started == threads;
    pthread_mutex_unlock(&probe->gate);
    if (probe->go) {
        probe->threads = threads;
        return STATUS_OK;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(probe->workers[i].thread, NULL);
    }
    pthread_barrier_destroy(&probe->together);
    return error_set(error, STATUS_OUT_OF_MEMORY, "thread %d of %d cannot be started", started + 1,
                     threads);
}

static enum status prepare(struct cpu_probe *probe, const struct cpu_probe_options *o,
                           struct error *error) {
    const size_t threads = (size_t)o->threads, step = CPU_PROBE_READ_STEP;
    probe->part = (o->buffer_bytes / threads + step - 1) / step * step;
    if (probe->part > 0) {
        probe->buffer = aligned_alloc(64, probe->part * threads);
        if (probe->buffer == NULL) {
            return error_set(error, STATUS_OUT_OF_MEMORY, "no memory for a buffer of %zu bytes",
                             probe->part * threads);
        }
    }
    for (size_t i = 0; i < threads; i++) {
        probe->workers[i].probe = probe;
        probe->workers[i].buffer =
            probe->buffer != NULL ? probe->buffer + i * (probe->part / sizeof(float)) : NULL;
    }
    TRY(start_threads(probe, o->threads, error));
    (void)run(probe, JOB_FILL, 0);
    return STATUS_OK;
}

static bool valid(const struct cpu_probe_options *o) {
    size_t l = o->lanes;
    return o->threads >= 1 && (l == 0 || l == 4 || l == 8 || l == 16) && l <= cpu_vector_floats() &&
           o->buffer_bytes <= SIZE_MAX / 2;
}

enum status cpu_probe_create(struct cpu_probe **probe, const struct cpu_probe_options *options,
                             struct error *error) {
    *probe = NULL;
    if (!valid(options)) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "%d threads, vectors of %zu floats",
                         options->threads, options->lanes);
    }
    struct cpu_probe *p = calloc(1, sizeof *p + (size_t)options->threads * sizeof(struct worker));
    if (p == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "no memory for the probe");
    }
    pthread_mutex_init(&p->gate, NULL);
    p->lanes = options->lanes > 0 ? options->lanes : cpu_vector_floats();
    enum status status = prepare(p, options, error);
    if (status != STATUS_OK) {
        cpu_probe_free(p);
        return status;
    }
    *probe = p;
    return STATUS_OK;
}

void cpu_probe_free(struct cpu_probe *probe) {
    if (probe == NULL) {
        return;
    }
    if (probe->threads > 0) {
        probe->job = JOB_END;
        pthread_barrier_wait(&probe->together);
        for (int i = 0; i < probe->threads; i++) {
            pthread_join(probe->workers[i].thread, NULL);
        }
        pthread_barrier_destroy(&probe->together);
    }
    pthread_mutex_destroy(&probe->gate);
    free(probe->buffer);
    free(probe);
}

double cpu_probe_arithmetic(struct cpu_probe *probe, double flops) {
    double of_round = cpu_probe_round_flops(probe->lanes) * probe->threads;
    size_t rounds = (size_t)(flops / of_round) + 1;
    return of_round * (double)rounds / run(probe, JOB_ARITHMETIC, rounds);
}

double cpu_probe_stretch(const struct cpu_probe *probe) {
    double ran = 0.0;
    for (int i = 0; i < probe->threads; i++) {
        ran = probe->workers[i].ran > ran ? probe->workers[i].ran : ran;
    }
    return ran > 0.0 && ran < probe->took ? probe->took / ran : 1.0;
}

double cpu_probe_read(struct cpu_probe *probe, size_t bytes, int loops) {
    if (probe->part == 0) {
        return 0.0;
    }
    size_t parts = (size_t)probe->threads * (size_t)loops, step = CPU_PROBE_READ_STEP;
    size_t amount = (bytes / parts + step) / step * step;
    probe->loops = loops;
    double seconds = run(probe, JOB_READ, amount);
    probe->at = (probe->at + amount * (size_t)loops) % probe->part;
    return (double)(amount * parts) / seconds;
}

/* ---- Peaks ---- */

/* Beside other work a short run is more often left alone than a long one. */
enum { REPEATS = 30 };
static const double FLOPS_A_RUN = 2e8;      /* of each thread: 1 to 4 ms */
static const size_t BYTES_A_RUN = 16 << 20; /* of each thread: 1 to 4 ms */

static double larger(double a, double b) {
    return a > b ? a : b;
}

/* Four times the last-level cache, within limits. */
static size_t buffer_bytes(int threads) {
    const size_t least = ((size_t)64 << 20) * (size_t)threads, most = (size_t)1 << 30;
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE), pages = sysconf(_SC_PHYS_PAGES);
    size_t bytes = cache > 0 ? 4 * (size_t)cache : 0;
    size_t eighth = pages > 0 ? (size_t)pages / 8 * (size_t)sysconf(_SC_PAGESIZE) : most;
    bytes = bytes < most ? bytes : most;
    bytes = bytes < eighth ? bytes : eighth;
    return bytes > least ? bytes : least;
}

enum status cpu_peaks(int threads, struct cpu_peaks *peaks, struct error *error) {
    struct cpu_probe *probe;
    *peaks = (struct cpu_peaks){0};
    const struct cpu_probe_options options = {
        .threads = threads, .buffer_bytes = threads > 0 ? buffer_bytes(threads) : 0};
    TRY(cpu_probe_create(&probe, &options, error));
    for (int i = 0; i < REPEATS; i++) {
        double flops = cpu_probe_arithmetic(probe, FLOPS_A_RUN * threads);
        double bytes = cpu_probe_read(probe, BYTES_A_RUN * (size_t)threads, 1);
        peaks->flops_per_s = larger(peaks->flops_per_s, flops);
        peaks->bytes_per_s = larger(peaks->bytes_per_s, bytes);
    }
    cpu_probe_free(probe);
    return STATUS_OK;
}
