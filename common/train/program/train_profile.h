/**
 * @file train_profile.h
 * @brief An engine that times every operator of another engine, to profile training.
 *
 * It waits after each operator, so a run is slower with it; its results stay the same.
 */
#ifndef WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_PROFILE_H_
#define WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_PROFILE_H_

#include <stddef.h>
#include <stdio.h>

#include "common/base/status.h"
#include "common/train/train_engine.h"

/** The operators that are timed. */
#define TRAIN_PROFILE_LIST(X)   \
    X(write)                    \
    X(read)                     \
    X(zero)                     \
    X(convert)                  \
    X(linear)                   \
    X(linear_backward)          \
    X(activation)               \
    X(activation_backward)      \
    X(activation_bias_backward) \
    X(silu_gate)                \
    X(silu_gate_backward)       \
    X(dropout)                  \
    X(dropout_bias_backward)    \
    X(layernorm)                \
    X(layernorm_backward)       \
    X(rmsnorm)                  \
    X(rmsnorm_backward)         \
    X(attention)                \
    X(attention_backward)       \
    X(rope)                     \
    X(embedding)                \
    X(embedding_backward)       \
    X(gather)                   \
    X(scatter)                  \
    X(cross_entropy)            \
    X(clip)                     \
    X(adamw)

enum train_operator {
#define TRAIN_PROFILE_ENUMERATOR(name) TRAIN_OPERATOR_##name,
    TRAIN_PROFILE_LIST(TRAIN_PROFILE_ENUMERATOR)
#undef TRAIN_PROFILE_ENUMERATOR
        TRAIN_OPERATORS
};

/** Totals of one operator. */
struct train_profile_row {
    size_t calls;
    double seconds;
    double flops; /**< of matrix products, else 0 */
};

struct train_profile {
    struct train_engine inner;
    /** The clock in seconds, after all work is done; NULL: this machine's. */
    double (*now)(void);
    double begun; /**< time at which the profile began */
    struct train_profile_row rows[TRAIN_OPERATORS];
};

/**
 * @brief Replaces an engine by one that times it.
 * @param profile must outlive the engine; owns the timed engine
 * @param engine  in: the engine to time; out: the engine that times it
 */
void train_profile_wrap(struct train_profile *profile, struct train_engine *engine,
                        double (*now)(void));

/**
 * @brief Writes a table: operator, calls, time, share, and TFLOP/s of matmuls; the last row is the
 *        time outside operators.
 * @param modelled times are modelled
 */
void train_profile_print(const struct train_profile *profile, bool modelled, FILE *stream);

#endif
