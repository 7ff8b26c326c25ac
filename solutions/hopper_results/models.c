/* Labs 08, 10 and 11: a 16-bit encoder, 16-bit decoders, and the gradients in bf16. */
#include <stdlib.h>

#include "labs/08_bert_classifier/given/encoder16.h"
#include "labs/08_bert_classifier/problem/case.h"
#include "labs/10_llama2_decoder/problem/case.h"
#include "labs/11_training/problem/adamw.h"
#include "labs/11_training/problem/attention.h"
#include "labs/11_training/problem/norm.h"
#include "solutions/10_llama2_decoder/steps/ladder.h"
#include "solutions/hopper_results/results.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Exponentials, reciprocal square roots and sines are approximate; what they change goes through
   all layers. fp32 results, in roundings of the model's type. */
static const double MODEL = 2.0, GRADIENT = 1.0;

/* fp32 results of a model of another type: the bound counts that type's roundings. */
static double bound_of(enum nn_dtype model, double roundings) {
    return roundings * nn_dtype_rounding(model) / nn_dtype_rounding(NN_F32);
}

/* ---- Lab 08 ---- */

static enum status take_encoder(struct results *results, const struct encoder_net *net,
                                enum nn_dtype dtype, struct error *error) {
    static const int32_t lengths[] = {5, 40, 13, 1};
    const struct encoder_spec spec = {lengths, COUNT(lengths), true, true};
    struct encoder16 *encoder = NULL;
    struct encoder_case c = {0};
    struct rng rng = rng_create(3);
    char name[RESULTS_NAME];
    snprintf(name, sizeof name, "08 encoder %s C=%zu hidden=%zu L=%zu", nn_dtype_name(dtype),
             net->model.C, net->model.hidden, net->model.L);
    enum status status = encoder_case_create(&c, net, &spec, &rng, false, true, error);
    if (status == STATUS_OK) {
        status = encoder16_create(&encoder, &net->model, dtype, 64, NULL, error);
    }
    if (status == STATUS_OK) {
        status = encoder16_run(encoder, &c.batch, error);
    }
    if (status == STATUS_OK) {
        status = device_synchronize(NULL, error);
    }
    if (status == STATUS_OK) {
        status = results_take_device(results, name, NN_F32, c.batch.hidden,
                                     c.batch.rows * net->model.C, bound_of(dtype, MODEL), error);
    }
    encoder16_free(encoder);
    encoder_case_free(&c);
    return status;
}

enum status results_of_encoder(struct results *results, struct error *error) {
    const struct bert_config config = {.C = 128,
                                       .hidden = 256,
                                       .L = 2,
                                       .NH = 2,
                                       .V = 53,
                                       .T = 40,
                                       .types = 2,
                                       .labels = 2,
                                       .norm_eps = 1e-12f,
                                       .activation = NN_GELU};
    struct encoder_net net = {0};
    if (!results_want(results, "08 ")) {
        return STATUS_OK;
    }
    enum status status = encoder_net_create(&net, &config, 5, 0, error);
    for (int dtype = NN_F16; dtype <= NN_BF16 && status == STATUS_OK; dtype++) {
        status = take_encoder(results, &net, (enum nn_dtype)dtype, error);
    }
    encoder_net_free(&net);
    return status;
}

/* ---- Lab 10 ---- */

/* Logits behind a prompt, and behind a greedy step. */
static enum status take_decoder(struct results *results, const struct decoder_net *net,
                                const struct decoder_version *v, struct error *error) {
    enum { PROMPT = 19, BATCH = 24 };
    const struct decoder_functions functions = {decoder_create, v->prefill, v->step, decoder_free};
    const struct sampling greedy = {.state = 1};
    const enum nn_dtype dtype = net->size.dtype;
    char name[RESULTS_NAME], text[500] = "";
    struct rng rng = rng_create(7);
    struct decoder_case c;
    enum status status = decoder_case_create(&c, net, &functions, BATCH, &rng, NULL, false, error);
    if (status == STATUS_OK) {
        status = decoder_case_feed(&c, PROMPT, 0, text, sizeof text, error);
    }
    for (int step = 0; step < 2 && status == STATUS_OK; step++) {
        snprintf(name, sizeof name, "10 %s %s C=%zu NH=%zu KVH=%zu %s", v->name,
                 nn_dtype_name(dtype), net->size.NH * net->size.HS, net->size.NH, net->size.KVH,
                 step == 0 ? "prompt" : "step");
        status = results_take_device(results, name, NN_F32, c.logits.data, net->size.V,
                                     bound_of(dtype, MODEL), error);
        if (status == STATUS_OK && step == 0) {
            status = decoder_case_step(&c, &greedy, NULL, text, sizeof text, error);
        }
    }
    decoder_case_free(&c);
    return status;
}

enum status results_of_decoder(struct results *results, struct error *error) {
    static const struct decoder_size sizes[] = {
        {4, 2, 32, 176, 2, 61, 48, NN_BF16, NN_ROPE_INTERLEAVED, false},
        {4, 4, 16, 96, 2, 100, 48, NN_F16, NN_ROPE_HALVES, true},
    };
    size_t versions;
    const struct decoder_version *v = decoder_ladder(&versions);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < COUNT(sizes) && results_want(results, "10 "); i++) {
        struct decoder_net net;
        status = decoder_net_create(&net, &sizes[i], 7 + i, true, error);
        for (size_t k = 5; k < versions && status == STATUS_OK; k++) {
            status = take_decoder(results, &net, &v[k], error);
        }
        decoder_net_free(&net);
        TRY(status);
    }
    return STATUS_OK;
}

/* ---- Lab 11 ---- */

static enum status take_outputs(struct results *results, const char *name,
                                const struct tensor_outputs *outputs, double bound,
                                struct error *error) {
    for (size_t n = 0; n < outputs->count; n++) {
        const struct tensor *t = outputs->tensors[n];
        char text[RESULTS_NAME];
        snprintf(text, sizeof text, "11 %s, output %zu", name, n);
        TRY(results_take_device(results, text, t->dtype, t->buffer.data, t->count, bound, error));
    }
    return STATUS_OK;
}

static enum status take_attention(struct results *results, const struct training_step *step,
                                  const struct attention_gradient_spec *spec, struct error *error) {
    struct attention_gradient_case c = {0};
    struct rng rng = rng_create(spec->HS);
    char name[RESULTS_NAME];
    enum status status = attention_gradient_create(&c, spec, &rng, false, error);
    const struct attention_backward_problem problem = attention_gradient_problem(&c);
    const struct tensor_outputs outputs = attention_gradient_outputs(&c);
    snprintf(name, sizeof name, "attention %s HS=%zu longest=%zu%s", step->name, spec->HS,
             c.longest, spec->causal ? " causal" : "");
    if (status == STATUS_OK) {
        status = attention_gradient_send(&c, error);
    }
    if (status == STATUS_OK) {
        status = step->functions.attention_backward(&problem, c.scratch, NULL, error);
    }
    if (status == STATUS_OK) {
        status = device_synchronize(NULL, error);
    }
    if (status == STATUS_OK) {
        status = take_outputs(results, name, &outputs, GRADIENT, error);
    }
    attention_gradient_free(&c);
    return status;
}

static enum status take_norm(struct results *results, const struct training_step *step,
                             const struct norm_spec *spec, struct error *error) {
    struct norm_case c = {0};
    struct rng rng = rng_create(spec->C);
    char name[RESULTS_NAME];
    void *workspace = NULL;
    enum status status = norm_case_create(&c, spec, false, error);
    const struct layernorm_backward_problem problem = norm_case_problem(&c);
    const struct tensor_outputs outputs = norm_case_outputs(&c);
    snprintf(name, sizeof name, "layernorm %s %zux%zu", step->name, spec->rows, spec->C);
    if (status == STATUS_OK) {
        status = device_alloc(&workspace, TRAINING_WORKSPACE_BYTES, error);
    }
    if (status == STATUS_OK) {
        status = norm_case_draw(&c, &rng, error);
    }
    if (status == STATUS_OK) {
        status = step->functions.layernorm_backward(&problem, workspace, NULL, error);
    }
    if (status == STATUS_OK) {
        status = device_synchronize(NULL, error);
    }
    if (status == STATUS_OK) {
        status = take_outputs(results, name, &outputs, 0.0, error);
    }
    device_free(workspace);
    norm_case_free(&c);
    return status;
}

static enum status take_adamw(struct results *results, const struct training_step *step,
                              struct error *error) {
    const struct adamw_spec spec = adamw_spec_usual(1000, 700);
    struct adamw_case c = {0};
    struct rng rng = rng_create(2);
    enum status status = adamw_case_create(&c, &spec, false, error);
    const struct adamw_problem problem = adamw_case_problem(&c);
    const struct tensor_outputs outputs = adamw_case_outputs(&c);
    if (status == STATUS_OK) {
        status = adamw_case_draw(&c, &rng, error);
    }
    if (status == STATUS_OK) {
        status = step->functions.adamw(&problem, NULL, error);
    }
    if (status == STATUS_OK) {
        status = device_synchronize(NULL, error);
    }
    if (status == STATUS_OK) {
        status = take_outputs(results, "adamw", &outputs, 0.0, error);
    }
    adamw_case_free(&c);
    return status;
}

enum status results_of_training(struct results *results, struct error *error) {
    enum { V2 = 1, V4 = 3, V5 = 4 };
    static const struct attention_gradient_spec attentions[] = {
        {.NH = 2, .KVH = 2, .HS = 64, .B = 2, .lengths = {65, 20}},
        {.NH = 2, .KVH = 1, .HS = 128, .B = 1, .lengths = {70}, .causal = true},
    };
    size_t count;
    const struct training_step *steps = training_ladder(&count);
    if (!results_want(results, "11 ")) {
        return STATUS_OK;
    }
    for (size_t n = 0; n < COUNT(attentions); n++) {
        struct attention_gradient_spec spec = attentions[n];
        spec.dtype = NN_BF16;
        spec.loudness = 1.0;
        TRY(take_attention(results, &steps[V4], &spec, error));
        TRY(take_attention(results, &steps[V5], &spec, error));
    }
    const struct norm_spec norm = {.dtype = NN_BF16, .rows = 9, .C = 264};
    TRY(take_norm(results, &steps[V2], &norm, error));
    return take_adamw(results, &steps[count - 1], error);
}
