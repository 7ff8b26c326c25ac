/* Lab 07: what runs in the worker. */
#include "grader/isolation/worker.h"
#include "grader/07_attention/calls.h"
#include "grader/isolation/models.h"
#include "labs/07_attention/given/engine.h"

static enum status run(void *arguments, struct error *error) {
    const struct attention_call *c = arguments;
    attention_name_tensors(&c->problem);
    return attention(&c->problem, c->stream, error);
}

enum status worker_engine_create(struct engine *engine, struct error *error) {
    return engine_attention_create(engine, error);
}

static const struct worker_entry entries[] = {
    {"attention", sizeof(struct attention_call), run}, WORKER_LLAMA2_LOGITS, WORKER_BERT, {0}};

const struct worker worker = {entries, &worker_device};
