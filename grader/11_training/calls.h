/**
 * @file calls.h
 * @brief The calls that the grader of lab 11 makes to its workers.
 */
#ifndef WARPBOOK_GRADER_11_TRAINING_CALLS_H_
#define WARPBOOK_GRADER_11_TRAINING_CALLS_H_

#include "common/train/models/train_model.h"
#include "labs/11_training/training.h"

/** "layernorm_backward" */
struct layernorm_backward_call {
    struct layernorm_backward_problem problem;
    void *workspace;
    device_stream stream;
};

/** "attention_backward" */
struct attention_backward_call {
    struct attention_backward_problem problem; /**< host_starts in the arena */
    void *scratch;
    device_stream stream;
};

/** "adamw" */
struct adamw_call {
    struct adamw_problem problem;
    device_stream stream;
};

/** "training_create": a model with drawn parameters on the engine of the worker's functions. */
struct training_create_call {
    struct train_config config;
    enum nn_dtype dtype;
    uint64_t seed;     /**< of the parameters */
    const void *given; /**< device: all parameters, fp32, in their order; NULL: those of the seed */
    bool without_own;  /**< the lab's functions do nothing */
    void *model;       /**< receives what the others are given */
};

/** "training_steps": each a pass forward, a pass back and an update, on a batch of its own. */
struct training_steps_call {
    void *model;
    const struct train_batch *batches; /**< arena, (steps), as their arrays are */
    size_t steps;
    size_t labels; /**< of a batch: its loss is the mean over them */
    uint64_t seed; /**< of dropout */
    float rate;
    uint64_t first; /**< the first update's number, from 1 on */
};

/** Does them, one after the other, as worker and reference do. */
MUST_CHECK enum status training_steps(const struct training_steps_call *call, struct error *error);

/** "training_loss": the losses' sum since the last time, and the last gradient's norm. */
struct training_loss_call {
    void *model;
    double loss, norm; /**< receive */
};

/** "training_tensor": a tensor of the weights or of AdamW's first moments. */
struct training_tensor_call {
    void *model;
    enum train_state state;
    size_t index;  /**< in train_model_parameters() */
    size_t count;  /**< of its elements */
    float *values; /**< arena, (count) */
};

/** "training_copy": all weights, and the copy of 16 bits that matmuls read. */
struct training_copy_call {
    void *model;
    size_t count;   /**< that there is room for; receives how many they are */
    float *weights; /**< arena, (count) */
    uint16_t *copy; /**< arena, (count) */
};

#endif
