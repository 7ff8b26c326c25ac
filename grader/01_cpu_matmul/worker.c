/* Lab 01: what runs in the worker. */
#include "grader/isolation/worker.h"
#include "grader/01_cpu_matmul/calls.h"
#include "grader/isolation/models.h"
#include "labs/01_cpu_matmul/given/engine.h"
#include "labs/01_cpu_matmul/matmul.h"

static enum status run(void *arguments, struct error *error) {
    const struct matmul_call *c = arguments;
    (void)error; /* cpu_matmul() has no message beside its status */
    return cpu_matmul(c->out, c->in, c->weight, c->M, c->N, c->K, c->threads);
}

enum status worker_engine_create(struct engine *engine, struct error *error) {
    enum status status = engine_cpu_matmul_create(engine, graded_threads());
    return status == STATUS_OK ? STATUS_OK
                               : error_set(error, status, "out of memory for the engine");
}

static const struct worker_entry entries[] = {
    {"matmul", sizeof(struct matmul_call), run}, WORKER_LLAMA2_LOGITS, WORKER_LLAMA2, {0}};

const struct worker worker = {entries, NULL};
