/* Lab 05: what runs in the worker. */
#include "grader/isolation/worker.h"
#include "grader/05_layernorm_softmax/calls.h"
#include "grader/isolation/models.h"
#include "labs/05_layernorm_softmax/given/engine.h"

static enum status run(void *arguments, struct error *error) {
    const struct rows_call *c = arguments;
    rows_name_tensors(&c->problem);
    return layernorm_softmax(&c->problem, c->workspace, c->stream, error);
}

enum status worker_engine_create(struct engine *engine, struct error *error) {
    return engine_layernorm_softmax_create(engine, error);
}

static const struct worker_entry entries[] = {
    {"rows", sizeof(struct rows_call), run}, WORKER_LLAMA2_LOGITS, WORKER_BERT, {0}};

const struct worker worker = {entries, &worker_device};
