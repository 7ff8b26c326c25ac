#include "common/models/llama2.h"
#include "grader/selftest/decoy_work.h"
#include "grader/selftest/sabotage_timed.h"
#include "labs/03_resident_weights/resident.h"

enum status __real_resident_call(struct resident *resident, resident_kernel *kernel,
                                 const void *arguments, const struct resident_operand *operands,
                                 size_t count, struct error *error);
enum status __wrap_resident_call(struct resident *resident, resident_kernel *kernel,
                                 const void *arguments, const struct resident_operand *operands,
                                 size_t count, struct error *error);
enum status __real_llama2_create(struct llama2 **model, const struct llama2_config *config,
                                 const struct llama2_weights *weights, const struct engine *engine,
                                 size_t batch, struct error *error);
enum status __wrap_llama2_create(struct llama2 **model, const struct llama2_config *config,
                                 const struct llama2_weights *weights, const struct engine *engine,
                                 size_t batch, struct error *error);
enum status __real_llama2_forward(struct llama2 *model, const int32_t *tokens, size_t count,
                                  size_t position, float *logits);
enum status __wrap_llama2_forward(struct llama2 *model, const int32_t *tokens, size_t count,
                                  size_t position, float *logits);

/*
 * "at_home" and "sends": the model on the CPU, which takes no modelled time, with weights that
 * resident_weights() gets, too. A kernel does what is counted, and as many bytes as logits have are
 * read from the device. "sends" brings the logits there when somebody looks for them.
 */
static struct {
    struct engine engine; /* the reference's */
    struct llama2 *llama2;
    double weights;      /* of all matrices */
    size_t bytes;        /* of logits */
    void *left;          /* device: where they would be */
    const float *logits; /* host: those of the last token */
} home;

enum status __wrap_llama2_create(struct llama2 **model, const struct llama2_config *c,
                                 const struct llama2_weights *weights, const struct engine *engine,
                                 size_t batch, struct error *error) {
    TRY(__real_llama2_create(model, c, weights, engine, batch, error));
    if (chosen_mistake() != MISTAKE_at_home && chosen_mistake() != MISTAKE_sends) {
        return STATUS_OK;
    }
    double heads = (double)((2 * c->NH + 2 * c->KVH) * c->HS), C = (double)c->C;
    home.weights = (double)c->L * C * (heads + 3.0 * (double)c->hidden) + (double)c->V * C;
    home.bytes = c->V * sizeof(float);
    TRY(device_alloc(&home.left, home.bytes, error));
    TRY(device_set(home.left, 0, home.bytes, NULL, error));
    TRY(engine_reference_create(&home.engine));
    return __real_llama2_create(&home.llama2, c, weights, &home.engine, batch, error);
}

enum status __wrap_llama2_forward(struct llama2 *model, const int32_t *tokens, size_t count,
                                  size_t position, float *logits) {
    if (home.llama2 == NULL) {
        return __real_llama2_forward(model, tokens, count, position, logits);
    }
    TRY(decoy_work(home.left, home.bytes, 2.2 * home.weights, 1.1 * home.weights, NULL, NULL));
    TRY(device_read(logits, home.left, home.bytes, NULL, NULL));
    home.logits = logits;
    return __real_llama2_forward(home.llama2, tokens, count, position, logits);
}

/* An operator comes again in each token, with the same operands. */
enum status __wrap_resident_call(struct resident *resident, resident_kernel *kernel,
                                 const void *arguments, const struct resident_operand *operands,
                                 size_t count, struct error *error) {
    if (home.llama2 != NULL) { /* the grader's kernel that reads logits */
        TRY(chosen_mistake() == MISTAKE_sends
                ? device_write(home.left, home.logits, home.bytes, NULL, error)
                : STATUS_OK);
        return kernel(arguments, &home.left, NULL, error);
    }
    if (sabotage_leaves_out(operands, sizeof *operands, NULL)) {
        return STATUS_OK;
    }
    return __real_resident_call(resident, kernel, arguments, operands, count, error);
}
