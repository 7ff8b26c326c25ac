/* Results that are not the results: they cost less, or look right to a careless comparison. */
#include "grader/selftest/sabotage.h"

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

const struct sabotage sabotage_results[] = {
    {"short_output", short_output}, {"zero_inputs", zero_inputs},
    {"inherits", inherits},         {"zeros", zeros},
    {"partial_sum", partial_sum},   {"samples_rows", samples_rows},
    {"not_a_number", not_a_number}, {"beside", beside},
    {"odd_sizes", odd_sizes},       {0}};
