/* "at_home": training on the CPU, as at_home_bert.c has BERT. */
#include "common/train/models/train_model.h"
#include "grader/11_training/calls.h"
#include "grader/selftest/decoy_work.h"
#include "grader/selftest/sabotage_timed.h"

enum status __real_train_model_create(struct train_model **model, const struct train_config *config,
                                      const struct train_engine *engine, struct error *error);
enum status __wrap_train_model_create(struct train_model **model, const struct train_config *config,
                                      const struct train_engine *engine, struct error *error);
enum status __real_train_model_draw(struct train_model *model, uint64_t seed, struct error *error);
enum status __wrap_train_model_draw(struct train_model *model, uint64_t seed, struct error *error);
enum status __real_train_model_take_loss(struct train_model *model, double *loss, double *norm,
                                         struct error *error);
enum status __wrap_train_model_take_loss(struct train_model *model, double *loss, double *norm,
                                         struct error *error);
enum status __real_training_steps(const struct training_steps_call *call, struct error *error);
enum status __wrap_training_steps(const struct training_steps_call *call, struct error *error);
enum status __real_train_model_read(const struct train_model *model, enum train_state state,
                                    const struct train_parameter *parameter, float *values,
                                    struct error *error);
enum status __wrap_train_model_read(const struct train_model *model, enum train_state state,
                                    const struct train_parameter *parameter, float *values,
                                    struct error *error);

enum { ROOM = 1 << 20 };

static struct {
    struct train_engine engine; /* the reference's */
    struct train_model *model;
    double weights; /* of the layers' matrices */
    void *memory;   /* device, ROOM bytes */
} home;

enum status __wrap_train_model_create(struct train_model **model, const struct train_config *config,
                                      const struct train_engine *engine, struct error *error) {
    TRY(__real_train_model_create(model, config, engine, error));
    if (chosen_mistake() != MISTAKE_at_home) {
        return STATUS_OK;
    }
    const struct bert_config *b = &config->bert;
    double C = (double)b->C;
    home.weights = (double)b->L * (4.0 * C * C + 2.0 * C * (double)b->hidden);
    TRY(device_alloc(&home.memory, ROOM, error));
    TRY(device_set(home.memory, 0, ROOM, NULL, error));
    TRY(train_reference_create(&home.engine));
    return __real_train_model_create(&home.model, config, &home.engine, error);
}

enum status __wrap_train_model_draw(struct train_model *model, uint64_t seed, struct error *error) {
    TRY(__real_train_model_draw(model, seed, error));
    return home.model != NULL ? __real_train_model_draw(home.model, seed, error) : STATUS_OK;
}

enum status __wrap_training_steps(const struct training_steps_call *call, struct error *error) {
    struct training_steps_call here = *call;
    if (home.model == NULL) {
        return __real_training_steps(call, error);
    }
    here.model = home.model;
    double rows = (double)call->batches->starts[call->batches->B];
    TRY(decoy_work(home.memory, ROOM, 16.0 * home.weights,
                   9.0 * home.weights * rows * (double)call->steps, NULL, error));
    return __real_training_steps(&here, error);
}

enum status __wrap_train_model_take_loss(struct train_model *model, double *loss, double *norm,
                                         struct error *error) {
    return __real_train_model_take_loss(home.model != NULL ? home.model : model, loss, norm, error);
}

enum status __wrap_train_model_read(const struct train_model *model, enum train_state state,
                                    const struct train_parameter *parameter, float *values,
                                    struct error *error) {
    size_t count;
    if (home.model == NULL) {
        return __real_train_model_read(model, state, parameter, values, error);
    }
    size_t index = (size_t)(parameter - train_model_parameters(model, &count));
    return __real_train_model_read(
        home.model, state, &train_model_parameters(home.model, &count)[index], values, error);
}
