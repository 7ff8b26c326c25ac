#include "grader/11_training/calls.h"

enum status training_steps(const struct training_steps_call *call, struct error *error) {
    const float scale = 1.0f / (float)call->labels;
    for (size_t i = 0; i < call->steps; i++) {
        const struct train_update update = {.rate = call->rate,
                                            .beta1 = 0.9f,
                                            .beta2 = 0.999f,
                                            .eps = 1e-6f,
                                            .decay = 0.01f,
                                            .most_norm = 1.0f,
                                            .step = call->first + i};
        TRY(train_model_backward(call->model, &call->batches[i], scale, call->seed,
                                 (uint32_t)update.step, error));
        TRY(train_model_update(call->model, &update, error));
    }
    return STATUS_OK;
}
