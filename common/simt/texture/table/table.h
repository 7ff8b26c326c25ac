/**
 * @file table.h
 * @brief What the parts of the program `table` share: it prints what a GPU returns for a table of
 *        texture fetches and surface accesses, as bits.
 */
#ifndef WARPBOOK_COMMON_SIMT_TEXTURE_TABLE_TABLE_H_
#define WARPBOOK_COMMON_SIMT_TEXTURE_TABLE_TABLE_H_

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime.h>

/** Says which call failed, and goes on: the record of the other cases is of use. */
#define NEED(call)                                                      \
    do {                                                                \
        cudaError_t error_ = (call);                                    \
        if (error_ != cudaSuccess) {                                    \
            printf("FAILED %s: %s\n", #call, cudaGetErrorName(error_)); \
        }                                                               \
    } while (0)

enum { MOST_FETCHES = 4096 };

/** A format of texels. */
struct format {
    const char *name;
    int bits, channels;
    enum cudaChannelFormatKind kind;
};

/** A texture: its size, how it is read, its texels (bytes; NULL: a pattern of its own). */
struct texture {
    struct format format;
    int width, height, depth; /* 0: not that many dimensions; layers: depth is their count */
    bool layered, gathered, normalised, normalised_float;
    enum cudaTextureAddressMode address;
    enum cudaTextureFilterMode filter;
    float border[4];
    const void *texels;
    cudaArray_t array; /* made by texture_make() */
    cudaTextureObject_t object;
};

/** How a fetch is made. */
enum fetch { FETCH_1D, FETCH_2D, FETCH_3D, FETCH_1D_LAYERED, FETCH_2D_LAYERED, FETCH_GATHER };

struct coordinate {
    float x, y, z;
    int layer; /* the component, of a gather */
};

/** Bytes of a texel. */
size_t format_bytes(struct format format);

/** Numbers of a fixed sequence: bits, and floats of [low, high). */
uint32_t next_bits(uint32_t *state);
float next_float(uint32_t *state, float low, float high);

cudaArray_t array_make(struct format format, int width, int height, int depth, unsigned flags,
                       const void *texels);
void texture_make(struct texture *texture);
void texture_free(struct texture *texture);

/** Fetches at `count` places; out: 4 words each. */
void fetch_all(const struct texture *texture, enum fetch fetch, const struct coordinate *at,
               int count, uint32_t (*out)[4]);

/** Prints words as hexadecimal numbers, 8 a line; a NaN as "nan". */
void print_words(const uint32_t *words, int count, bool is_float);

/** Prints `channels` of every fetch. */
void print_fetches(uint32_t (*out)[4], int count, int channels, bool is_float);

void print_textures(void);    /* table_textures.cu */
void print_surfaces(void);    /* table_surfaces.cu */
void print_errors(void);      /* table_errors.cu */
void probe(const char *what); /* table_probe.cu */

#endif
