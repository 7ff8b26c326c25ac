/* Lab 05: what runs in the worker. */
#include "grader/cases/05_layernorm_softmax_baseline.h"
#include "grader/cases/05_layernorm_softmax_calls.h"
#include "grader/isolation/models.h"
#include "grader/isolation/worker.h"
#include "labs/05_layernorm_softmax/engine.h"

#ifdef GRADER_BASELINE
enum status layernorm_softmax(const struct rows_problem *problem, void *workspace,
                              device_stream stream, struct error *error) {
    return rows_baseline(problem, workspace, stream, error);
}
#endif

static enum status run(void *arguments, struct error *error) {
    const struct rows_call *c = arguments;
    return layernorm_softmax(&c->problem, c->workspace, c->stream, error);
}

enum status worker_engine_create(struct engine *engine, struct error *error) {
    return engine_layernorm_softmax_create(engine, error);
}

static const struct worker_entry entries[] = {
    {"rows", sizeof(struct rows_call), run}, WORKER_LLAMA2_LOGITS, WORKER_BERT, {0}};

const struct worker worker = {entries, &worker_device};
