/* "at_home": Llama2 on the CPU, as at_home_bert.c has BERT. */
#include "common/models/llama2.h"
#include "common/models/rounded_llama2.h"
#include "grader/selftest/decoy_work.h"
#include "grader/selftest/sabotage_timed.h"

enum status __real_llama2_create_stored(struct llama2 **model, const struct llama2_config *config,
                                        const struct llama2_stored_weights *weights,
                                        enum nn_dtype dtype, const struct engine *engine,
                                        size_t batch, struct error *error);
enum status __wrap_llama2_create_stored(struct llama2 **model, const struct llama2_config *config,
                                        const struct llama2_stored_weights *weights,
                                        enum nn_dtype dtype, const struct engine *engine,
                                        size_t batch, struct error *error);
enum status __real_rounded_llama2_create(struct rounded_llama2 *model,
                                         const struct llama2_config *config, enum nn_dtype dtype,
                                         bool own_classifier, uint64_t seed);
enum status __wrap_rounded_llama2_create(struct rounded_llama2 *model,
                                         const struct llama2_config *config, enum nn_dtype dtype,
                                         bool own_classifier, uint64_t seed);
enum status __real_llama2_forward(struct llama2 *model, const int32_t *tokens, size_t count,
                                  size_t position, float *logits);
enum status __wrap_llama2_forward(struct llama2 *model, const int32_t *tokens, size_t count,
                                  size_t position, float *logits);

enum { ROOM = 1 << 20 };

static struct {
    const struct rounded_llama2 *found;
    struct engine engine; /* the reference's */
    struct llama2 *llama2;
    double weights; /* of all matrices */
    void *memory;   /* device, ROOM bytes */
} home;

enum status __wrap_rounded_llama2_create(struct rounded_llama2 *model,
                                         const struct llama2_config *config, enum nn_dtype dtype,
                                         bool own_classifier, uint64_t seed) {
    home.found = model;
    return __real_rounded_llama2_create(model, config, dtype, own_classifier, seed);
}

enum status __wrap_llama2_create_stored(struct llama2 **model, const struct llama2_config *c,
                                        const struct llama2_stored_weights *weights,
                                        enum nn_dtype dtype, const struct engine *engine,
                                        size_t batch, struct error *error) {
    TRY(__real_llama2_create_stored(model, c, weights, dtype, engine, batch, error));
    if (chosen_mistake() != MISTAKE_at_home) {
        return STATUS_OK;
    }
    double heads = (double)((2 * c->NH + 2 * c->KVH) * c->HS), C = (double)c->C;
    home.weights = (double)c->L * C * (heads + 3.0 * (double)c->hidden) + (double)c->V * C;
    TRY(device_alloc(&home.memory, ROOM, error));
    TRY(device_set(home.memory, 0, ROOM, NULL, error));
    TRY(engine_reference_create(&home.engine));
    return llama2_create(&home.llama2, c, &home.found->random.weights, &home.engine, batch, error);
}

enum status __wrap_llama2_forward(struct llama2 *model, const int32_t *tokens, size_t count,
                                  size_t position, float *logits) {
    if (home.llama2 == NULL) {
        return __real_llama2_forward(model, tokens, count, position, logits);
    }
    TRY(decoy_work(home.memory, ROOM, 2.2 * home.weights / (double)count, 1.1 * home.weights, NULL,
                   NULL));
    return __real_llama2_forward(home.llama2, tokens, count, position, logits);
}
