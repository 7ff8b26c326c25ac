/**
 * @file endless_bench.h
 * @brief Shared by the files of lab 14's bench.
 */
#ifndef WARPBOOK_LABS_14_ENDLESS_TEXT_BENCH_ENDLESS_BENCH_H_
#define WARPBOOK_LABS_14_ENDLESS_TEXT_BENCH_ENDLESS_BENCH_H_

#include "common/bench/ladder/ladder_bench.h"
#include "labs/14_endless_text/given/decoder.h"

enum bench_op { BENCH_ATTENTION, BENCH_ADD_NORMS, BENCH_OPS };

/** The lab's own flags. */
struct endless_options {
    const char *op_text, *model_text;
    const char *from; /**< tokens: the first step that is shown; NULL: all */
    int op;           /**< enum bench_op; -1: both */
    int window;       /**< of the model's cache */
    bool tokens;      /**< --model: tokens alone */
};

enum { BENCH_SINKS = 4 };

/** A model with random weights on the device, of a published shape. */
struct large_model {
    struct endless_model model;
    struct endless_layer *layers;
    void **blocks; /**< device: the weights */
    size_t count;
    double token_bytes; /**< weights that a token reads */
    double cache_bytes; /**< keys and values that a token reads when the cache is full */
};

/** @return the shape with that name: "70m", "160m", "2.8b", "6.9b", "llama2-7b"; false: none */
bool large_model_shape(const char *name, struct endless_model *shape);

/** @return the same by number, NULL behind the last. */
const char *large_model_name(size_t i);

/** Makes the weights. @param shape its pointers are not looked at */
MUST_CHECK enum status large_model_create(struct large_model *m, const struct endless_model *shape,
                                          struct error *error);

/** Frees; a zero-initialised one is allowed. */
void large_model_free(struct large_model *m);

/** Time per token at several positions, step by step: prints and appends the records. */
MUST_CHECK enum status bench_tokens(const struct ladder_setup *setup, struct error *error);

#endif
