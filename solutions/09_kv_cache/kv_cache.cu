/**
 * @file kv_cache.cu
 * @brief Solution of lab 09: the last step of the ladder, and the ladder.
 */
#include "labs/09_kv_cache/kv_cache.h"

#include "solutions/09_kv_cache/steps/ladder.h"

enum status kv_linear(const struct kv_linear *linear, device_stream stream, struct error *error) {
    return kv_linear_v7_persistent(linear, stream, error);
}

enum status kv_attention(const struct kv_attention *attention, void *workspace,
                         device_stream stream, struct error *error) {
    return kv_attention_v7_persistent(attention, workspace, stream, error);
}

const struct kv_step *kv_ladder(size_t *count) {
    static const struct kv_step steps[] = {
        {"v1_cache", kv_linear_v1_cache, kv_attention_v1_cache},
        {"v2_warp_rows", kv_linear_v2_warp_rows, kv_attention_v2_warp_rows},
        {"v3_in_flight", kv_linear_v3_in_flight, kv_attention_v3_in_flight},
        {"v4_fused", kv_linear_v4_fused, kv_attention_v4_fused},
        {"v5_split", kv_linear_v4_fused, kv_attention_v5_split},
        {"v6_chained", kv_linear_v6_chained, kv_attention_v6_chained},
        {"v7_persistent", kv_linear_v7_persistent, kv_attention_v7_persistent},
    };
    *count = sizeof steps / sizeof *steps;
    return steps;
}
