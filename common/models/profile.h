/**
 * @file profile.h
 * @brief An engine around an engine that times every operator: a flat profile.
 */
#ifndef WARPBOOK_COMMON_MODELS_PROFILE_H_
#define WARPBOOK_COMMON_MODELS_PROFILE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/status.h"
#include "common/models/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

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
    double seconds; /**< of the profile's clock; the engine is synchronised after each call */
};

/** Told of every operator when it is done: from @p start to @p end, in seconds of the clock. */
typedef void profile_observer(void *observer, enum profile_operator op, double start, double end);

/** Who looks inside operators while they are called; all NULL: nobody does. */
struct profile_recorder {
    void *context;
    /** Just before an entry of the inner engine is called; @p entry is its name: "matmul". */
    void (*begin)(void *context, enum profile_operator op, const char *entry);
    /**
     * Just after it.
     * @param status what the call returned; receives what the caller gets
     * @return true when the entry is to be called once more, from begin() on: it did nothing
     */
    bool (*end)(void *context, enum profile_operator op, enum status *status);
};

/** Times since the start or the last profile_reset(). */
struct profile {
    struct profile_entry entries[PROFILE_COUNT];
    double (*now)(void);       /**< the clock; NULL: wall time */
    profile_observer *observe; /**< NULL: nobody is told */
    void *observer;
    struct profile_recorder recorder;
};

/**
 * @brief Makes @p engine time what it passes on to @p inner.
 * @param inner   must outlive @p engine; not destroyed by it
 * @param profile is filled; must outlive @p engine. Wall time, nobody is told: who wants another
 *                clock or an observer sets them afterwards
 */
MUST_CHECK enum status engine_profile_create(struct engine *engine, const struct engine *inner,
                                             struct profile *profile);

/** Forgets the times; clock, observer and recorder stay. */
void profile_reset(struct profile *profile);

/** @return sum of the seconds of all operators. */
double profile_total(const struct profile *profile);

/** Prints operators by falling time: calls, ms, share of the total. */
void profile_print(const struct profile *profile, FILE *stream);

#ifdef __cplusplus
}
#endif

#endif
