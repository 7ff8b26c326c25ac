#include "grader/selftest/sabotage_timed.h"
#include "labs/07_attention/attention.h"

attention_function __real_attention, __wrap_attention;

enum status __wrap_attention(const struct attention_problem *problem, device_stream stream,
                             struct error *error) {
    struct attention_problem p = *problem;
    if (chosen_mistake() == MISTAKE_part_of_it && p.S > 64 && p.starts == NULL) {
        p.S = p.S / 2; /* half of the keys, where many are */
        return __real_attention(&p, stream, error);
    }
    if (sabotage_leaves_out(problem, sizeof *problem, stream)) {
        return STATUS_OK;
    }
    if (p.dtype == NN_F32 && p.starts == NULL) {
        p.q =
            sabotage_lesser(0, p.q, (p.B * p.T - 1) * p.q_stride + p.NH * p.HS, p.q_stride, stream);
        p.k = sabotage_lesser(1, p.k, (p.B * p.S - 1) * p.kv_stride + p.KVH * p.HS, p.kv_stride,
                              stream);
    } else if (p.dtype == NN_BF16 && p.starts == NULL) {
        const size_t keys = (p.B * p.S - 1) * p.kv_stride + p.KVH * p.HS;
        p.k = sabotage_lesser_16(1, p.k, keys, p.kv_stride, stream);
        p.v = sabotage_lesser_16(2, p.v, keys, p.kv_stride, stream);
    }
    return __real_attention(&p, stream, error);
}
