/**
 * @file profile.h
 * @brief An engine that times every operator of another engine: a flat profile.
 */
#ifndef WARPBOOK_COMMON_MODELS_PROFILE_H_
#define WARPBOOK_COMMON_MODELS_PROFILE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/status.h"
#include "common/models/engine.h"

/** Operators in the order of struct engine; copies are write() and read(). */
enum profile_operator {
    PROFILE_MATMUL,
    PROFILE_BIAS_ADD,
    PROFILE_ACTIVATION,
    PROFILE_SILU_GATE,
    PROFILE_RESIDUAL,
    PROFILE_LAYERNORM,
    PROFILE_RMSNORM,
    PROFILE_SOFTMAX,
    PROFILE_ROPE,
    PROFILE_ATTENTION,
    PROFILE_EMBEDDING,
    PROFILE_ROPE_TABLE,
    PROFILE_LINEAR,
    PROFILE_LINEAR_ACTIVATION,
    PROFILE_LINEAR_RESIDUAL_LAYERNORM,
    PROFILE_RESIDUAL_LAYERNORM,
    PROFILE_ATTENTION_PACKED,
    PROFILE_ENCODER,
    PROFILE_DECODER, /**< decoder_run() and decoder_next() */
    PROFILE_COPY,
    PROFILE_COUNT
};

/** @return "matmul", "bias_add", ... */
const char *profile_operator_name(enum profile_operator op);

struct profile_entry {
    uint64_t calls;
    double seconds; /**< by the profile's clock, until the engine has finished each call's work */
};

/** Called after every operator; it ran from @p start to @p end, in seconds of the clock. */
typedef void profile_observer(void *observer, enum profile_operator op, double start, double end);

/** Callbacks around each call of an operator, to record what it launches; all NULL: none. */
struct profile_recorder {
    void *context;
    /** Called just before an entry of the inner engine; @p entry is its name: "matmul". */
    void (*begin)(void *context, enum profile_operator op, const char *entry);
    /**
     * Called just after it.
     * @param status the call's status; receives the status that the caller gets
     * @return true when the call did no work: then begin() and the entry are called once more
     */
    bool (*end)(void *context, enum profile_operator op, enum status *status);
};

/** Times since the start or the last profile_reset(). */
struct profile {
    struct profile_entry entries[PROFILE_COUNT];
    double (*now)(void);       /**< the clock; NULL: wall time */
    profile_observer *observe; /**< NULL: no observer */
    void *observer;
    struct profile_recorder recorder;
};

/**
 * @brief Makes @p engine, which passes every call on to @p inner and times it.
 * @param inner   must outlive @p engine, which does not destroy it
 * @param profile receives the times; must outlive @p engine. It starts with wall time and without
 *                observer and recorder; set them afterwards
 */
MUST_CHECK enum status engine_profile_create(struct engine *engine, const struct engine *inner,
                                             struct profile *profile);

/** Resets the times; clock, observer and recorder stay. */
void profile_reset(struct profile *profile);

/** @return sum of the seconds of all operators. */
double profile_total(const struct profile *profile);

/** Prints calls, ms and share of the total of each operator, slowest first. */
void profile_print(const struct profile *profile, FILE *stream);

#endif
