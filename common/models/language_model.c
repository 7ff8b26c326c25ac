#include "common/models/language_model.h"

void language_model_free(struct language_model *model) {
    llama2_free(model->llama2);
    gpt_neox_free(model->gpt_neox);
    *model = (struct language_model){0};
}

enum status language_model_forward(const struct language_model *model, const int32_t *tokens,
                                   size_t count, size_t position, float *logits) {
    return model->gpt_neox != NULL
               ? gpt_neox_forward(model->gpt_neox, tokens, count, position, logits)
               : llama2_forward(model->llama2, tokens, count, position, logits);
}

size_t language_model_vocabulary(const struct language_model *model) {
    return model->gpt_neox != NULL ? gpt_neox_config(model->gpt_neox)->V
                                   : llama2_config(model->llama2)->V;
}

size_t language_model_context(const struct language_model *model) {
    return model->gpt_neox != NULL ? gpt_neox_config(model->gpt_neox)->T
                                   : llama2_config(model->llama2)->T;
}

bool language_model_draws(const struct language_model *model) {
    return model->gpt_neox != NULL ? gpt_neox_draws(model->gpt_neox)
                                   : model->llama2 != NULL && llama2_draws(model->llama2);
}

enum status language_model_begin(const struct language_model *model,
                                 const struct llama2_sampling *sampling) {
    return model->gpt_neox != NULL ? gpt_neox_begin(model->gpt_neox, sampling)
                                   : llama2_begin(model->llama2, sampling);
}

enum status language_model_next(const struct language_model *model, size_t position,
                                int32_t *token) {
    return model->gpt_neox != NULL ? gpt_neox_next(model->gpt_neox, position, token)
                                   : llama2_next(model->llama2, position, token);
}
