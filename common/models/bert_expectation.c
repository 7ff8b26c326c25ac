#include "common/models/bert_expectation.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/checkpoints/bert/bert_checkpoint.h"
#include "common/checkpoints/safetensors/safetensors.h"
#include "common/models/bert.h"
#include "common/testing/expectation.h"
#include "common/testing/testing.h"

static const char RECORDING[] = "common/models/expectations/bert.json";
static const double TOLERANCE = 1e-4;

/* ---- The checkpoint: the same values as in make_bert.py ---- */

static uint64_t fnv1a(const char *text) {
    uint64_t state = 0xcbf29ce484222325u;
    for (; *text != '\0'; text++) {
        state = (state ^ (unsigned char)*text) * 0x100000001b3u;
    }
    return state;
}

/* Value in [-1, 1), a multiple of 2^-23: splitmix64 of the name's hash and the index. */
static double uniform(uint64_t hash, size_t index) {
    uint64_t z = (uint64_t)(index + 1) * 0x9e3779b97f4a7c15u + hash;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z = z ^ (z >> 31);
    return (double)(z >> 40) * 0x1p-23 - 1.0;
}

/* Nearest BF16, ties to even. */
static uint16_t to_bf16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Nearest F16, ties to even, of a value well inside its range. */
static uint16_t to_f16(float value) {
    int exponent;
    frexp(value, &exponent);
    exponent = exponent - 1 > -14 ? exponent - 1 : -14; /* below 2^-14 numbers are subnormal */
    double steps = rint(ldexp(fabs((double)value), 10 - exponent)); /* leading bit included */
    return (uint16_t)((signbit(value) ? 0x8000 : 0) + (exponent + 14) * 1024 + (int)steps);
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text);
    return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

static void fill(const struct safetensors_tensor *tensor, void *data, double weight_scale) {
    bool norm =
        ends_with(tensor->name, "LayerNorm.weight") || ends_with(tensor->name, "LayerNorm.gamma");
    bool embedding = strstr(tensor->name, "embeddings") != NULL;
    double scale = tensor->rank == 1 ? 0.125 : embedding ? 0.25 : weight_scale;
    uint64_t hash = fnv1a(tensor->name);
    for (size_t i = 0; i < tensor->count; i++) {
        float value = (float)((norm ? 1.0 : 0.0) + scale * uniform(hash, i));
        if (tensor->dtype == SAFETENSORS_F32) {
            ((float *)data)[i] = value;
        } else {
            ((uint16_t *)data)[i] =
                tensor->dtype == SAFETENSORS_F16 ? to_f16(value) : to_bf16(value);
        }
    }
}

static enum safetensors_dtype dtype_of(const cJSON *one) {
    const char *stored = recording_string(one, "stored");
    return strcmp(stored, "F16") == 0    ? SAFETENSORS_F16
           : strcmp(stored, "BF16") == 0 ? SAFETENSORS_BF16
                                         : SAFETENSORS_F32;
}

/* Makes a tensor from an entry [name, [sizes]] of the recording. @return false without memory */
static bool make_tensor(struct safetensors_tensor *tensor, const cJSON *one, const cJSON *entry) {
    tensor->name = cJSON_GetStringValue(cJSON_GetArrayItem(entry, 0));
    tensor->dtype = dtype_of(one);
    tensor->count = 1;
    const cJSON *size;
    cJSON_ArrayForEach(size, cJSON_GetArrayItem(entry, 1)) {
        tensor->shape[tensor->rank] = (size_t)size->valuedouble;
        tensor->count *= tensor->shape[tensor->rank++];
    }
    tensor->bytes = tensor->count * (tensor->dtype == SAFETENSORS_F32 ? 4 : 2);
    void *data = malloc(tensor->bytes);
    if (data != NULL) {
        fill(tensor, data, recording_number(one, "weight_scale"));
    }
    tensor->data = data;
    return data != NULL;
}

static bool write_weights(const char *path, const cJSON *one) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(one, "tensors");
    size_t count = (size_t)cJSON_GetArraySize(list);
    struct safetensors_tensor *tensors = calloc(count + 1, sizeof *tensors);
    bool good = tensors != NULL && count > 0;
    size_t made = 0;
    const cJSON *entry = cJSON_GetArrayItem(list, 0);
    for (; good && made < count; made++, entry = entry->next) {
        good = make_tensor(&tensors[made], one, entry);
    }
    struct error error = {0};
    unsigned char *data = NULL;
    size_t size = 0;
    good = good && safetensors_serialize(tensors, count, &data, &size, &error) == STATUS_OK;
    for (size_t i = 0; i < made; i++) {
        free((void *)tensors[i].data);
    }
    free(tensors);
    good = good && file_write(path, data, size, &error) == STATUS_OK;
    free(data);
    if (!good) {
        TEST_FAIL("cannot write %s: %s", path, error.message);
    }
    return good;
}

static bool write_config(const char *path, const cJSON *one) {
    char *text = cJSON_Print(cJSON_GetObjectItemCaseSensitive(one, "config"));
    struct error error = {0};
    bool good = text != NULL && file_write(path, text, strlen(text), &error) == STATUS_OK;
    cJSON_free(text);
    if (!good) {
        TEST_FAIL("cannot write %s: %s", path, error.message);
    }
    return good;
}

/* Writes, opens and deletes the checkpoint of a case. */
static bool open_checkpoint(struct bert_checkpoint *checkpoint, const cJSON *one) {
    char name[128], folder[1024], config[1100], weights[1100];
    snprintf(name, sizeof name, "bert_%s", recording_string(one, "name"));
    test_temporary_path(name, folder, sizeof folder);
    snprintf(config, sizeof config, "%s/config.json", folder);
    snprintf(weights, sizeof weights, "%s/model.safetensors", folder);
    mkdir(folder, 0777);
    struct error error = {0};
    bool good = write_config(config, one) && write_weights(weights, one);
    if (good && bert_checkpoint_open(checkpoint, folder, &error) != STATUS_OK) {
        TEST_FAIL("%s", error.message);
        good = false;
    }
    unlink(config);
    unlink(weights);
    rmdir(folder);
    return good;
}

/* ---- Running and comparing ---- */

/* Inputs and outputs of a case. */
struct batch {
    size_t B, T;
    int32_t *ids, *types;
    uint8_t *mask;
    float *hidden, *pooled, *logits;
};

static int32_t *integers(const cJSON *array) {
    int32_t *values = calloc((size_t)cJSON_GetArraySize(array) + 1, sizeof *values);
    size_t i = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, array) {
        values[i++] = (int32_t)item->valuedouble;
    }
    return values;
}

static void batch_create(struct batch *batch, const cJSON *one, const struct bert_config *c) {
    *batch = (struct batch){.B = (size_t)recording_number(one, "B"),
                            .T = (size_t)recording_number(one, "T")};
    size_t rows = batch->B * batch->T;
    batch->ids = integers(recording_member(one, "ids"));
    batch->types =
        recording_member(one, "types") != NULL ? integers(recording_member(one, "types")) : NULL;
    if (recording_member(one, "mask") != NULL) {
        int32_t *mask = integers(recording_member(one, "mask"));
        batch->mask = calloc(rows, 1);
        for (size_t i = 0; i < rows; i++) {
            batch->mask[i] = (uint8_t)mask[i];
        }
        free(mask);
    }
    batch->hidden = calloc(rows * c->C, sizeof(float));
    batch->pooled = calloc(batch->B * c->C, sizeof(float));
    batch->logits = calloc(batch->B * c->labels + 1, sizeof(float));
}

static void batch_free(struct batch *batch) {
    free(batch->ids);
    free(batch->types);
    free(batch->mask);
    free(batch->hidden);
    free(batch->pooled);
    free(batch->logits);
}

/* How far an output is from its recording. */
struct errors {
    double largest; /* largest difference / largest value */
    double norm;    /* norm of the differences / norm of the values */
    double whole;   /* difference of the norms of the whole output / norm */
};

static struct errors measure(const cJSON *recorded, const float *got, size_t count) {
    size_t stride = (size_t)recording_number(recorded, "stride");
    double difference = 0.0, largest = 0.0, differences = 0.0, squares = 0.0, all = 0.0;
    size_t i = 0;
    const cJSON *value;
    cJSON_ArrayForEach(value, cJSON_GetObjectItemCaseSensitive(recorded, "values")) {
        double want = value->valuedouble;
        double d = i < count ? fabs(got[i] - want) : NAN;
        difference = fmax(difference, d); /* ignores NaN, which shows in the sums */
        largest = fmax(largest, fabs(want));
        differences += d * d;
        squares += want * want;
        i += stride;
    }
    for (size_t j = 0; j < count; j++) {
        all += (double)got[j] * got[j];
    }
    double norm = recording_number(recorded, "norm");
    return (struct errors){.largest = difference / largest,
                           .norm = sqrt(differences / squares),
                           .whole = fabs(sqrt(all) - norm) / norm};
}

static void check_output(const cJSON *one, const char *key, const float *got, size_t count) {
    const cJSON *recorded = recording_member(one, key);
    if (recorded == NULL) {
        return;
    }
    EXPECT_INT_EQ(recording_number(recorded, "count"), count);
    struct errors e = measure(recorded, got, count);
    printf("%s, %s: largest difference %.2e, norm of the differences %.2e, norm %.2e (relative)\n",
           recording_string(one, "name"), key, e.largest, e.norm, e.whole);
    if (!(e.largest <= TOLERANCE && e.norm <= TOLERANCE && e.whole <= TOLERANCE)) {
        TEST_FAIL("%s, %s: largest difference %.3g, norm of the differences %.3g, norm %.3g "
                  "(relative), tolerance %.3g",
                  recording_string(one, "name"), key, e.largest, e.norm, e.whole, TOLERANCE);
    }
}

/* Runs the case; an output that the checkpoint does not have must be refused. */
static void run(struct bert *model, const struct bert_config *c, const cJSON *one) {
    struct batch batch;
    batch_create(&batch, one, c);
    const struct bert_input input = {
        .ids = batch.ids, .types = batch.types, .mask = batch.mask, .B = batch.B, .T = batch.T};
    bool pooled = recording_member(one, "pooled") != NULL;
    bool logits = recording_member(one, "logits") != NULL;
    const struct bert_output output = {.hidden = batch.hidden,
                                       .pooled = pooled ? batch.pooled : NULL,
                                       .logits = logits ? batch.logits : NULL};
    EXPECT_OK(bert_forward(model, &input, &output));
    check_output(one, "hidden", batch.hidden, batch.B * batch.T * c->C);
    check_output(one, "pooled", batch.pooled, batch.B * c->C);
    check_output(one, "logits", batch.logits, batch.B * c->labels);

    const struct bert_output only_pooled = {.pooled = batch.pooled};
    const struct bert_output only_logits = {.logits = batch.logits};
    EXPECT_STATUS(pooled ? STATUS_OK : STATUS_UNSUPPORTED,
                  bert_forward(model, &input, &only_pooled));
    EXPECT_STATUS(logits ? STATUS_OK : STATUS_UNSUPPORTED,
                  bert_forward(model, &input, &only_logits));
    batch_free(&batch);
}

static void check_case(const cJSON *one) {
    struct bert_checkpoint checkpoint = {0};
    if (!open_checkpoint(&checkpoint, one)) {
        return;
    }
    struct engine engine;
    struct bert *model = NULL;
    size_t rows = (size_t)(recording_number(one, "B") * recording_number(one, "T"));
    ASSERT_OK(engine_reference_create(&engine));
    EXPECT_OK(bert_create(&model, &checkpoint.config, &checkpoint.weights, &engine, rows, NULL));
    if (model != NULL) {
        run(model, &checkpoint.config, one);
    }
    bert_free(model);
    engine_destroy(&engine);
    bert_checkpoint_close(&checkpoint);
}

void bert_expectation_check(const char *name) {
    cJSON *root = expectation_load(RECORDING);
    const cJSON *one = root != NULL ? recording_case(root, RECORDING, name) : NULL;
    if (one != NULL) {
        check_case(one);
    }
    cJSON_Delete(root);
}
