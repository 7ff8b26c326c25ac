/**
 * @file training.cu
 * @brief Solution of lab 11: the functions of the last step, and the ladder.
 */
#include "labs/11_training/training.h"

#include "solutions/11_training/steps/ladder.h"

const struct training_step *training_ladder(size_t *count) {
    static const struct training_step steps[] = {
        {"v1_plain", {starter_layernorm_backward, starter_attention_backward, starter_adamw}},
        {"v2_rows", {layernorm_backward_v2_rows, starter_attention_backward, starter_adamw}},
        {"v3_one_pass",
         {layernorm_backward_v2_rows, starter_attention_backward, adamw_v3_one_pass}},
        {"v4_flash", {layernorm_backward_v2_rows, attention_backward_v4_flash, adamw_v3_one_pass}},
        {"v5_tensor",
         {layernorm_backward_v2_rows, attention_backward_v5_tensor, adamw_v3_one_pass}},
        {"v6_hopper",
         {layernorm_backward_v2_rows, attention_backward_v6_hopper, adamw_v3_one_pass}},
        {"v7_five_products",
         {layernorm_backward_v2_rows, attention_backward_v7_five_products, adamw_v3_one_pass}},
    };
    *count = sizeof steps / sizeof *steps;
    return steps;
}

enum status layernorm_backward(const struct layernorm_backward_problem *problem, void *workspace,
                               device_stream stream, struct error *error) {
    return layernorm_backward_v2_rows(problem, workspace, stream, error);
}

enum status attention_backward(const struct attention_backward_problem *problem, void *scratch,
                               device_stream stream, struct error *error) {
    return attention_backward_v7_five_products(problem, scratch, stream, error);
}

enum status adamw(const struct adamw_problem *problem, device_stream stream, struct error *error) {
    return adamw_v3_one_pass(problem, stream, error);
}
