/* config.json: rotary embedding and how its frequencies are scaled. */
#include "common/checkpoints/llama2/llama2_rope_config.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "common/base/json_object.h"

static const double LARGEST = 1e30;

/* The object with the scaling's keys, and its name for messages. */
struct scaling {
    const cJSON *object;
    const char *key;
    struct error *error;
};

/* Reads a number in [least, LARGEST]. @param fallback used if the key is absent; NAN: required */
static enum status read_number(const struct scaling *s, const char *key, double least,
                               double fallback, double *out) {
    const cJSON *item = json_member(s->object, key);
    *out = cJSON_IsNumber(item) ? item->valuedouble : fallback;
    if ((item == NULL || cJSON_IsNumber(item)) && *out >= least && *out <= LARGEST) {
        return STATUS_OK;
    }
    return error_set(s->error, STATUS_BAD_FORMAT, "\"%s\": \"%s\" is %s a number from %g to %g",
                     s->key, key, item == NULL ? "missing; it must be" : "not", least, LARGEST);
}

/* The length that positions are scaled from; many files have it outside of the object. */
static enum status read_original(const struct scaling *s, const cJSON *json, double context,
                                 double *out) {
    double outside = context;
    const cJSON *item = json_member(json, "original_max_position_embeddings");
    if (cJSON_IsNumber(item)) {
        outside = item->valuedouble;
    }
    return read_number(s, "original_max_position_embeddings", 1.0, outside, out);
}

static enum status read_llama3(struct llama2_rope *rope, const struct scaling *s) {
    TRY(read_number(s, "low_freq_factor", 1e-6, NAN, &rope->slow));
    TRY(read_number(s, "high_freq_factor", 1e-6, NAN, &rope->fast));
    if (rope->fast <= rope->slow) {
        return error_set(
            s->error, STATUS_BAD_FORMAT,
            "\"%s\": \"high_freq_factor\" is %g, must be above \"low_freq_factor\", %g", s->key,
            rope->fast, rope->slow);
    }
    return STATUS_OK;
}

/* Peng et al.'s factor of cosine and sine for a context `factor` times as long. */
static double magnitude(double factor, double scale) {
    return factor <= 1.0 ? 1.0 : 0.1 * scale * log(factor) + 1.0;
}

/* Queries and keys both get the factor, so that q.k gets its square. */
static enum status read_attention_factor(struct llama2_rope *rope, const struct scaling *s) {
    double numerator, denominator, factor;
    TRY(read_number(s, "mscale", 0.0, 0.0, &numerator));
    TRY(read_number(s, "mscale_all_dim", 0.0, 0.0, &denominator));
    bool both = numerator != 0.0 && denominator != 0.0;
    double usual = both ? magnitude(rope->factor, numerator) / magnitude(rope->factor, denominator)
                        : magnitude(rope->factor, 1.0);
    TRY(read_number(s, "attention_factor", 1e-6, usual, &factor));
    rope->attention_scale = (float)(factor * factor);
    return isfinite(rope->attention_scale)
               ? STATUS_OK
               : error_set(s->error, STATUS_BAD_FORMAT,
                           "\"%s\": \"attention_factor\" is %g, too much", s->key, factor);
}

static enum status read_yarn(struct llama2_rope *rope, const struct scaling *s) {
    const cJSON *truncate = json_member(s->object, "truncate");
    if (truncate != NULL && !cJSON_IsBool(truncate)) {
        return error_set(s->error, STATUS_BAD_FORMAT,
                         "\"%s\": \"truncate\" is neither true nor false", s->key);
    }
    rope->truncate = !cJSON_IsFalse(truncate);
    TRY(read_number(s, "beta_slow", 1e-6, 1.0, &rope->slow));
    TRY(read_number(s, "beta_fast", 1e-6, 32.0, &rope->fast));
    return read_attention_factor(rope, s);
}

static enum status find_type(enum llama2_rope_scaling *scaling, const struct scaling *s) {
    static const char *const types[] = {[LLAMA2_ROPE_PLAIN] = "default",
                                        [LLAMA2_ROPE_LINEAR] = "linear",
                                        [LLAMA2_ROPE_LLAMA3] = "llama3",
                                        [LLAMA2_ROPE_YARN] = "yarn"};
    const cJSON *item = json_member(s->object, "rope_type");
    item = item != NULL ? item : json_member(s->object, "type"); /* older files */
    const char *name = cJSON_GetStringValue(item);
    if (item == NULL && json_member(s->object, "rope_theta") != NULL) {
        name = "default"; /* rope_parameters may hold theta alone */
    }
    name = name != NULL ? name : "";
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(name, types[i]) == 0) {
            *scaling = (enum llama2_rope_scaling)i;
            return STATUS_OK;
        }
    }
    return error_set(s->error, STATUS_UNSUPPORTED,
                     "\"%s\" is of type \"%.*s\"; supported are \"default\", \"linear\", "
                     "\"llama3\" and \"yarn\"",
                     s->key, json_shown(name), name);
}

static enum status read_scaling(struct llama2_config *c, const struct scaling *s,
                                const cJSON *json) {
    struct llama2_rope *rope = &c->rope;
    if (s->object == NULL) {
        return STATUS_OK;
    }
    TRY(find_type(&rope->scaling, s));
    if (rope->scaling == LLAMA2_ROPE_PLAIN) {
        return STATUS_OK;
    }
    TRY(read_number(s, "factor", 1.0, NAN, &rope->factor));
    TRY(read_original(s, json, (double)c->T, &rope->original));
    if (rope->scaling == LLAMA2_ROPE_YARN) {
        return read_yarn(rope, s);
    }
    return rope->scaling == LLAMA2_ROPE_LLAMA3 ? read_llama3(rope, s) : STATUS_OK;
}

/* Newer files have theta beside the scaling's keys. Above 1: YaRN divides by its logarithm. */
static enum status read_theta(float *theta, const cJSON *parameters, const cJSON *json,
                              struct error *error) {
    const cJSON *item = json_member(parameters, "rope_theta");
    item = item != NULL ? item : json_member(json, "rope_theta");
    *theta = 10000.0f;
    if (item == NULL) {
        return STATUS_OK;
    }
    if (!cJSON_IsNumber(item) || !(item->valuedouble > 1.0 && item->valuedouble <= LARGEST)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "\"rope_theta\" is not a number above 1 and up to 1e30");
    }
    *theta = (float)item->valuedouble;
    return STATUS_OK;
}

static enum status check_partial(const cJSON *json, struct error *error) {
    const cJSON *item = json_member(json, "partial_rotary_factor");
    if (item == NULL || (cJSON_IsNumber(item) && item->valuedouble == 1.0)) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_UNSUPPORTED,
                     "\"partial_rotary_factor\" is not 1: rotary embedding of only a part of each "
                     "head is not supported");
}

enum status llama2_rope_read(struct llama2_config *c, const cJSON *json, struct error *error) {
    const cJSON *parameters = json_member(json, "rope_parameters"); /* since transformers 5 */
    const struct scaling old = {json_member(json, "rope_scaling"), "rope_scaling", error};
    const struct scaling new = {parameters, "rope_parameters", error};
    c->rope_layout = NN_ROPE_HALVES;
    TRY(check_partial(json, error));
    TRY(check_partial(parameters, error));
    TRY(read_theta(&c->rope_theta, parameters, json, error));
    return read_scaling(c, parameters != NULL ? &new : &old, json);
}
