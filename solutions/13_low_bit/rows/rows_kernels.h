/**
 * @file rows_kernels.h
 * @brief The launches of a step of several texts.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_ROWS_KERNELS_H_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_ROWS_KERNELS_H_

#include <vector_types.h>

#include "solutions/13_low_bit/rows/rows_input.cuh"

/* Keys and values of all texts, 8 bits each, and their scales. */
struct rows_cache {
    int8_t *k, *v;  /* (rows, L, T, KVH*HS) */
    float2 *scales; /* (rows, L, T, KVH): of a key and of its value */
};

enum { ROWS_GRAPHS = 16, ROWS_SPLIT_KEYS = 256 };

/* A decoder, and its device memory beside the weights. */
struct rows_decoder {
    struct low_bit_decoder_model model;
    struct rows_io io;
    size_t rows, multiprocessors;
    enum rows_form form;
    device_stream stream;
    struct rows_cache cache;
    float *x;        /* (rows, C): the residual stream */
    float *qkv;      /* (rows, (NH + 2 KVH) * HS) */
    float *gated;    /* (rows, hidden) */
    float2 *angles;  /* (rows, HS / 2): cosine and sine of the rotary embedding */
    float *partials; /* (rows, NH, splits, HS + 2): of splits of the context */
    struct rows_input residual, heads, hidden; /* inputs of products, by what they are made of */
    void *graphs[ROWS_GRAPHS];                 /* executable; NULL: not recorded yet */
    struct step_decoder *step; /* a step as one kernel; NULL: as a graph of launches */
};

/* Splits of contexts of up to `keys` keys. */
static inline unsigned rows_splits(const struct rows_decoder *d, size_t keys) {
    size_t teams = d->rows * d->model.sizes.NH, most = 1 + 8 * d->multiprocessors / teams;
    size_t splits = (keys + ROWS_SPLIT_KEYS - 1) / ROWS_SPLIT_KEYS;
    return (unsigned)(splits < most ? splits : most);
}

/* x = the tokens' embeddings; angles of their positions. */
void rows_embed(const struct rows_decoder *d, device_stream stream);

/* The input of the products behind a norm; products are divided by its root mean square. */
void rows_norm(const struct rows_decoder *d, const float *weight, device_stream stream);

/* The input of the product behind the gate. */
void rows_hidden(const struct rows_decoder *d, device_stream stream);

/* Attention of layer l: appends qkv's keys and values to the cache, and makes d->heads. */
void rows_attend(const struct rows_decoder *d, size_t l, unsigned splits, device_stream stream);

#endif
