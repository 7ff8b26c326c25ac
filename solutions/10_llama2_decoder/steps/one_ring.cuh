/**
 * @file one_ring.cuh
 * @brief d8: how weights stream, through a ring in shared memory for each warp.
 *
 * Which weights a warp multiplies, and in which order, is known before the token is: slices of the
 * rows that its block has of each matrix of each layer. So each warp asks for its weights as far
 * ahead as its ring has room, across rows, matrices and layers, and while a block waits for what
 * others send, memory goes on. Keys and values of earlier tokens stream with them.
 *
 * What is asked for while memory is busy stands in a queue, and so does everything behind it: what
 * others send comes to a block when all that its rings have asked for before has come. So at the
 * end of a matrix a warp owes its ring some slices, and asks for them one by one while it waits.
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_ONE_RING_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_ONE_RING_CUH_

#include "common/cuda/async_copy.cuh"
#include "solutions/10_llama2_decoder/steps/one_context.cuh"

/* Slices that a warp owes where it will wait. */
enum { ONE_OWED = 4 };

/* ---- What a warp multiplies ---- */

static __device__ __forceinline__ unsigned outputs_of(const struct one &p, unsigned kind) {
    return kind == ONE_QKV                      ? (p.NH + 2 * p.KVH) * p.HS
           : kind == ONE_GATE || kind == ONE_UP ? p.hidden
           : kind == ONE_CLASSIFIER             ? p.V
                                                : p.C;
}

static __device__ __forceinline__ unsigned inputs_of(const struct one &p, unsigned kind) {
    return kind == ONE_OUT ? p.NH * p.HS : kind == ONE_DOWN ? p.hidden : p.C;
}

/*
 * A block's rows of a matrix, and how its warps share them: in slices of a slot's bytes, dealt out
 * in turn, so that warps are done at about the same time. The last slice of a row may be shorter.
 */
struct share {
    unsigned first, rows;
    unsigned row_bytes, slices; /* of a row */
    unsigned step, turn;        /* from a warp's slice to its next one: bytes; slices, in a row */
};

/* A warp's slices: how many, and where the first one is. */
struct begin {
    unsigned count, slice; /* slice of its row */
    size_t offset;         /* bytes from the block's first row on */
};

/* Shared memory: what the block multiplies, where its warps begin, its part of the context, and all
   layers. */
struct plan {
    struct share shares[ONE_END];
    struct begin begins[ONE_END][ONE_WARPS];
    struct item item;
    struct one_layer layers[];
};

/* Bytes of it, up to where something else may begin. */
static __host__ __device__ __forceinline__ size_t plan_bytes(size_t L) {
    return (sizeof(struct plan) + L * sizeof(struct one_layer) + 127) / 128 * 128;
}

template <typename E>
static __device__ __forceinline__ struct share share_of(const struct one &p, unsigned kind) {
    size_t N = outputs_of(p, kind), block = blockIdx.x;
    struct share s;
    s.first = (unsigned)(N * block / gridDim.x);
    s.rows = (unsigned)(N * (block + 1) / gridDim.x) - s.first;
    s.row_bytes = inputs_of(p, kind) * (unsigned)sizeof(E);
    s.slices = (s.row_bytes + ONE_SLOT_BYTES - 1) / ONE_SLOT_BYTES;
    s.turn = ONE_WARPS % s.slices;
    s.step = ONE_WARPS / s.slices * s.row_bytes + s.turn * ONE_SLOT_BYTES;
    return s;
}

/* A slot of keys: one half of it keys, the other their values. */
template <typename E> static __device__ __forceinline__ unsigned keys_of_slot(const struct one &p) {
    return ONE_SLOT_BYTES / 2 / (p.HS * (unsigned)sizeof(E));
}

/* For keys a slice is a slot's, and a "row" one key; begin.slice is how many keys the last has. */
template <typename E>
static __device__ __forceinline__ void plan_keys(struct plan *plan, unsigned warp,
                                                 const struct one &p) {
    const struct item item = plan->item;
    unsigned size = keys_of_slot<E>(p), keys = item.any ? item.end - item.first : 0;
    unsigned slots = (keys + size - 1) / size, count = (slots + ONE_WARPS - 1 - warp) / ONE_WARPS;
    struct share s = {};
    s.row_bytes = p.HS * (unsigned)sizeof(E);
    s.slices = ~0u;
    s.step = ONE_WARPS * size * (unsigned)p.key_bytes;
    struct begin b = {count, size,
                      item.head * s.row_bytes + (item.first + warp * size) * p.key_bytes};
    if (count > 0 && warp + (count - 1) * ONE_WARPS == slots - 1) {
        b.slice = keys - (slots - 1) * size;
    }
    plan->begins[ONE_KEYS][warp] = b;
    if (warp == 0) {
        plan->shares[ONE_KEYS] = s;
    }
}

/* All threads of the block; they meet afterwards. */
template <typename E, int GROUP>
static __device__ __forceinline__ void make_plan(struct plan *plan, const struct one &p) {
    if (threadIdx.x == 0) {
        plan->item = item_of<GROUP>(p);
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < ONE_END * ONE_WARPS; i += ONE_THREADS) {
        unsigned kind = i / ONE_WARPS, warp = i % ONE_WARPS;
        if (kind == ONE_KEYS) {
            plan_keys<E>(plan, warp, p);
            continue;
        }
        struct share s = share_of<E>(p, kind);
        unsigned all = s.rows * s.slices, row = warp / s.slices, slice = warp % s.slices;
        plan->begins[kind][warp] = {(all + ONE_WARPS - 1 - warp) / ONE_WARPS, slice,
                                    (size_t)row * s.row_bytes + slice * ONE_SLOT_BYTES};
        if (warp == 0) {
            plan->shares[kind] = s;
        }
    }
    constexpr unsigned WORDS = sizeof(struct one_layer) / sizeof(uint64_t);
    for (unsigned i = threadIdx.x; i < p.L * WORDS; i += ONE_THREADS) {
        ((uint64_t *)plan->layers)[i] = ((const uint64_t *)p.layers)[i];
    }
}

static __device__ __forceinline__ const struct begin *begin_of(const struct plan *plan,
                                                               unsigned kind) {
    return &plan->begins[kind][threadIdx.x / 32];
}

/* The slice that a warp asks for next. */
struct cursor {
    const unsigned char *from;
    unsigned left;  /* slices of this kind, with this one */
    unsigned slice; /* of its row */
    struct share share;
    unsigned layer, kind;
};

/* To the warp's slices of the cursor's kind, or of the first behind it where it has some. */
static __device__ __forceinline__ void settle(struct cursor *c, const struct plan *plan,
                                              const struct one &p) {
    for (; c->kind != ONE_END; c->kind++) {
        if (c->kind == ONE_CLASSIFIER && c->layer + 1 < p.L) {
            c->layer++;
            c->kind = ONE_QKV;
        }
        const void *stream =
            c->kind == ONE_CLASSIFIER ? p.classifier : plan->layers[c->layer].streams[c->kind];
        const struct begin *begin = begin_of(plan, c->kind);
        c->share = plan->shares[c->kind];
        c->left = begin->count;
        c->slice = begin->slice;
        c->from = (const unsigned char *)stream + (size_t)c->share.first * c->share.row_bytes +
                  begin->offset;
        if (c->left > 0) {
            return;
        }
    }
}

static __device__ __forceinline__ struct cursor cursor_begin(const struct plan *plan,
                                                             const struct one &p) {
    struct cursor c = {};
    c.kind = p.L > 0 ? 0u + ONE_QKV : ONE_CLASSIFIER;
    settle(&c, plan, p);
    return c;
}

/* The slice of a row that a warp's next one is. Returns whether that is of a row farther. */
static __device__ __forceinline__ bool next_slice(unsigned *slice, const struct share &share) {
    *slice += share.turn;
    bool farther = *slice >= share.slices;
    *slice -= farther ? share.slices : 0;
    return farther;
}

static __device__ __forceinline__ void advance(struct cursor *c, const struct plan *plan,
                                               const struct one &p) {
    c->from += c->share.step;
    if (next_slice(&c->slice, c->share)) { /* a short slice lies between */
        c->from -= c->share.slices * ONE_SLOT_BYTES - c->share.row_bytes;
    }
    if (--c->left == 0) {
        c->kind++;
        settle(c, plan, p);
    }
}

/* ---- The ring ---- */

/* A warp's: SLOTS slices, on their way or there. */
struct ring {
    unsigned slots;          /* shared memory: its address there */
    unsigned slot;           /* the oldest */
    unsigned owed;           /* of the youngest: not asked for yet */
    struct cursor ahead;     /* what is asked for next */
    const struct plan *plan; /* shared memory */
};

/* Each lane asks for the pieces of a slice that it will read. @param bytes of a slice that is not
   WHOLE */
template <bool WHOLE>
static __device__ __forceinline__ void copy_slice(unsigned to, const unsigned char *from,
                                                  unsigned bytes) {
#if ONE_CODE
    unsigned lane = threadIdx.x % 32 * 16;
    from += lane;
    to += lane;
#pragma unroll
    for (unsigned at = 0; at < ONE_SLOT_BYTES; at += 32 * 16) {
        if (WHOLE || at + lane < bytes) {
            cp_async_16(to + at, from + at);
        }
    }
#endif
}

/* The same for a slot of keys and values, of which there are `keys`. */
static __device__ __forceinline__ void copy_keys(unsigned to, const unsigned char *from,
                                                 unsigned keys, unsigned row_bytes,
                                                 const struct one &p) {
#if ONE_CODE
    unsigned lane = threadIdx.x % 32, lanes = row_bytes / 16, key = lane / lanes;
    from += key * p.key_bytes + lane % lanes * 16;
    to += lane * 16;
#pragma unroll
    for (unsigned at = 0; at < ONE_SLOT_BYTES / 2; at += 32 * 16, key += 32 / lanes) {
        if (key < keys) {
            cp_async_16(to + at, from);
            cp_async_16(to + at + ONE_SLOT_BYTES / 2, from + p.key_to_value);
        }
        from += 32 / lanes * p.key_bytes;
    }
#endif
}

/* Asks for the next slice; it comes into the slot `slot`, which nobody reads any more. */
static __device__ __forceinline__ void ask(struct ring *r, unsigned slot, const struct one &p) {
    struct cursor *c = &r->ahead;
    if (c->kind != ONE_END) {
        unsigned to = r->slots + slot * ONE_SLOT_BYTES;
        if (c->kind == ONE_KEYS) {
            copy_keys(to, c->from, c->left > 1 ? ~0u : c->slice, c->share.row_bytes, p);
        } else if (c->slice + 1 < c->share.slices || c->share.row_bytes % ONE_SLOT_BYTES == 0) {
            copy_slice<true>(to, c->from, ONE_SLOT_BYTES);
        } else {
            copy_slice<false>(to, c->from, c->share.row_bytes - c->slice * ONE_SLOT_BYTES);
        }
        advance(c, r->plan, p);
    }
    cp_async_commit();
}

/* The warp's ring, whose first slices are on their way. @param slots the block's */
static __device__ __forceinline__ struct ring
ring_begin(const unsigned char *slots, const struct plan *plan, const struct one &p) {
    struct ring r = {};
    r.slots = shared_address(slots) + threadIdx.x / 32 * (ONE_SLOTS * ONE_SLOT_BYTES);
    r.ahead = cursor_begin(plan, p);
    r.plan = plan;
#pragma unroll 1
    for (int i = 0; i < ONE_SLOTS; i++) {
        ask(&r, i, p);
    }
    return r;
}

/* Waits for the oldest slot. Each lane reads what it has asked for itself. */
static __device__ __forceinline__ unsigned wait(const struct ring *r) {
    cp_async_wait<ONE_SLOTS - 1>();
    return r->slots + r->slot * ONE_SLOT_BYTES;
}

/* 16 bytes of shared memory. */
static __device__ __forceinline__ uint4 read_shared(unsigned address) {
    uint4 x;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(address)
                 : "memory");
    return x;
}

/*
 * The oldest slot has been read. Another slice is asked for, or owed: once a warp owes one, it does
 * so until it has caught up. (An empty group stands for it, so that wait() is right, if anything
 * too careful.)
 */
static __device__ __forceinline__ void pass(struct ring *r, bool owes, const struct one &p) {
    if (owes) {
        r->owed++;
        cp_async_commit();
    } else {
        ask(r, r->slot, p);
    }
    r->slot = r->slot + 1 == ONE_SLOTS ? 0 : r->slot + 1;
}

/* Asks for the oldest slice that is owed, if any is. */
static __device__ __forceinline__ void catch_up(struct ring *r, const struct one &p) {
    if (r->owed > 0) {
        unsigned slot = r->slot + ONE_SLOTS - r->owed;
        ask(r, slot < ONE_SLOTS ? slot : slot - ONE_SLOTS, p);
        r->owed--;
    }
}

static __device__ __forceinline__ void catch_up_all(struct ring *r, const struct one &p) {
#pragma unroll 1
    while (r->owed > 0) {
        catch_up(r, p);
    }
}

#endif
