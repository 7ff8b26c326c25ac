#include "common/cpu/parallel.h"

#include <omp.h>
#include <stdlib.h>

/* 0.1 to 0.2 ms, measured: longer than the gaps between the operators of a model. */
static const char spins[] = "10000";

/* libgomp reads its environment in a constructor; this one is earlier. */
__attribute__((constructor(101))) static void limit_spinning(void) {
    if (getenv("OMP_WAIT_POLICY") == NULL) {
        (void)setenv("GOMP_SPINCOUNT", spins, 0);
    }
}

static size_t end_of(size_t begin, size_t chunk, size_t count) {
    return count - begin < chunk ? count : begin + chunk;
}

void cpu_parallel_for(int threads, size_t count, size_t chunk, cpu_parallel_body *body,
                      void *arguments) {
    size_t chunks = count / chunk + (count % chunk != 0);
    if (threads <= 1 || chunks <= 1) {
        for (size_t begin = 0; begin < count; begin = end_of(begin, chunk, count)) {
            body(arguments, 0, begin, end_of(begin, chunk, count));
        }
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (size_t i = 0; i < chunks; i++) {
        body(arguments, omp_get_thread_num(), i * chunk, end_of(i * chunk, chunk, count));
    }
}
