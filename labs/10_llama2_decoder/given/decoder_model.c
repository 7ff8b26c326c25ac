#include "labs/10_llama2_decoder/given/decoder_model.h"

static struct decoder_layer layer_of(const struct llama2_device_layer *w) {
    return (struct decoder_layer){.attention_norm = w->attention_norm,
                                  .qkv = w->qkv,
                                  .out = w->out,
                                  .ffn_norm = w->ffn_norm,
                                  .gate_up = w->gate_up,
                                  .down = w->down};
}

struct decoder_model decoder_sizes_of(const struct llama2_config *config, enum nn_dtype dtype) {
    return (struct decoder_model){.C = config->C,
                                  .hidden = config->hidden,
                                  .L = config->L,
                                  .NH = config->NH,
                                  .KVH = config->KVH,
                                  .HS = config->HS,
                                  .V = config->V,
                                  .T = config->T,
                                  .eps = config->norm_eps,
                                  .theta = config->rope_theta,
                                  .layout = config->rope_layout,
                                  .dtype = dtype};
}

struct decoder_model decoder_model_of(const struct llama2_config *config,
                                      const struct llama2_device *weights,
                                      struct decoder_layer *layers) {
    struct decoder_model model = decoder_sizes_of(config, weights->dtype);
    for (size_t l = 0; l < config->L; l++) {
        layers[l] = layer_of(&weights->layers[l]);
    }
    model.embedding = weights->embedding;
    model.layers = layers;
    model.final_norm = weights->final_norm;
    model.classifier = weights->classifier;
    return model;
}
