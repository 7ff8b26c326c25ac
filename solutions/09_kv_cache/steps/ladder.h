/**
 * @file ladder.h
 * @brief The steps of solution 09: each is a kv_linear() and a kv_attention().
 */
#ifndef WARPBOOK_SOLUTIONS_09_KV_CACHE_STEPS_LADDER_H_
#define WARPBOOK_SOLUTIONS_09_KV_CACHE_STEPS_LADDER_H_

#include <stdbool.h>

#include "labs/09_kv_cache/kv_cache.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum status kv_linear_function(const struct kv_linear *linear, device_stream stream,
                                       struct error *error);
typedef enum status kv_attention_function(const struct kv_attention *attention, void *workspace,
                                          device_stream stream, struct error *error);

kv_linear_function kv_linear_v1_cache;
kv_linear_function kv_linear_v2_warp_rows;
kv_linear_function kv_linear_v3_in_flight;
kv_linear_function kv_linear_v4_fused;
kv_linear_function kv_linear_v6_chained;
kv_linear_function kv_linear_v7_persistent;

kv_attention_function kv_attention_v1_cache;
kv_attention_function kv_attention_v2_warp_rows;
kv_attention_function kv_attention_v3_in_flight;
kv_attention_function kv_attention_v4_fused;
kv_attention_function kv_attention_v5_split;
kv_attention_function kv_attention_v6_chained;
kv_attention_function kv_attention_v7_persistent;

struct kv_step {
    const char *name;
    kv_linear_function *linear;
    kv_attention_function *attention;
};

/** @return the steps in the order of the ladder, the best one last; @p count receives their number.
 */
const struct kv_step *kv_ladder(size_t *count);

/** Steps v1 to v3: rotates q in place, and stores k, rotated, and v in the cache. @param qkv
 * product */
MUST_CHECK enum status kv_rotate_and_store(const struct kv_attention *attention, float *qkv,
                                           device_stream stream, struct error *error);

/** The same, and v2's attention, which v3 uses, too. */
MUST_CHECK enum status kv_attend_heads(const struct kv_attention *attention, float *qkv,
                                       device_stream stream, struct error *error);

/** What a dependent launch waits for, and who may begin early behind it. */
enum kv_order {
    /** It loads weights, then waits for the kernel in front of it, then reads its input. */
    KV_WAITS,
    /** The same; and what is launched behind it begins only once it has waited. So whoever runs
       then finds everything complete that was launched before it, but not its own results. */
    KV_ORDERS,
    /**
     * A product that runs beside the kernels in front of it, back to one with KV_ORDERS, which must
     * not write what it touches: it reads its input without waiting. It is not done before they
     * are.
     */
    KV_BESIDE,
};

/** Options of the launches of v4 to v7. */
struct kv_launch {
    bool split;      /**< attention: split-KV */
    bool persistent; /**< products of few long rows: a persistent kernel with half of the registers
                      */
    bool dependent;  /**< programmatic dependent launch, where the GPU has it */
    enum kv_order order; /**< of a product that is launched so */
    bool activated;      /**< a product's results are activation(results) */
    enum nn_activation activation;
};

/** The product of v4 to v7; the caller has checked the arguments. */
MUST_CHECK enum status kv_product(const struct kv_linear *linear, const struct kv_launch *how,
                                  device_stream stream, struct error *error);

/** The attention of v4 to v7: two launches; checks its arguments. */
MUST_CHECK enum status kv_attend(const struct kv_attention *attention, void *workspace,
                                 const struct kv_launch *how, device_stream stream,
                                 struct error *error);

#ifdef __cplusplus
}
#endif

#endif
