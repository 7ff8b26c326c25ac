#include "common/checkpoints/llama2/llama2_weights.h"

const char *llama2_extra(const struct llama2_config *c) {
    if (c->rope.scaling != LLAMA2_ROPE_PLAIN) {
        return "scaled rotary embedding";
    }
    if (c->qkv_bias || c->out_bias || c->mlp_bias) {
        return "projections with bias";
    }
    if (c->recent > 0) {
        return "a cache of sinks and recent tokens";
    }
    return c->window > 0 ? "a sliding window" : NULL;
}
