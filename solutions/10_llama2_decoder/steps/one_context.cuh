/**
 * @file one_context.cuh
 * @brief How d8 deals the context out to blocks: a team of queries and a part of its keys each.
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_ONE_CONTEXT_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_ONE_CONTEXT_CUH_

#include "solutions/10_llama2_decoder/steps/one_kernel.cuh"

/* A part of the context has so many keys at least. */
enum { ONE_PART_KEYS = 128, ONE_MOST_HS = 256 };

static __device__ __forceinline__ unsigned smaller(unsigned a, unsigned b) {
    return a < b ? a : b;
}

/* Parts that a context of `keys` is cut into for each of `teams` where there are so many blocks. */
static __host__ __device__ __forceinline__ unsigned one_parts(unsigned keys, unsigned teams,
                                                              unsigned blocks) {
    unsigned most = blocks / teams > 0 ? blocks / teams : 1;
    unsigned parts = (keys + ONE_PART_KEYS - 1) / ONE_PART_KEYS;
    return parts < most ? parts : most;
}

/* A block's work: a team's queries over a part of the context. */
struct item {
    unsigned team, part, parts;
    unsigned head;       /* of keys */
    unsigned first, end; /* keys of earlier tokens */
    bool newest;         /* and this token's own one */
    bool any;            /* whether there is something to do */
};

template <int GROUP> static __device__ __forceinline__ struct item item_of(const struct one &p) {
    unsigned position = (unsigned)p.position, keys = position + 1, teams = p.NH / GROUP;
    unsigned parts = one_parts(keys, teams, gridDim.x), size = (keys + parts - 1) / parts;
    struct item item;
    item.parts = (keys + size - 1) / size; /* none is empty */
    item.team = blockIdx.x / item.parts;
    item.part = blockIdx.x % item.parts;
    item.head = item.team * GROUP / (p.NH / p.KVH);
    item.first = item.part * size;
    item.end = smaller(item.first + size, position);
    item.newest = item.first + size > position;
    item.any = item.team < teams;
    return item;
}

#endif
