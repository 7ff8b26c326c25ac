/**
 * @file one_kernel.cuh
 * @brief d8's arguments, and how weights stream: a ring in shared memory for each warp.
 *
 * Which weights a warp multiplies, and in which order, is known before the token is: rows of each
 * matrix of each layer, dealt out to all warps of the GPU. So each warp asks for its weights as far
 * ahead as its ring has room, across rows, matrices and layers, and what it waits for at a meeting
 * of all blocks is not memory.
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_ONE_KERNEL_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_ONE_KERNEL_CUH_

#include "solutions/10_llama2_decoder/elements.cuh"

/*
 * Which of the two kernels code is made for: with bulk copies for Hopper and data centres'
 * Blackwells, which have shared memory enough; without them only for simt, which has PTX of 9.0.
 */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200
#define ONE_BULK_CODE 1
#else
#define ONE_BULK_CODE 0
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900 && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define ONE_PIECES_CODE 1
#else
#define ONE_PIECES_CODE 0
#endif

enum { ONE_WARPS = 8, ONE_THREADS = ONE_WARPS * 32, ONE_SLOT_BYTES = 2048, ONE_SLOTS = 10 };
enum { ONE_RING_BYTES = ONE_WARPS * ONE_SLOTS * ONE_SLOT_BYTES };

/* Products of a layer, and the one behind all layers. */
enum one_kind { ONE_QKV, ONE_OUT, ONE_GATE_UP, ONE_DOWN, ONE_CLASSIFIER, ONE_END };

/* Device memory: a layer's matrices in the order of enum one_kind, and its norms. */
struct one_layer {
    const void *matrices[4];
    const float *attention_norm, *ffn_norm;
};

/* All that the kernel is given. */
struct one {
    const struct one_layer *layers;
    const void *embedding, *classifier;
    const float *final_norm;
    unsigned C, hidden, L, NH, KVH, HS, V, T;
    float eps;
    double log2_theta;
    bool halves; /* layout of rotary embedding */
    const int32_t *token;
    int32_t position;
    float *x;       /* (C): the residual stream */
    float *qkv;     /* ((NH + 2 KVH) * HS) */
    float *heads;   /* (NH*HS): attention's result */
    float *gated;   /* (hidden): silu(gate) * up */
    float *logits;  /* (V) */
    void *k, *v;    /* (L, T, KVH*HS) */
    float *partial; /* (KVH, parts, group, HS + 2): attention of parts of the context */
    unsigned *done; /* (KVH): parts that are done; 0 between launches */
    unsigned long long *meeting; /* arrivals; a multiple of the blocks between launches */
};

/* ---- What a warp multiplies ---- */

/* A row's next bytes. Units are rows, of gate and up pairs of rows. */
struct cursor {
    unsigned layer, kind, unit, half, offset;
};

static __device__ __forceinline__ unsigned first_unit() {
    return blockIdx.x * ONE_WARPS + threadIdx.x / 32;
}

static __device__ __forceinline__ unsigned units_of(const struct one &p, unsigned kind) {
    return kind == ONE_QKV          ? (p.NH + 2 * p.KVH) * p.HS
           : kind == ONE_GATE_UP    ? p.hidden
           : kind == ONE_CLASSIFIER ? p.V
                                    : p.C;
}

/* Inputs of a row. */
static __device__ __forceinline__ unsigned inputs_of(const struct one &p, unsigned kind) {
    return kind == ONE_OUT ? p.NH * p.HS : kind == ONE_DOWN ? p.hidden : p.C;
}

/* To the first matrix, from the cursor's on, that has a unit for this warp. */
static __device__ __forceinline__ void settle(struct cursor *c, const struct one &p) {
    while (c->kind != ONE_END && c->unit >= units_of(p, c->kind)) {
        c->unit = first_unit();
        c->layer += c->kind == ONE_DOWN;
        c->kind = c->kind == ONE_DOWN && c->layer < p.L ? 0u + ONE_QKV : c->kind + 1;
    }
}

static __device__ __forceinline__ struct cursor cursor_begin(const struct one &p) {
    struct cursor c = {0, p.L > 0 ? 0u + ONE_QKV : ONE_CLASSIFIER, first_unit(), 0, 0};
    settle(&c, p);
    return c;
}

/* Where the cursor's bytes are. */
template <typename E>
static __device__ __forceinline__ const unsigned char *place_of(const struct cursor &c,
                                                                const struct one &p) {
    const void *matrix =
        c.kind == ONE_CLASSIFIER ? p.classifier : p.layers[c.layer].matrices[c.kind];
    size_t row = c.unit + (size_t)c.half * p.hidden;
    return (const unsigned char *)matrix + row * inputs_of(p, c.kind) * sizeof(E) + c.offset;
}

template <typename E>
static __device__ __forceinline__ unsigned bytes_left(const struct cursor &c, const struct one &p) {
    unsigned left = inputs_of(p, c.kind) * (unsigned)sizeof(E) - c.offset;
    return left < ONE_SLOT_BYTES ? left : (unsigned)ONE_SLOT_BYTES;
}

/* Behind the bytes at the cursor. */
static __device__ __forceinline__ void advance(struct cursor *c, unsigned bytes, unsigned row_bytes,
                                               const struct one &p) {
    c->offset += bytes;
    if (c->offset < row_bytes) {
        return;
    }
    c->offset = 0;
    c->half ^= c->kind == ONE_GATE_UP;
    if (c->half == 0) {
        c->unit += gridDim.x * ONE_WARPS;
        settle(c, p);
    }
}

/* ---- The ring ---- */

/* The warp's: SLOTS pieces of rows, on their way or there. */
struct ring {
    unsigned char *slots; /* shared memory */
    uint64_t *barriers;   /* shared memory, (SLOTS): of bulk copies */
    struct cursor ahead;  /* what is asked for next */
    unsigned slot, parity;
};

static __device__ __forceinline__ unsigned shared_address(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

/* One thread asks for all bytes of a slot. */
static __device__ __forceinline__ void copy_bulk(unsigned to, const void *from, unsigned bytes,
                                                 unsigned barrier) {
#if ONE_BULK_CODE
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
#endif
}

static __device__ __forceinline__ void wait_bulk(unsigned barrier, unsigned parity) {
#if ONE_BULK_CODE
    asm volatile("{\n"
                 ".reg .pred there;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 there, [%0], %1;\n"
                 "@!there bra again;\n"
                 "}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
#endif
}

/* Each lane asks for the pieces that it will read. */
static __device__ __forceinline__ void copy_pieces(unsigned to, const unsigned char *from,
                                                   unsigned bytes) {
#if ONE_PIECES_CODE
    for (unsigned at = threadIdx.x % 32 * 16; at < bytes; at += 32 * 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + at), "l"(from + at)
                     : "memory");
    }
#endif
}

/* Ends what an ask() asked for, be it nothing. */
static __device__ __forceinline__ void end_group() {
#if ONE_PIECES_CODE
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits for the oldest of the ring's groups. */
static __device__ __forceinline__ void wait_group() {
#if ONE_PIECES_CODE
    asm volatile("cp.async.wait_group %0;" ::"n"(ONE_SLOTS - 1) : "memory");
#endif
}

/* Asks for the next bytes; they come into the slot `slot`, which nobody reads any more. */
template <typename E, bool BULK>
static __device__ __forceinline__ void ask(struct ring *r, unsigned slot, const struct one &p) {
    if (r->ahead.kind != ONE_END) {
        unsigned bytes = bytes_left<E>(r->ahead, p);
        unsigned row_bytes = inputs_of(p, r->ahead.kind) * (unsigned)sizeof(E);
        const unsigned char *from = place_of<E>(r->ahead, p);
        unsigned to = shared_address(r->slots + slot * ONE_SLOT_BYTES);
        if (!BULK) {
            copy_pieces(to, from, bytes);
        } else if (threadIdx.x % 32 == 0) {
            copy_bulk(to, from, bytes, shared_address(r->barriers + slot));
        }
        advance(&r->ahead, bytes, row_bytes, p);
    }
    if (!BULK) {
        end_group();
    }
}

/* @param shared ONE_RING_BYTES, @param barriers (WARPS * SLOTS): the block's */
template <typename E, bool BULK>
static __device__ __forceinline__ struct ring ring_begin(unsigned char *shared, uint64_t *barriers,
                                                         const struct one &p) {
    unsigned warp = threadIdx.x / 32;
    struct ring r = {shared + warp * (ONE_SLOTS * ONE_SLOT_BYTES), barriers + warp * ONE_SLOTS,
                     cursor_begin(p), 0, 0};
#if ONE_BULK_CODE
    if (BULK && threadIdx.x % 32 == 0) {
        for (int i = 0; i < ONE_SLOTS; i++) {
            asm volatile(
                "mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(r.barriers + i))
                : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
#endif
    __syncwarp();
    for (int i = 0; i < ONE_SLOTS; i++) {
        ask<E, BULK>(&r, i, p);
    }
    return r;
}

/* Waits for the oldest slot. */
template <bool BULK> static __device__ __forceinline__ const uint4 *wait(const struct ring *r) {
    if (BULK) {
        wait_bulk(shared_address(r->barriers + r->slot), r->parity);
    } else {
        wait_group();
    }
    return (const uint4 *)(r->slots + r->slot * ONE_SLOT_BYTES);
}

/* The oldest slot has been read, and is filled anew. */
template <typename E, bool BULK>
static __device__ __forceinline__ void pass(struct ring *r, const struct one &p) {
    __syncwarp();
    ask<E, BULK>(r, r->slot, p);
    r->slot++;
    if (r->slot == ONE_SLOTS) {
        r->slot = 0;
        r->parity ^= 1;
    }
}

#endif
