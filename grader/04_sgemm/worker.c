/* Lab 04: what runs in the worker. */
#include "grader/isolation/worker.h"
#include "grader/04_sgemm/calls.h"
#include "grader/isolation/models.h"
#include "labs/04_sgemm/given/engine.h"

static enum status run(void *arguments, struct error *error) {
    const struct sgemm_call *c = arguments;
    sgemm_name_tensors(&c->problem);
    return sgemm(&c->problem, c->workspace, c->stream, error);
}

enum status worker_engine_create(struct engine *engine, struct error *error) {
    return engine_sgemm_create(engine, error);
}

static const struct worker_entry entries[] = {
    {"sgemm", sizeof(struct sgemm_call), run}, WORKER_LLAMA2_LOGITS, WORKER_BERT, {0}};

const struct worker worker = {entries, &worker_device};
