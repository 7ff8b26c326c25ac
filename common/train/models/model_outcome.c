#include "common/train/models/model_outcome.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"
#include "common/train/models/model_testing.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

void model_outcome_free(struct model_outcome *o) {
    free(o->gradient);
    free(o->weights);
}

static enum status step(struct train_model *model, const struct model_testing_batch *batch, int i,
                        bool whole, struct model_outcome *o, struct error *error) {
    const struct train_batch view = model_testing_view(batch);
    const struct train_update update = {.rate = 1e-3f,
                                        .beta1 = 0.9f,
                                        .beta2 = 0.999f,
                                        .eps = 1e-6f,
                                        .decay = 0.01f,
                                        .most_norm = 0.5f,
                                        .step = (uint64_t)i + 1};
    if (whole && i > 0) {
        TRY(train_model_step(model, &view, 0.25f, 3, (uint32_t)i, &update, error));
        return train_model_take_loss(model, &o->loss[i], &o->norm[i], error);
    }
    TRY(train_model_backward(model, &view, 0.25f, 3, (uint32_t)i, error));
    if (i == 0) {
        o->gradient = model_testing_read(model, TRAIN_GRADIENT, &o->count);
    }
    TRY(train_model_update(model, &update, error));
    return train_model_take_loss(model, &o->loss[i], &o->norm[i], error);
}

bool model_outcome_run(struct model_outcome *o, const struct train_engine *engine,
                       const struct train_config *config, bool whole) {
    static const size_t lengths[] = {9, 1, 4, 7, 9};
    struct train_model *model = NULL;
    struct error error = {0};
    *o = (struct model_outcome){.count = 0};
    enum status status = train_model_create(&model, config, engine, &error);
    bool good = status == STATUS_OK && model_testing_fill(model);
    for (int i = 0; i < MODEL_OUTCOME_STEPS && good; i++) {
        struct model_testing_batch batch;
        model_testing_draw(&batch, config->task, lengths, COUNT(lengths), (uint64_t)i + 1);
        status = step(model, &batch, i, whole, o, &error);
        good = status == STATUS_OK;
    }
    if (good) {
        o->weights = model_testing_read(model, TRAIN_WEIGHTS, &o->count);
        good = o->gradient != NULL && o->weights != NULL;
    }
    if (!good) {
        TEST_FAIL("%s: %s", engine->name, error_text(&error, status));
    }
    train_model_free(model);
    return good;
}

/* AdamW's first steps go by the gradient's sign: an element whose gradient is nearly 0 may go the
   other way, but most must agree. */
static void compare_weights(const struct model_outcome *want, const struct model_outcome *got,
                            const char *what) {
    size_t off = 0;
    for (size_t i = 0; i < want->count; i++) {
        off += !(fabs(got->weights[i] - want->weights[i]) <= 2e-4);
    }
    if (off > want->count / 20) {
        TEST_FAIL("%s: %zu of %zu weights are more than 2e-4 off", what, off, want->count);
    }
}

void model_outcome_compare(const struct model_outcome *want, const struct model_outcome *got,
                           struct model_outcome_allowed allowed, const char *what) {
    double distance = model_testing_distance(got->gradient, want->gradient, want->count);
    if (!(distance <= allowed.gradient)) {
        TEST_FAIL("%s: the gradient is %.3g of its norm off, more than %.3g", what, distance,
                  allowed.gradient);
    }
    for (int i = 0; i < MODEL_OUTCOME_STEPS; i++) {
        EXPECT_NEAR(want->loss[i], got->loss[i], allowed.loss * fabs(want->loss[i]));
        EXPECT_NEAR(want->norm[i], got->norm[i], allowed.gradient * want->norm[i]);
    }
    compare_weights(want, got, what);
}

void model_outcome_same(const struct model_outcome *first, const struct model_outcome *second,
                        const char *what) {
    size_t bytes = first->count * sizeof *first->weights;
    if (memcmp(first->gradient, second->gradient, bytes) != 0 ||
        memcmp(first->weights, second->weights, bytes) != 0 ||
        memcmp(first->loss, second->loss, sizeof first->loss) != 0) {
        TEST_FAIL("%s: other bits the second time", what);
    }
}
