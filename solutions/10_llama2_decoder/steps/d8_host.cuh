/**
 * @file d8_host.cuh
 * @brief d8's host side that does not depend on how weights are stored: memory that its blocks
 * exchange values through, the kernel's arguments, its launch.
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_D8_HOST_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_D8_HOST_CUH_

#include <math.h>

#include "solutions/10_llama2_decoder/steps/d8_attention.cuh"
#include "solutions/10_llama2_decoder/steps/ladder.h"

/* Allocates d->one's mailboxes and tag, after its `blocks`. decoder_one_free() frees them. @param
   teams of queries, the fewest that there are at a position */
static inline enum status one_allocate_mailboxes(struct decoder *d, size_t teams,
                                                 struct error *error) {
    const struct decoder_model *m = d->model;
    struct decoder_one *one = &d->one;
    const size_t heads = m->NH * m->HS;
    size_t splits = one_splits((unsigned)m->T, (unsigned)teams, (unsigned)one->blocks);
    const size_t counts[ONE_MAILBOXES] = {heads + 2 * m->KVH * m->HS,
                                          m->NH * splits * one_partial_floats((unsigned)m->HS),
                                          m->C, heads, m->hidden};
    for (size_t i = 0; i < ONE_MAILBOXES; i++) {
        size_t bytes = (counts[i] + 1) * sizeof(uint64_t);
        TRY(device_alloc(&one->mailboxes[i], bytes, error));
        TRY(device_set(one->mailboxes[i], 0, bytes, d->stream, error));
    }
    const unsigned first_tag =
        ONE_TAGS; /* so the first flag differs from the zeros in the mailboxes */
    TRY(device_alloc((void **)&one->tag, sizeof *one->tag, error));
    return device_write(one->tag, &first_tag, sizeof first_tag, d->stream, error);
}

/* Copies the layers (L + 1) to the device. */
static inline enum status one_upload_layers(struct decoder *d, const struct one_layer *layers,
                                            struct error *error) {
    size_t bytes = (d->model->L + 1) * sizeof *layers;
    TRY(device_alloc(&d->one.layers, bytes, error));
    return device_write(d->one.layers, layers, bytes, d->stream, error);
}

/* Allows a kernel d->one.shared_bytes of shared memory. */
static inline enum status one_allow_shared_bytes(const struct decoder *d, const void *kernel,
                                                 struct error *error) {
    cudaError_t code = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int)d->one.shared_bytes);
    return code == cudaSuccess ? STATUS_OK
                               : error_set(error, STATUS_DEVICE, "decoder: one kernel: %s",
                                           cudaGetErrorString(code));
}

/* The kernel's arguments for the token at a position, all but those that depend on how weights and
 * keys are stored: input_floats, held_back, ahead, key_bytes, scales. */
static inline struct one_arguments one_common_arguments(const struct decoder *d, size_t position) {
    const struct decoder_model *m = d->model;
    struct one_arguments p = {};
    p.layers = (const struct one_layer *)d->one.layers;
    p.embedding = m->embedding, p.classifier = m->classifier, p.final_norm = m->final_norm;
    p.C = (unsigned)m->C, p.hidden = (unsigned)m->hidden, p.L = (unsigned)m->L;
    p.NH = (unsigned)m->NH, p.KVH = (unsigned)m->KVH, p.HS = (unsigned)m->HS;
    p.V = (unsigned)m->V, p.T = (unsigned)m->T;
    p.eps = m->eps;
    p.log2_theta = log2((double)m->theta);
    p.rope_halves = m->layout == NN_ROPE_HALVES;
    p.token = d->io.token;
    p.position = (int32_t)position;
    p.x = d->x;
    p.logits = d->io.logits;
    p.k = d->k, p.v = d->v;
    p.key_to_value = (const char *)d->v - (const char *)d->k;
    p.qkv.values = (uint64_t *)d->one.mailboxes[0];
    p.partial.values = (uint64_t *)d->one.mailboxes[1];
    p.residual.values = (unsigned *)d->one.mailboxes[2];
    p.heads.values = (unsigned *)d->one.mailboxes[3];
    p.gated.values = (unsigned *)d->one.mailboxes[4];
    p.tag = d->one.tag;
    return p;
}

/* Launches a kernel on d->one.blocks blocks, early where its code waits for the one before. */
static inline enum status one_launch(const struct decoder *d, const void *kernel, unsigned threads,
                                     const struct one_arguments *p, struct error *error) {
    void *arguments[] = {(void *)p};
    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributeCooperative;
    attributes[0].val.cooperative = 1;
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)d->one.blocks);
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = d->one.shared_bytes;
    config.stream = d->stream;
    config.attrs = attributes;
    config.numAttrs = dependent_code_waits(kernel) ? 2 : 1;
    (void)cudaLaunchKernelExC(&config, kernel, arguments);
    return device_launched("one_kernel", error);
}

#endif
