/* Lab 13: what runs in the workers. The baseline is the product that lab 13 wants to be faster
   than: solved lab 09's, with weights in bf16. */
#include "grader/isolation/worker.h"
#include "common/simt/simt.h"
#include "grader/13_low_bit/calls.h"

#ifdef GRADER_BASELINE
static enum status bf16_linear(void *arguments, struct error *error) {
    const struct bf16_linear_call *c = arguments;
    struct kv_linear linear = c->linear;
    for (size_t row = 0; row < c->rows; row++) {
        TRY(kv_linear(&linear, c->stream, error));
        linear.in += linear.K;
        linear.out += linear.N;
    }
    return STATUS_OK;
}

static const struct worker_entry entries[] = {
    {"bf16_linear", sizeof(struct bf16_linear_call), bf16_linear}, {0}};
#else
static enum status prepare(void *arguments, struct error *error) {
    const struct low_bit_prepare_call *c = arguments;
    simt_name_tensor(c->matrix.values, "values");
    simt_name_tensor(c->matrix.scales, "scales");
    simt_name_tensor(c->matrix.zeros, "zeros");
    simt_name_tensor(c->prepared, "prepared");
    return low_bit_prepare(&c->matrix, c->prepared, c->stream, error);
}

static enum status linear(void *arguments, struct error *error) {
    const struct low_bit_linear_call *c = arguments;
    simt_name_tensor(c->linear.prepared, "prepared");
    simt_name_tensor(c->linear.in, "in");
    simt_name_tensor(c->linear.out, "out");
    simt_name_tensor(c->workspace, "workspace");
    return low_bit_linear(&c->linear, c->workspace, c->stream, error);
}

static const struct worker_entry entries[] = {
    {"low_bit_prepare", sizeof(struct low_bit_prepare_call), prepare},
    {"low_bit_linear", sizeof(struct low_bit_linear_call), linear},
    {0}};
#endif

const struct worker worker = {entries, &worker_device};
