/**
 * @file special.c
 * @brief ex2 lg2 sin cos tanh rsqrt of fp32, with .approx and .ftz.
 */
#include "common/simt/alu/approximate.h"
#include "common/simt/alu/float_ops.h"

#define DEFINE_PLAIN(NAME)                                  \
    ROW_HANDLER(NAME##_row) {                               \
        ROW_SOURCE(a, 0);                                   \
        union simt_row value;                               \
        approximate_##NAME(a->f32, value.f32);              \
        row_commit32(warp, instruction->dst[0], value.u32); \
    }
#define DEFINE_FLUSHED(NAME)                                \
    ROW_HANDLER(NAME##_row_ftz) {                           \
        ROW_SOURCE(a, 0);                                   \
        union simt_row value;                               \
        ROW_EACH_LANE(i) {                                  \
            value.f32[i] = float_flush(a->f32[i]);          \
        }                                                   \
        approximate_##NAME(value.f32, value.f32);           \
        ROW_EACH_LANE(i) {                                  \
            value.f32[i] = float_flush(value.f32[i]);       \
        }                                                   \
        row_commit32(warp, instruction->dst[0], value.u32); \
    }

#define DEFINE_SPECIAL(NAME) DEFINE_PLAIN(NAME) DEFINE_FLUSHED(NAME)

DEFINE_SPECIAL(ex2)
DEFINE_SPECIAL(lg2)
DEFINE_SPECIAL(sin)
DEFINE_SPECIAL(cos)
DEFINE_PLAIN(tanh)
DEFINE_SPECIAL(rsqrt)

#define ENTRIES(NAME)                           \
    {#NAME ".approx.f32", NAME##_row}, {        \
#NAME ".approx.ftz.f32", NAME##_row_ftz \
    }

static const struct alu_entry entries[] = {
    ENTRIES(ex2),   ENTRIES(lg2), ENTRIES(sin), ENTRIES(cos), {"tanh.approx.f32", tanh_row},
    ENTRIES(rsqrt),
};

bool alu_decode_special(const struct simt_decoding *decoding,
                        struct simt_instruction *instruction) {
    if (!alu_decode_entry(entries, COUNT(entries), SIMT_CLASS_SPECIAL, decoding, instruction)) {
        return false;
    }
    instruction->flops = 1;
    return true;
}
