/**
 * @file parts.h
 * @brief What the files of lab 11's bench share.
 */
#ifndef WARPBOOK_LABS_11_TRAINING_BENCH_PARTS_H_
#define WARPBOOK_LABS_11_TRAINING_BENCH_PARTS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/bench/bench.h"
#include "common/bench/device/kernel_totals.h"
#include "common/bench/roofline.h"
#include "common/device/device.h"
#include "common/train/models/train_model.h"
#include "labs/11_training/training.h"

enum bench_op { BENCH_LAYERNORM, BENCH_ATTENTION, BENCH_ADAMW, BENCH_OPS };

/** LayerNorm: rows, C. Attention: B, NH, T, HS. AdamW: parameters. */
struct bench_shape {
    enum bench_op op;
    size_t sizes[4];
};

/** The command line, and the GPU. */
struct bench_setup {
    bool quick;
    bool all;                        /**< also steps that take long */
    int op, dtype;                   /**< -1: all */
    const struct bench_shape *shape; /**< NULL: the default list */
    const char *step;                /**< the only one to measure, or NULL */
    bool model;                      /**< training steps alone */
    int batch, length;               /**< of training steps: texts, tokens of each; 0: the usual */
    int kernels;                     /**< of training steps: how many are shown; 0: none */
    struct device_properties gpu;
    struct roofline roofs;
};

/**
 * A tensor of random values, on the device as stored and on the host as the oracle reads it. Of a
 * large one the host has the first `period` elements, and the device has them again and again.
 */
struct bench_tensor {
    enum nn_dtype dtype;
    size_t count, period;
    double *values; /**< host, (period), rounded to the dtype */
    void *device;
};

/** @param most of them are different; 0: all. @return STATUS_OUT_OF_MEMORY, or the device's */
MUST_CHECK enum status bench_tensor_create(struct bench_tensor *t, enum nn_dtype dtype,
                                           size_t count, size_t most, struct error *error);
/** Frees; a zero-initialised one is allowed. */
void bench_tensor_free(struct bench_tensor *t);
/** Draws normally distributed values, and puts them. */
MUST_CHECK enum status bench_tensor_draw(struct bench_tensor *t, struct rng *rng, double mean,
                                         double deviation, struct error *error);
/** Rounds the values, and writes them to the device. */
MUST_CHECK enum status bench_tensor_put(struct bench_tensor *t, struct error *error);
/** Sets every byte to 0xff: NaN in each type. */
MUST_CHECK enum status bench_tensor_poison(struct bench_tensor *t, struct error *error);

/**
 * @brief Compares elements of the device with what they ought to be.
 * @param want    host, (rows, columns): elements first + row * stride ..
 * @param error_of_largest what they may be off, as a share of the largest
 * @param wrong   receives what is wrong; stays when all is right
 */
MUST_CHECK enum status bench_tensor_check(const struct bench_tensor *t, const char *what,
                                          const double *want, size_t first, size_t rows,
                                          size_t columns, size_t stride, double error_of_largest,
                                          char *wrong, size_t size, struct error *error);

/** A problem of one of the functions, with its memory. */
struct bench_case;

/** How the bench deals with one of the three functions. */
struct bench_function {
    const char *name;    /**< "layernorm_backward" */
    const char *flag;    /**< "layernorm" */
    const char *example; /**< of a shape, "ROWS,C" */
    size_t sizes;        /**< how many a shape has */
    const char *unit;    /**< "GB/s", "TFLOP/s" */

    /** Makes values. @param functions of the step that is measured, to be changed later */
    enum status (*create)(struct bench_case *c, struct error *error);
    void (*destroy)(struct bench_case *c);
    /** Runs the first rows (texts, parameters) of the problem. */
    enum status (*run)(struct bench_case *c, size_t rows, device_stream stream,
                       struct error *error);
    /** Runs once, and compares. */
    enum status (*check)(struct bench_case *c, char *wrong, size_t size, struct error *error);
    /** "b16 h12 s512 d64" */
    void (*describe)(const struct bench_shape *shape, char *text, size_t size);
    double (*flops)(const struct bench_shape *shape);
    double (*bytes)(const struct bench_shape *shape, enum nn_dtype dtype); /**< least */
    /** Device memory of the problem. */
    double (*memory)(const struct bench_shape *shape, enum nn_dtype dtype);
    /** Whether two steps have different functions of this kind. */
    bool (*differ)(const struct training_functions *a, const struct training_functions *b);
};

enum { BENCH_TENSORS = 10 };

struct bench_case {
    struct bench_shape shape;
    enum nn_dtype dtype;
    const struct training_functions *functions; /**< what runs */
    struct bench_tensor tensors[BENCH_TENSORS]; /**< as the function's file says */
    void *scratch;
    int32_t *starts, *d_starts; /**< attention's: host and device, (B + 1) */
};

extern const struct bench_function bench_layernorm, bench_attention, bench_adamw;

/** @return how to deal with an op. */
const struct bench_function *bench_function_of(enum bench_op op);

/** @return STATUS_OUT_OF_MEMORY, or on simt STATUS_INVALID_ARGUMENT, with the sizes. */
MUST_CHECK enum status bench_check_shape(const struct bench_setup *setup,
                                         const struct bench_shape *shape, enum nn_dtype dtype,
                                         struct error *error);

/** @return STATUS_INVALID_ARGUMENT, naming what there is, when the ladder has no such step. */
MUST_CHECK enum status bench_check_step(const char *name, struct error *error);

/**
 * @brief Prints the table of all steps for every shape, and appends the records.
 * @return STATUS_MISMATCH when a step gives a wrong result, after the tables are complete
 */
MUST_CHECK enum status bench_ladder(const struct bench_setup *setup, struct error *error);

/** A model in training, with one batch. */
struct bench_trainer {
    struct train_engine engine;
    struct train_model *model;
    const struct train_batch *batch;
    device_stream stream; /**< of the engine */
};

/** @param config, batch of the model; the batch outlives the trainer */
MUST_CHECK enum status bench_trainer_create(struct bench_trainer *t,
                                            const struct train_config *config, enum nn_dtype dtype,
                                            const struct training_functions *functions,
                                            const struct train_batch *batch, struct error *error);
/** Frees; a zero-initialised one is allowed. */
void bench_trainer_free(struct bench_trainer *t);

/**
 * @brief Times training steps that follow each other without waiting, each between two events.
 * @param results receives the loss and the gradients' norm, the same in every step
 */
MUST_CHECK enum status bench_trainer_time(struct bench_trainer *t, const struct bench_setup *setup,
                                          struct bench_timing *timing, float results[2],
                                          struct error *error);

/**
 * @brief Counts kernels, copies and fills of a step, of which nothing is done. After this and the
 *        next, whose steps are recorded, no step may be timed.
 * @return STATUS_DEVICE when a function waits, so that its launches are not seen
 */
MUST_CHECK enum status bench_trainer_launches(struct bench_trainer *t, size_t *launches,
                                              struct error *error);

/**
 * @brief Does a step launch by launch, and adds up what each takes.
 * @return STATUS_UNSUPPORTED when a function waits
 */
MUST_CHECK enum status bench_trainer_kernels(struct bench_trainer *t, struct kernel_totals *totals,
                                             struct error *error);

/** Training steps of a whole model with each step's functions: prints, and appends the records. */
MUST_CHECK enum status bench_model(const struct bench_setup *setup, struct error *error);

#endif
