/* Less work than was asked for, work put off or hidden, and less time than it took. */
#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/simt/simt.h"
#include "grader/selftest/sabotage.h"

/* ---- Results that cost less, or look right to a careless comparison ---- */

static size_t bytes_of(const struct sgemm_problem *p) {
    return p->M * p->N * sizeof(float);
}

/* Row 5: writes half of the rows. */
static enum status short_output(const struct sabotage_call *call, struct error *error) {
    struct sgemm_problem half = *call->problem;
    half.M /= 2;
    return sabotage_launch(&half, (struct sabotage_shortcut){1, 1}, call->stream, error);
}

/* Row 8: makes input and output zeros, so that they agree. */
static enum status zero_inputs(const struct sabotage_call *call, struct error *error) {
    const struct sgemm_problem *p = call->problem;
    TRY(device_set((void *)p->A, 0, p->M * p->K * sizeof(float), call->stream, error));
    return device_set(p->C, 0, bytes_of(p), call->stream, error);
}

/* Row 9: hopes that what lay there before is the reference's result: frees memory of that size,
   and leaves the output as it is. */
static enum status inherits(const struct sabotage_call *call, struct error *error) {
    void *memory = NULL;
    TRY(device_alloc(&memory, bytes_of(call->problem), error));
    device_free(memory);
    return STATUS_OK;
}

/* Rows 14 and 15: zeros are near small numbers, and right where weights are zeros. */
static enum status zeros(const struct sabotage_call *call, struct error *error) {
    return device_set(call->problem->C, 0, bytes_of(call->problem), call->stream, error);
}

/* Row 17: sums every second product, and doubles. */
static enum status partial_sum(const struct sabotage_call *call, struct error *error) {
    return sabotage_launch(call->problem, (struct sabotage_shortcut){1, 2}, call->stream, error);
}

/* Row 18: computes one row of 64 of what is timed, and repeats it. */
static enum status samples_rows(const struct sabotage_call *call, struct error *error) {
    size_t rows = sabotage_is_timed(call->problem) ? 64 : 1;
    return sabotage_launch(call->problem, (struct sabotage_shortcut){rows, 1}, call->stream, error);
}

/* Row 19: NaN differs from nothing by more than a tolerance. */
static enum status not_a_number(const struct sabotage_call *call, struct error *error) {
    return device_set(call->problem->C, 0xff, bytes_of(call->problem), call->stream, error);
}

/* Row 30: is right, and writes beside the output where no check of simt notices. */
static enum status beside(const struct sabotage_call *call, struct error *error) {
    const struct sgemm_problem *p = call->problem;
    TRY(sabotage_right(call, error));
    /* The second case is the first whose output has something before it. */
    return call->number == 1 ? device_set(p->C - 1, 0, sizeof(float), call->stream, error)
                             : STATUS_OK;
}

/* Row 31: leaves out the last row where their number is odd. */
static enum status odd_sizes(const struct sabotage_call *call, struct error *error) {
    struct sgemm_problem even = *call->problem;
    even.M -= even.M > 1 ? even.M % 2 : 0;
    return sabotage_launch(&even, (struct sabotage_shortcut){1, 1}, call->stream, error);
}

/* ---- Work that is done in some calls and left out, put off or hidden in others ---- */

/* The results of all calls so far, by shape, and by weights where they count. */
struct kept {
    size_t M, N, K;
    const void *weights;
    void *result;
};

static bool is_of(const struct kept *kept, const struct sgemm_problem *p, const void *weights) {
    return kept->M == p->M && kept->N == p->N && kept->K == p->K && kept->weights == weights;
}

static enum status give_again(const struct sabotage_call *call, const void *weights,
                              struct error *error) {
    static struct kept kept[64];
    const struct sgemm_problem *p = call->problem;
    size_t bytes = p->M * p->N * sizeof(float), i = 0;
    while (i < 63 && kept[i].result != NULL && !is_of(&kept[i], p, weights)) {
        i++;
    }
    if (kept[i].result != NULL) {
        return device_copy(p->C, kept[i].result, bytes, call->stream, error);
    }
    kept[i] = (struct kept){p->M, p->N, p->K, weights, NULL};
    TRY(sabotage_right(call, error));
    TRY(device_alloc(&kept[i].result, bytes, error));
    return device_copy(kept[i].result, p->C, bytes, call->stream, error);
}

/* Row 1: gives a shape's first result again. */
static enum status replays(const struct sabotage_call *call, struct error *error) {
    return give_again(call, NULL, error);
}

/* Row 1: the same for each matrix of a model: its first batch is right, and the next ones are fast.
 */
static enum status remembers_batch(const struct sabotage_call *call, struct error *error) {
    return give_again(call, call->problem->B, error);
}

/* Row 2: what was computed into the same memory must still be right. */
static enum status once(const struct sabotage_call *call, struct error *error) {
    static const float *done[1024];
    for (size_t i = 0; i < call->number && i < 1024; i++) {
        if (done[i] == call->problem->C) {
            return STATUS_OK;
        }
    }
    if (call->number < 1024) {
        done[call->number] = call->problem->C;
    }
    return sabotage_right(call, error);
}

/* Rows 3 and 13: does nothing in what is timed, and so in no time. */
static enum status at_once(const struct sabotage_call *call, struct error *error) {
    return sabotage_is_timed(call->problem) ? STATUS_OK : sabotage_right(call, error);
}

/* Row 4: leaves out every second call. */
static enum status every_second(const struct sabotage_call *call, struct error *error) {
    return call->number % 2 == 1 ? STATUS_OK : sabotage_right(call, error);
}

/* Row 10: works on a stream that nobody waits for. */
static enum status own_stream(const struct sabotage_call *call, struct error *error) {
    static device_stream own;
    struct sabotage_call elsewhere = *call;
    if (own == NULL) {
        TRY(device_stream_create(&own, error));
    }
    elsewhere.stream = own;
    return sabotage_right(&elsewhere, error);
}

/* Row 32: races where it is timed alone. */
static enum status races_where_timed(const struct sabotage_call *call, struct error *error) {
    return (sabotage_is_timed(call->problem) ? sabotage_race : sabotage_right)(call, error);
}

/* Row 21: starts what cannot start, and has the runtime forget it. */
static enum status resets_errors(const struct sabotage_call *call, struct error *error) {
    (void)error;
    sabotage_launch_too_large(call->problem, 4096, 0);
    (void)cudaGetLastError();
    return STATUS_OK;
}

/* Row 23: computes a result when the next one is asked for. */
static enum status lazy(const struct sabotage_call *call, struct error *error) {
    static struct sgemm_problem last;
    struct sgemm_problem before = last;
    last = *call->problem;
    return call->number == 0
               ? STATUS_OK
               : sabotage_launch(&before, (struct sabotage_shortcut){1, 1}, call->stream, error);
}

/* Row 24: works in a process's first call, which is looked at most closely. */
static enum status first_only(const struct sabotage_call *call, struct error *error) {
    return call->number == 0 ? sabotage_right(call, error) : STATUS_OK;
}

/* Row 25: asks for more shared memory than there is, and looks at no error. */
static enum status too_much_shared(const struct sabotage_call *call, struct error *error) {
    (void)error;
    sabotage_launch_too_large(call->problem, 256, (size_t)1 << 30);
    return STATUS_OK;
}

/* ---- Less time than it took, by other means than working less ---- */

static double nanoseconds(const struct simt_api *api) {
    struct simt_totals totals;
    api->read_totals(&totals);
    return totals.nanoseconds;
}

/* Replaces a number wherever it stands in writable memory of this process below 64 MiB a piece. */
static void replace(double from, double to) {
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        char *end;
        uint64_t begin = strtoull(line, &end, 16), behind = strtoull(end + 1, &end, 16);
        bool wanted = strncmp(end, " rw-p", 5) == 0 && behind - begin < (64u << 20);
        for (double *x = (double *)(uintptr_t)begin; wanted && x < (double *)(uintptr_t)behind;
             x++) {
            if (memcmp(x, &from, sizeof from) == 0) {
                memcpy(x, &to, sizeof to);
            }
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
}

/* Row 11: works, then turns simt's clock back wherever it is found in this process: nowhere. */
static enum status turns_back(const struct sabotage_call *call, struct error *error) {
    struct simt_api api;
    if (!simt_find(&api)) {
        return error_set(error, STATUS_UNSUPPORTED, "this trick is for simt");
    }
    double before = nanoseconds(&api);
    TRY(sabotage_right(call, error));
    replace(nanoseconds(&api), before + 1.0);
    return nanoseconds(&api) > before + 2.0 ? STATUS_OK
                                            : error_set(error, STATUS_MISMATCH, "found the clock");
}

/* Row 20: the first call takes long, so that fewer are measured. */
static enum status slow_start(const struct sabotage_call *call, struct error *error) {
    const struct timespec half = {0, 500000000};
    if (call->number == 0) {
        nanosleep(&half, NULL);
    }
    return sabotage_right(call, error);
}

const struct sabotage sabotage_work[] = {SABOTAGE(short_output),
                                         SABOTAGE(zero_inputs),
                                         SABOTAGE(inherits),
                                         SABOTAGE(zeros),
                                         SABOTAGE(partial_sum),
                                         SABOTAGE(samples_rows),
                                         SABOTAGE(not_a_number),
                                         SABOTAGE(beside),
                                         SABOTAGE(odd_sizes),
                                         SABOTAGE(replays),
                                         SABOTAGE(remembers_batch),
                                         SABOTAGE(once),
                                         SABOTAGE(at_once),
                                         SABOTAGE(every_second),
                                         SABOTAGE(own_stream),
                                         SABOTAGE(races_where_timed),
                                         SABOTAGE(resets_errors),
                                         SABOTAGE(lazy),
                                         SABOTAGE(first_only),
                                         SABOTAGE(too_much_shared),
                                         SABOTAGE(turns_back),
                                         SABOTAGE(slow_start),
                                         {0}};
