/* Lab 13: what runs in the worker. */
#include "grader/isolation/worker.h"
#include "common/simt/simt.h"
#include "grader/13_low_bit/calls.h"

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

const struct worker worker = {entries, &worker_device};
