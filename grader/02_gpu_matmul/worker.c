/* Lab 02: what runs in the worker. */
#include "grader/isolation/worker.h"
#include "grader/02_gpu_matmul/calls.h"
#include "grader/isolation/models.h"
#include "labs/02_gpu_matmul/given/engine.h"

static enum status launch(void *arguments, struct error *error) {
    const struct launch_call *c = arguments;
    return gpu_matmul_launch(c->out, c->in, c->weight, c->M, c->N, c->K, c->stream, error);
}

static enum status create(void *arguments, struct error *error) {
    struct matmul_call *c = arguments;
    return gpu_matmul_create(&c->matmul, error);
}

static enum status destroy(void *arguments, struct error *error) {
    const struct matmul_call *c = arguments;
    (void)error;
    gpu_matmul_destroy(c->matmul);
    return STATUS_OK;
}

static enum status call(void *arguments, struct error *error) {
    const struct matmul_call *c = arguments;
    return gpu_matmul(c->matmul, c->out, c->in, c->weight, c->M, c->N, c->K, error);
}

enum status worker_engine_create(struct engine *engine, struct error *error) {
    return engine_gpu_matmul_create(engine, error);
}

static const struct worker_entry entries[] = {{"launch", sizeof(struct launch_call), launch},
                                              {"create", sizeof(struct matmul_call), create},
                                              {"destroy", sizeof(struct matmul_call), destroy},
                                              {"call", sizeof(struct matmul_call), call},
                                              WORKER_LLAMA2_LOGITS,
                                              {0}};

const struct worker worker = {entries, &worker_device};
