/**
 * @file attend.cu
 * @brief Launches the kernels of steps v4 to v6: which template, how many blocks.
 */
#include "solutions/09_kv_cache/attend.cuh"
#include "solutions/09_kv_cache/ladder.h"
#include "solutions/09_kv_cache/ring.cuh"

/* Blocks that a part of the GPU's multiprocessors has at a time. */
enum { BLOCKS_A_MULTIPROCESSOR = 2, PARTS_ALIGNMENT = 64 };

static unsigned multiprocessors(void) {
    int device = 0, count = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) != cudaSuccess) {
        return 1; /* the launch reports it */
    }
    return (unsigned)count;
}

/* Parts of the longest context: as many blocks as run at a time, and room for the results. */
static unsigned splits_for(const struct kv_attention *a, unsigned bundles, size_t group,
                           size_t floats) {
    size_t wanted = (size_t)multiprocessors() * BLOCKS_A_MULTIPROCESSOR / bundles;
    size_t keys = ceil_div(a->longest, ATTEND_KEYS);
    size_t room = floats / (bundles * group * (a->HS + 2));
    size_t splits = wanted < keys ? wanted : keys;
    splits = splits < room ? splits : room;
    splits = splits < ATTEND_PARTS ? splits : (size_t)ATTEND_PARTS;
    return splits > 1 ? (unsigned)splits : 1;
}

/* The workspace: the product, counters, results of parts. */
static struct attend plan_of(const struct kv_attention *a, void *workspace, bool split,
                             size_t group) {
    struct attend p = {};
    size_t group_a_key = a->NH / a->KVH;
    size_t channels = ceil_div((a->NH + 2 * a->KVH) * a->HS, PARTS_ALIGNMENT) * PARTS_ALIGNMENT;
    p.a = *a;
    p.log2_theta = log2((double)a->theta);
    p.bundles = (unsigned)(a->KVH * ceil_div(group_a_key, group));
    p.qkv = (float *)workspace;
    p.counters = (unsigned *)(p.qkv + channels);
    p.partial = (float *)p.counters + p.bundles;
    size_t used = channels + p.bundles;
    p.splits = split ? splits_for(a, p.bundles, group, KV_WORKSPACE_BYTES / sizeof(float) - used)
                     : 1;
    return p;
}

/* @return false where the GPU has not so much shared memory */
template <typename E, int LANES, int CHUNKS, bool VECTOR, int GROUP>
static bool launch_group(const struct attend &p, bool chained, device_stream stream) {
    constexpr auto kernel = attend_kernel<E, LANES, CHUNKS, VECTOR, GROUP>;
    size_t ring = sizeof(uint4) * ATTEND_PIECES * ATTEND_THREADS;
    size_t values = sizeof(float) * ATTEND_WARPS * ATTEND_CHANNELS;
    size_t bytes = VECTOR ? ring : values;
    unsigned blocks = p.splits * p.bundles;
    if (!allow_shared((const void *)kernel, bytes)) {
        return false;
    }
    if (chained) {
        launch_chained<kernel>(dim3(blocks), dim3(ATTEND_THREADS), bytes, stream, p);
    } else {
        kernel<<<blocks, ATTEND_THREADS, bytes, stream>>>(p);
    }
    return true;
}

template <typename E, int LANES, int CHUNKS>
static bool launch_lanes(const struct attend &p, size_t group, bool chained, device_stream stream) {
    return group == 1 ? launch_group<E, LANES, CHUNKS, true, 1>(p, chained, stream)
                      : launch_group<E, LANES, CHUNKS, true, ATTEND_GROUP>(p, chained, stream);
}

/* 16 bytes at a time. */
template <typename E>
static bool launch_vectors(const struct attend &p, size_t group, bool chained,
                           device_stream stream) {
    constexpr int MOST = (int)KV_MAX_HS / wide<E>::COUNT / 32;
    size_t pieces = p.a.HS / wide<E>::COUNT;
    if (pieces <= 8) {
        return launch_lanes<E, 8, 1>(p, group, chained, stream);
    }
    if (pieces <= 16) {
        return launch_lanes<E, 16, 1>(p, group, chained, stream);
    }
    if (pieces <= 32) {
        return launch_lanes<E, 32, 1>(p, group, chained, stream);
    }
    return launch_lanes<E, 32, MOST>(p, group, chained, stream);
}

/* Element by element, a head a block. */
template <typename E>
static void launch_scalars(const struct attend &p, bool chained, device_stream stream) {
    constexpr int MOST = (int)KV_MAX_HS / wide<E>::COUNT / 32;
    (void)launch_group<E, 32, MOST, false, 1>(p, chained, stream); /* the launch reports it */
}

/* Most heads of a block. */
static size_t group_for(const struct kv_attention *a, bool vector) {
    return vector && a->NH > a->KVH ? (size_t)ATTEND_GROUP : 1;
}

static enum status launch_product_how(const struct product &p, const struct kv_launch *how,
                                      device_stream stream, struct error *error) {
    if (!how->ring || !ring_takes(&p.l)) {
        return launch_product(p, how->chained, stream, error);
    }
    unsigned blocks = multiprocessors();
    bool done = false;
    FOR_TYPE(p.l.dtype, (done = launch_ring_for<E>(p, blocks, how->chained, stream)));
    return done ? device_launched("ring", error)
                : launch_product(p, how->chained, stream, error);
}

enum status kv_product(const struct kv_linear *linear, const struct kv_launch *how,
                       device_stream stream, struct error *error) {
    struct product p = {*linear, NULL, 0, false};
    return launch_product_how(p, how, stream, error);
}

/* Both launches. @param done receives false where the GPU has not so much shared memory */
static enum status attend_with(const struct kv_attention *a, void *workspace, bool vector,
                               const struct kv_launch *how, device_stream stream, bool *done,
                               struct error *error) {
    size_t group = group_for(a, vector);
    struct attend plan = plan_of(a, workspace, how->split, group);
    struct product product = {qkv_product(a, plan.qkv), plan.counters, plan.bundles, true};
    *done = true;
    TRY(launch_product_how(product, how, stream, error));
    if (vector) {
        FOR_TYPE(a->dtype, (*done = launch_vectors<E>(plan, group, how->chained, stream)));
    } else {
        FOR_TYPE(a->dtype, (launch_scalars<E>(plan, how->chained, stream)));
    }
    return device_launched("attend", error);
}

enum status kv_attend(const struct kv_attention *a, void *workspace, const struct kv_launch *how,
                      device_stream stream, struct error *error) {
    TRY(kv_attention_check(a, error));
    bool vector = a->HS * nn_dtype_bytes(a->dtype) % 16 == 0 && aligned_16(a->k) &&
                  aligned_16(a->v);
    bool done;
    TRY(attend_with(a, workspace, vector, how, stream, &done, error));
    return done ? STATUS_OK : attend_with(a, workspace, false, how, stream, &done, error);
}
