/**
 * @file d8_pipeline.cuh
 * @brief d8's multistage pipeline: each warp prefetches weights into a ring buffer of its own.
 *
 * Which weights a warp multiplies, and in which order, is known before the token is: slices of the
 * rows that its block has of each matrix of each layer. So each warp prefetches as far ahead as it
 * has stages, across rows, matrices and layers, and memory stays busy while a block waits for
 * values of other blocks. Keys and values of earlier tokens go through the same pipeline.
 *
 * Memory serves requests in order, so a value from another block arrives after every prefetch
 * already issued. So at the end of a matrix a warp holds some prefetches back, and issues them one
 * by one while it waits. Where the pipelines hold most of a layer there is no queue to speak of,
 * and prefetches between polls only delay these: nothing is held back then.
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_D8_PIPELINE_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_D8_PIPELINE_CUH_

#include "common/cuda/async_copy.cuh"
#include "solutions/10_llama2_decoder/steps/d8_split.cuh"

/* ---- What a warp multiplies ---- */

static __device__ __forceinline__ unsigned outputs_of(const struct one_arguments &p,
                                                      unsigned kind) {
    return kind == ONE_QKV                      ? (p.NH + 2 * p.KVH) * p.HS
           : kind == ONE_GATE || kind == ONE_UP ? p.hidden
           : kind == ONE_CLASSIFIER             ? p.V
                                                : p.C;
}

static __device__ __forceinline__ unsigned inputs_of(const struct one_arguments &p, unsigned kind) {
    return kind == ONE_OUT ? p.NH * p.HS : kind == ONE_DOWN ? p.hidden : p.C;
}

/*
 * A block's rows of a matrix, and how its warps share them: rows are cut into slices of
 * ONE_STAGE_BYTES, so that warps are done at about the same time. What a row is, and which slices a
 * warp takes, is the matter of W, how weights are stored: plain_weights in d8_gemv.cuh, or another
 * one. The last slice of a row may be shorter.
 */
struct share {
    unsigned first, rows;
    unsigned row_bytes, slices;     /* of a row */
    unsigned byte_step, slice_step; /* from a warp's slice to its next one: bytes; within a row */
};

/* A warp's slices of a matrix: how many, and where the first one is. */
struct warp_slices {
    unsigned count, slice; /* slice: the first one's index in its row */
    size_t offset;         /* of the first one: bytes from the block's first row */
};

/* Shared memory: the block's share of each matrix, its warps' slices, its split of the context, and
 * all layers. */
struct plan {
    struct share shares[ONE_END];
    struct warp_slices warp_slices[ONE_END][ONE_WARPS];
    struct split_item item;
    struct one_layer layers[];
};

/* Bytes of a plan, rounded up to 128. */
static __host__ __device__ __forceinline__ size_t plan_bytes(size_t L) {
    return (sizeof(struct plan) + L * sizeof(struct one_layer) + 127) / 128 * 128;
}

/* The block's rows of N. */
static __device__ __forceinline__ struct share rows_of_block(size_t N) {
    struct share s = {};
    s.first = (unsigned)(N * blockIdx.x / gridDim.x);
    s.rows = (unsigned)(N * (blockIdx.x + 1) / gridDim.x) - s.first;
    return s;
}

/* A stage's keys: keys first, then their values, and then the scales of both, if they have any. */
template <typename E>
static __device__ __forceinline__ unsigned keys_of_stage(const struct one_arguments &p) {
    return ONE_KEY_BYTES / 2 / (p.HS * (unsigned)sizeof(E));
}

/* For keys a slice is a stage's keys and values, a "row" is one key, and warp_slices.slice is the
 * number of keys in the warp's last slice. */
template <typename E>
static __device__ __forceinline__ void plan_keys(struct plan *plan, unsigned warp,
                                                 const struct one_arguments &p) {
    const struct split_item item = plan->item;
    unsigned size = keys_of_stage<E>(p), keys = item.active ? item.end - item.first : 0;
    unsigned slices = (keys + size - 1) / size, count = (slices + ONE_WARPS - 1 - warp) / ONE_WARPS;
    struct share s = {};
    s.row_bytes = p.HS * (unsigned)sizeof(E);
    s.slices = ~0u;
    s.byte_step = ONE_WARPS * size * (unsigned)p.key_bytes;
    struct warp_slices b = {count, size,
                            item.head * s.row_bytes + (item.first + warp * size) * p.key_bytes};
    if (count > 0 && warp + (count - 1) * ONE_WARPS == slices - 1) {
        b.slice = keys - (slices - 1) * size;
    }
    plan->warp_slices[ONE_KEYS][warp] = b;
    if (warp == 0) {
        plan->shares[ONE_KEYS] = s;
    }
}

/* Which partial results a block has: of the first warps, which have keys of earlier tokens, and of
 * the newest key, which is the last warp's, or, with 8 bits, the one behind. */
template <typename E>
static __device__ __forceinline__ unsigned partials_of(const struct split_item &item,
                                                       const struct one_arguments &p) {
    unsigned size = keys_of_stage<E>(p), keys = item.active ? item.end - item.first : 0;
    unsigned warps = smaller((keys + size - 1) / size, ONE_WARPS);
    unsigned newest = ONE_KEYS_HAVE_SCALES ? ONE_WARPS : ONE_WARPS - 1;
    return ((1u << warps) - 1) | (item.has_newest ? 1u << newest : 0);
}

/* Called by all threads of the block, which synchronise afterwards. */
template <typename W, int GROUP>
static __device__ __forceinline__ void make_plan(struct plan *plan, const struct one_arguments &p) {
    if (threadIdx.x == 0) {
        plan->item = split_item_of<GROUP>(p);
        plan->item.present = partials_of<typename W::cache>(plan->item, p);
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < ONE_END * ONE_WARPS; i += ONE_THREADS) {
        unsigned kind = i / ONE_WARPS, warp = i % ONE_WARPS;
        if (kind == ONE_KEYS) {
            plan_keys<typename W::cache>(plan, warp, p);
            continue;
        }
        struct share s = W::share_of(p, kind);
        plan->warp_slices[kind][warp] = W::slices_of(s, warp);
        if (warp == 0) {
            plan->shares[kind] = s;
        }
    }
    constexpr unsigned WORDS = sizeof(struct one_layer) / sizeof(uint64_t);
    for (unsigned i = threadIdx.x; i < p.L * WORDS; i += ONE_THREADS) {
        ((uint64_t *)plan->layers)[i] = ((const uint64_t *)p.layers)[i];
    }
}

static __device__ __forceinline__ const struct warp_slices *warp_slices_of(const struct plan *plan,
                                                                           unsigned kind) {
    return &plan->warp_slices[kind][threadIdx.x / 32];
}

/* The slice that a warp prefetches next. */
struct cursor {
    const unsigned char *from;
    unsigned left;  /* slices of this kind, including this one */
    unsigned slice; /* index in its row */
    struct share share;
    unsigned layer, kind;
};

/* Moves the cursor to the warp's first slice of its kind, or of the next kind that has any. */
static __device__ __forceinline__ void skip_empty(struct cursor *c, const struct plan *plan,
                                                  const struct one_arguments &p) {
    for (; c->kind != ONE_END; c->kind++) {
        if (c->kind == ONE_CLASSIFIER && c->layer + 1 < p.L) {
            c->layer++;
            c->kind = ONE_QKV;
        }
        const void *stream =
            c->kind == ONE_CLASSIFIER ? p.classifier : plan->layers[c->layer].streams[c->kind];
        const struct warp_slices *own = warp_slices_of(plan, c->kind);
        c->share = plan->shares[c->kind];
        c->left = own->count;
        c->slice = own->slice;
        c->from = (const unsigned char *)stream + (size_t)c->share.first * c->share.row_bytes +
                  own->offset;
        if (c->left > 0) {
            return;
        }
    }
}

static __device__ __forceinline__ struct cursor cursor_create(const struct plan *plan,
                                                              const struct one_arguments &p) {
    struct cursor c = {};
    c.kind = p.L > 0 ? 0u + ONE_QKV : ONE_CLASSIFIER;
    skip_empty(&c, plan, p);
    return c;
}

/* Moves `slice` to the warp's next slice. @return whether that one wraps into a later row */
static __device__ __forceinline__ bool next_slice(unsigned *slice, const struct share &share) {
    *slice += share.slice_step;
    bool wraps = *slice >= share.slices;
    *slice -= wraps ? share.slices : 0;
    return wraps;
}

static __device__ __forceinline__ void advance(struct cursor *c, const struct plan *plan,
                                               const struct one_arguments &p) {
    c->from += c->share.byte_step;
    if (!ONE_SLICES_ARE_RUNS && next_slice(&c->slice, c->share)) {
        /* the row's last slice may be short */
        c->from -= c->share.slices * ONE_STAGE_BYTES - c->share.row_bytes;
    }
    if (--c->left == 0) {
        c->kind++;
        skip_empty(c, plan, p);
    }
}

/* ---- The pipeline ---- */

/* A warp's ring of ONE_STAGES stages, each with a slice that has arrived or is in flight. */
struct pipeline {
    unsigned stages;         /* address in shared memory */
    unsigned oldest;         /* index of the oldest stage */
    unsigned held_back;      /* prefetches held back: the youngest stages */
    struct cursor next;      /* the next slice to prefetch */
    const struct plan *plan; /* shared memory */
};

/* Starts a copy of 16 bytes of weights. Where a kernel's file defines ONE_WEIGHTS_LEAVE_L2_FIRST,
 * L2 gives their lines up before others: a token reads them once, but what blocks exchange again.
 */
static __device__ __forceinline__ void copy_weights_16(unsigned to, const unsigned char *from) {
#if defined(ONE_WEIGHTS_LEAVE_L2_FIRST) && __CUDA_ARCH__ >= 900
    constexpr unsigned long long EVICT_FIRST = 0x12f0000000000000; /* as createpolicy makes it */
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(from), "l"(EVICT_FIRST)
                 : "memory");
#else
    cp_async_16(to, from);
#endif
}

/* Each lane copies the 16-byte pieces of a slice that it will read itself. @param bytes of a slice
 * that is not WHOLE */
template <bool WHOLE>
static __device__ __forceinline__ void copy_slice(unsigned to, const unsigned char *from,
                                                  unsigned bytes) {
#if ONE_HAS_CP_ASYNC
    unsigned lane = threadIdx.x % 32 * 16;
    from += lane;
    to += lane;
#pragma unroll
    for (unsigned at = 0; at < ONE_STAGE_BYTES; at += 32 * 16) {
        bool inside = at + 32 * 16 <= ONE_STAGE_BYTES || at + lane < ONE_STAGE_BYTES;
        if (WHOLE ? inside : at + lane < bytes) {
            copy_weights_16(to + at, from + at);
        }
    }
#endif
}

/* The same for a stage of keys and values, of which there are `keys`. Scales, where there are some,
 * are read by other lanes, too. */
static __device__ __forceinline__ void copy_keys(unsigned to, const unsigned char *from,
                                                 unsigned keys, unsigned row_bytes,
                                                 const struct one_arguments &p) {
#if ONE_HAS_CP_ASYNC
    unsigned lane = threadIdx.x % 32, lanes = row_bytes / 16, key = lane / lanes;
    from += key * p.key_bytes + lane % lanes * 16;
    to += lane * 16;
#pragma unroll
    for (unsigned at = 0; at < ONE_KEY_BYTES / 2; at += 32 * 16, key += 32 / lanes) {
        if (key < keys) {
            cp_async_16(to + at, from);
            cp_async_16(to + at + ONE_KEY_BYTES / 2, from + p.key_to_value);
        }
        if (ONE_KEYS_HAVE_SCALES && key < keys && lane % lanes == 0) {
            const float2 *scale =
                p.scales + ((from - (const unsigned char *)p.k) >> (__ffs(row_bytes) - 1));
            unsigned place = to - lane * 16 + ONE_KEY_BYTES + key * (unsigned)sizeof *scale;
            cp_async_zero_fill<4>(place, &scale->x, 4);
            cp_async_zero_fill<4>(place + 4, &scale->y, 4);
        }
        from += 32 / lanes * p.key_bytes;
    }
#endif
}

/* Issues the prefetch of the next slice into stage `stage`, which has been read. */
static __device__ __forceinline__ void prefetch_slice(struct pipeline *pipe, unsigned stage,
                                                      const struct one_arguments &p) {
    struct cursor *c = &pipe->next;
    if (c->kind != ONE_END) {
        unsigned to = pipe->stages + stage * ONE_STAGE_STRIDE;
        if (c->kind == ONE_KEYS) {
            copy_keys(to, c->from, c->left > 1 ? ~0u : c->slice, c->share.row_bytes, p);
        } else if (ONE_SLICES_ARE_RUNS || c->slice + 1 < c->share.slices ||
                   c->share.row_bytes % ONE_STAGE_BYTES == 0) {
            copy_slice<true>(to, c->from, ONE_STAGE_BYTES);
        } else {
            copy_slice<false>(to, c->from, c->share.row_bytes - c->slice * ONE_STAGE_BYTES);
        }
        advance(c, pipe->plan, p);
    }
    cp_async_commit();
}

/*
 * Creates the warp's pipeline and issues its first prefetches. @param stages all warps'
 *
 * The kernel is set up while a token is drawn (programmatic dependent launch). Weights may be read
 * meanwhile, but no keys, which the kernels before this one may still write; those, and everything
 * behind this function, come after the wait for them.
 */
static __device__ __forceinline__ struct pipeline pipeline_prologue(const unsigned char *stages,
                                                                    const struct plan *plan,
                                                                    const struct one_arguments &p) {
    struct pipeline pipe = {};
    pipe.stages = shared_address(stages) + threadIdx.x / 32 * (ONE_STAGES * ONE_STAGE_STRIDE);
    pipe.next = cursor_create(plan, p);
    pipe.plan = plan;
    int first = 0;
#pragma unroll 1
    for (; first < ONE_STAGES && pipe.next.kind == ONE_QKV; first++) {
        prefetch_slice(&pipe, first, p);
    }
    wait_on_dependent_grids();
#pragma unroll 1
    for (; first < ONE_STAGES; first++) {
        prefetch_slice(&pipe, first, p);
    }
    return pipe;
}

/* Waits for the oldest stage. Each lane reads only bytes that it has copied itself, but where the
 * stage has scales. */
static __device__ __forceinline__ unsigned pipeline_wait(const struct pipeline *pipe) {
    cp_async_wait<ONE_STAGES - 1>();
    if (ONE_KEYS_HAVE_SCALES) {
        __syncwarp();
    }
    return pipe->stages + pipe->oldest * ONE_STAGE_STRIDE;
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

static __device__ __forceinline__ float2 read_shared_pair(unsigned address) {
    float2 x;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                 : "=f"(x.x), "=f"(x.y)
                 : "r"(address)
                 : "memory");
    return x;
}

/*
 * Releases the oldest stage, which has been read: its next prefetch is issued, or held back. A warp
 * that holds one back holds all later ones back, too, until issue_all_held_back(). An empty group
 * is committed in its place, so that pipeline_wait() never waits for too few.
 *
 */
static __device__ __forceinline__ void pipeline_release(struct pipeline *pipe, bool hold_back,
                                                        const struct one_arguments &p) {
    if (ONE_KEYS_HAVE_SCALES) {
        __syncwarp(); /* other lanes have read it, too */
    }
    if (hold_back) {
        pipe->held_back++;
        cp_async_commit();
    } else {
        prefetch_slice(pipe, pipe->oldest, p);
    }
    pipe->oldest = pipe->oldest + 1 == ONE_STAGES ? 0 : pipe->oldest + 1;
}

/* Issues the oldest prefetch held back, if there is one. */
static __device__ __forceinline__ void issue_held_back(struct pipeline *pipe,
                                                       const struct one_arguments &p) {
    if (pipe->held_back > 0) {
        unsigned stage = pipe->oldest + ONE_STAGES - pipe->held_back;
        prefetch_slice(pipe, stage < ONE_STAGES ? stage : stage - ONE_STAGES, p);
        pipe->held_back--;
    }
}

/* Has L2 fetch slice `ahead` behind those that the pipeline has asked for, if it is of the same
 * matrix. */
static __device__ __forceinline__ void prefetch_ahead(const struct pipeline *pipe, unsigned ahead) {
    enum { LINE = 128 };
    const struct cursor *c = &pipe->next;
    unsigned at = threadIdx.x % 32 * LINE;
    if (c->kind != ONE_END && c->kind != ONE_KEYS && ahead < c->left && at < ONE_STAGE_BYTES) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(c->from + ahead * ONE_STAGE_BYTES + at));
    }
}

static __device__ __forceinline__ void issue_all_held_back(struct pipeline *pipe,
                                                           const struct one_arguments &p) {
#pragma unroll 1
    while (pipe->held_back > 0) {
        issue_held_back(pipe, p);
    }
}

#endif
