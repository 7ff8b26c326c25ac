/**
 * @file token_pipeline.cuh
 * @brief v6's multistage pipeline: each warp prefetches slices into a ring of its own.
 *
 * As lab 10's d8, and simpler: a stage divides a row, so that a block's rows of a matrix are one
 * run of slices, which warps take round robin. Keys and values come as slices, too: the cache is
 * ordered by heads, so that a split of a head is one run of bytes.
 */
#ifndef WARPBOOK_SOLUTIONS_14_ENDLESS_TEXT_STEPS_TOKEN_PIPELINE_CUH_
#define WARPBOOK_SOLUTIONS_14_ENDLESS_TEXT_STEPS_TOKEN_PIPELINE_CUH_

#include "solutions/14_endless_text/steps/token_kernel.cuh"

/* The slice that a warp prefetches next. */
struct token_cursor {
    const unsigned char *from;
    unsigned left; /* slices of this kind, including this one */
    unsigned kind, layer;
    bool value; /* the slice's keys are prefetched, its values are next */
};

struct token_ring {
    unsigned stages;    /* address in shared memory */
    unsigned oldest;    /* index of the oldest stage */
    unsigned held_back; /* prefetches held back: the youngest stages */
    struct token_cursor next;
    const struct token_plan *plan;
};

static __device__ __forceinline__ unsigned stream_of(unsigned kind) {
    return kind == TOKEN_QKV    ? STREAM_QKV
           : kind == TOKEN_KEYS ? STREAM_KEYS
           : kind == TOKEN_OUT  ? STREAM_OUT
           : kind == TOKEN_DOWN ? STREAM_DOWN
                                : STREAM_UP;
}

/* A warp's slices of a kind. */
static __device__ __forceinline__ unsigned token_slices_of(const struct token_plan *plan,
                                                           unsigned kind) {
    return (plan->parts[kind].slices + TOKEN_WARPS - 1 - threadIdx.x / 32) / TOKEN_WARPS;
}

/* Moves the cursor to the warp's first slice of its kind, or of the next kind that has any. */
static __device__ __forceinline__ void token_seek(struct token_cursor *c,
                                                  const struct token_plan *plan, unsigned stage,
                                                  const struct token_arguments &p) {
    for (; c->kind != TOKEN_END; c->kind++) {
        if (c->kind == TOKEN_CLASSIFIER && c->layer + 1 < p.L) {
            c->layer++;
            c->kind = TOKEN_QKV;
        }
        c->left = token_slices_of(plan, c->kind);
        if (c->left > 0) {
            const struct token_part *part = &plan->parts[c->kind];
            const unsigned char *stream =
                c->kind == TOKEN_CLASSIFIER
                    ? (const unsigned char *)p.classifier
                    : (const unsigned char *)plan->layers[c->layer].streams[stream_of(c->kind)];
            size_t first = (size_t)part->first * part->columns * stage;
            c->from = stream + (c->kind == TOKEN_KEYS ? plan->head * p.head_bytes : 0) + first +
                      threadIdx.x / 32 * stage;
            return;
        }
    }
}

/* Issues the prefetch of the next slice into stage `index`, which has been read. */
template <int ROUNDS>
static __device__ __forceinline__ void token_prefetch(struct token_ring *ring, unsigned index,
                                                      const struct token_arguments &p) {
    constexpr unsigned STAGE = ROUNDS * 512;
    struct token_cursor *c = &ring->next;
    if (c->kind != TOKEN_END) {
        unsigned lane = threadIdx.x % 32 * 16, to = ring->stages + index * STAGE + lane;
        const unsigned char *from = c->from + lane + (c->value ? p.key_to_value : 0);
#pragma unroll
        for (int i = 0; i < ROUNDS; i++) {
            cp_async_16(to + i * 512, from + i * 512);
        }
        c->value = c->kind == TOKEN_KEYS && !c->value;
        if (!c->value) {
            c->from += TOKEN_WARPS * STAGE;
            if (--c->left == 0) {
                c->kind++;
                token_seek(c, ring->plan, STAGE, p);
            }
        }
    }
    cp_async_commit();
}

template <int ROUNDS>
static __device__ __forceinline__ struct token_ring
token_prologue(const unsigned char *stages, const struct token_plan *plan,
               const struct token_arguments &p) {
    struct token_ring ring = {};
    ring.stages =
        shared_address(stages) + threadIdx.x / 32 * (TOKEN_STAGES * (unsigned)(ROUNDS * 512));
    ring.plan = plan;
    token_seek(&ring.next, plan, ROUNDS * 512, p);
#pragma unroll 1
    for (int i = 0; i < TOKEN_STAGES; i++) {
        token_prefetch<ROUNDS>(&ring, i, p);
    }
    return ring;
}

/* Address of the stage `behind` the oldest one. */
template <int ROUNDS>
static __device__ __forceinline__ unsigned token_stage(const struct token_ring *ring,
                                                       unsigned behind) {
    unsigned index = ring->oldest + behind;
    return ring->stages + (index < TOKEN_STAGES ? index : index - TOKEN_STAGES) * (ROUNDS * 512);
}

/* 16 bytes of shared memory. */
static __device__ __forceinline__ uint4 token_read(unsigned address) {
    uint4 x;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(address)
                 : "memory");
    return x;
}

static __device__ __forceinline__ void token_write(unsigned address, uint4 x) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(x.x), "r"(x.y),
                 "r"(x.z), "r"(x.w)
                 : "memory");
}

/* Releases the oldest stage, which has been read: its next prefetch is issued, or held back. A
   warp that holds one back holds all later ones back, until token_issue_all(). */
template <int ROUNDS>
static __device__ __forceinline__ void token_release(struct token_ring *ring, bool hold_back,
                                                     const struct token_arguments &p) {
    if (hold_back) {
        ring->held_back++;
        cp_async_commit();
    } else {
        token_prefetch<ROUNDS>(ring, ring->oldest, p);
    }
    ring->oldest = ring->oldest + 1 == TOKEN_STAGES ? 0 : ring->oldest + 1;
}

/* Issues the oldest prefetch held back, if there is one. */
template <int ROUNDS>
static __device__ __forceinline__ void token_issue(struct token_ring *ring,
                                                   const struct token_arguments &p) {
    if (ring->held_back > 0) {
        unsigned stage = ring->oldest + TOKEN_STAGES - ring->held_back;
        token_prefetch<ROUNDS>(ring, stage < TOKEN_STAGES ? stage : stage - TOKEN_STAGES, p);
        ring->held_back--;
    }
}

template <int ROUNDS>
static __device__ __forceinline__ void token_issue_all(struct token_ring *ring,
                                                       const struct token_arguments &p) {
#pragma unroll 1
    while (ring->held_back > 0) {
        token_issue<ROUNDS>(ring, p);
    }
}

#endif
