/* Lab 06: what runs in the worker. The baseline's models run on the stage below. */
#include "grader/isolation/worker.h"
#include "grader/06_fused_epilogues/calls.h"
#include "grader/isolation/models.h"
#include "labs/04_sgemm/sgemm.h"
#include "labs/06_fused_epilogues/given/engine.h"

#ifdef GRADER_BASELINE
/* in * weight^T by the solved lab 04, and nothing else. */
static enum status run_matmul(void *arguments, struct error *error) {
    const struct fused_call *c = arguments;
    const struct fused_problem *p = &c->problem;
    const struct sgemm_problem product = {.M = p->M,
                                          .N = p->N,
                                          .K = p->K,
                                          .form = SGEMM_B_TRANSPOSED,
                                          .alpha = 1.0f,
                                          .A = p->in,
                                          .B = p->weight,
                                          .C = p->out};
    return sgemm(&product, (char *)c->workspace + FUSED_ZERO_BYTES, c->stream, error);
}

enum status worker_engine_create(struct engine *engine, struct error *error) {
    return engine_unfused_create(engine, error);
}
#else
enum status worker_engine_create(struct engine *engine, struct error *error) {
    return engine_fused_create(engine, error);
}
#endif

static enum status run(void *arguments, struct error *error) {
    const struct fused_call *c = arguments;
    fused_name_tensors(&c->problem);
    return fused_epilogues(&c->problem, c->workspace, c->stream, error);
}

static const struct worker_entry entries[] = {
    {"fused", sizeof(struct fused_call), run},
#ifdef GRADER_BASELINE
    {"plain_matmul", sizeof(struct fused_call), run_matmul},
#endif
    WORKER_BERT,
    {0}};

const struct worker worker = {entries, &worker_device};
