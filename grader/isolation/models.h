/**
 * @file models.h
 * @brief Whole models on the learner's engine, run in the worker.
 *
 * Weights are random and made from a seed that is the models' alone: it says nothing about other
 * inputs. A lab's worker defines worker_engine_create() and lists the functions that it wants.
 */
#ifndef WARPBOOK_GRADER_ISOLATION_MODELS_H_
#define WARPBOOK_GRADER_ISOLATION_MODELS_H_

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/base/status.h"
#include "common/models/bert.h"
#include "common/models/engine.h"
#include "common/models/llama2.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Makes the engine of the lab's stage on the worker's functions; defined by the lab's worker. */
MUST_CHECK enum status worker_engine_create(struct engine *engine, struct error *error);

/** How a kind of model is made from a call's arguments, and freed; both also with zeros. */
struct worker_model {
    size_t size; /**< of its struct */
    enum status (*fill)(void *model, const void *call, struct error *error);
    void (*release)(void *model); /**< what fill() made; not the struct */
};

/** Frees what worker_model_create() made. */
static inline void worker_model_free(const struct worker_model *kind, void *model) {
    kind->release(model);
    free(model);
}

/** @param model receives the struct, filled; untouched on failure */
static inline enum status worker_model_create(const struct worker_model *kind, const void *call,
                                              void **model, struct error *error) {
    void *made = calloc(1, kind->size);
    if (made == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the model");
    }
    enum status status = kind->fill(made, call, error);
    if (status != STATUS_OK) {
        worker_model_free(kind, made);
        return status;
    }
    *model = made;
    return STATUS_OK;
}

/** Llama2: a prompt in one call, then token by token; logits of the last one. */
struct llama2_logits_call {
    struct llama2_config config;
    uint64_t seed;         /**< of the weights */
    const int32_t *tokens; /**< arena, (count) */
    size_t prompt, count;  /**< tokens of the first call, and of all: at least one more */
    float *logits;         /**< arena, (V) */
};
enum status worker_llama2_logits(void *call, struct error *error);
#define WORKER_LLAMA2_LOGITS \
    { "llama2_logits", sizeof(struct llama2_logits_call), worker_llama2_logits }

/** Llama2: made once, fed token by token or more at a time, freed. */
struct llama2_create_call {
    struct llama2_config config;
    uint64_t seed;      /**< of the weights */
    size_t batch;       /**< most tokens of one call */
    const void *beside; /**< a model that was made before: one engine for both, and it is freed
                             last; NULL: an engine of its own */
    void *model;        /**< receives what the others are given */
};
struct llama2_forward_call {
    void *model;
    const int32_t *tokens; /**< arena, (count) */
    size_t count, position;
    float *logits; /**< arena, (V), of the last token */
};
enum status worker_llama2_create(void *call, struct error *error);
enum status worker_llama2_forward(void *call, struct error *error);
/** Takes a struct llama2_forward_call, of which it uses model only. */
enum status worker_llama2_free(void *call, struct error *error);
#define WORKER_LLAMA2                                                                    \
    {"llama2_create", sizeof(struct llama2_create_call), worker_llama2_create},          \
        {"llama2_forward", sizeof(struct llama2_forward_call), worker_llama2_forward}, { \
        "llama2_free", sizeof(struct llama2_forward_call), worker_llama2_free            \
    }

/** A lab's own operators, left out to time the rest of a model: they do nothing then. */
enum worker_operators {
    WORKER_ALL_OPERATORS = 0,
    WORKER_NO_MATMUL = 1,
    WORKER_NO_NORMS = 2,
    WORKER_NO_ATTENTION = 4
};

/** BERT: made once, run as often as wanted, freed. */
struct bert_create_call {
    struct bert_config config;
    uint64_t seed;     /**< of the weights */
    size_t rows;       /**< most of a batch */
    unsigned without;  /**< enum worker_operators, as bits */
    const void *given; /**< the weights in device memory, see given_weights.h; NULL: of the seed */
    void *model;       /**< receives what the others are given */
};
struct bert_run_call {
    void *model;
    struct bert_input input; /**< its arrays in the arena */
    float *logits;           /**< arena, (B, labels) */
};
enum status worker_bert_create(void *call, struct error *error);
enum status worker_bert_run(void *call, struct error *error);
/** Takes a struct bert_run_call, of which it uses model only. */
enum status worker_bert_free(void *call, struct error *error);
#define WORKER_BERT                                                       \
    {"bert_create", sizeof(struct bert_create_call), worker_bert_create}, \
        {"bert_run", sizeof(struct bert_run_call), worker_bert_run}, {    \
        "bert_free", sizeof(struct bert_run_call), worker_bert_free       \
    }

#ifdef __cplusplus
}
#endif

#endif
