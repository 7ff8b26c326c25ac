/* Lab 12: what runs in the worker. */
#include "grader/isolation/worker.h"
#include "grader/12_tensor_cores/calls.h"
#include "grader/isolation/models.h"
#include "labs/12_tensor_cores/given/engine.h"

static enum status run(void *arguments, struct error *error) {
    const struct gemm16_call *c = arguments;
    return gemm16(&c->problem, c->workspace, c->stream, error);
}

static enum status no_product(const struct gemm16_problem *problem, void *workspace,
                              device_stream stream, struct error *error) {
    (void)problem, (void)workspace, (void)stream, (void)error;
    return STATUS_OK;
}

/* The rest of a model is timed without its products: set for the model that is made next. */
static bool without_products;

enum status worker_engine_create(struct engine *engine, struct error *error) {
    static const struct gemm16_step none = {"none", no_product};
    return without_products ? engine_tensor_cores_create_with(engine, &none, error)
                            : engine_tensor_cores_create(engine, error);
}

static enum status create_bert(void *arguments, struct error *error) {
    const struct bert_create_call *c = arguments;
    without_products = (c->without & WORKER_NO_MATMUL) != 0;
    return worker_bert_create(arguments, error);
}

static const struct worker_entry entries[] = {
    {"gemm16", sizeof(struct gemm16_call), run},
    {"bert_create", sizeof(struct bert_create_call), create_bert},
    {"bert_run", sizeof(struct bert_run_call), worker_bert_run},
    {"bert_free", sizeof(struct bert_run_call), worker_bert_free},
    {0}};

const struct worker worker = {entries, &worker_device};
