/**
 * @file decode_attention.cu
 * @brief Launches of steps v4 to v7: template instances and grids.
 */
#include "common/cuda/gpu_limits.cuh"
#include "solutions/09_kv_cache/steps/decode_attention.cuh"
#include "solutions/09_kv_cache/steps/ladder.h"
#include "solutions/09_kv_cache/steps/persistent.cuh"

/* Resident blocks of the attention per multiprocessor; alignment of the workspace's parts, floats.
 */
enum { BLOCKS_A_MULTIPROCESSOR = 2, WORKSPACE_ALIGNMENT = 64 };

static unsigned multiprocessors(void) {
    int count = gpu_attribute(cudaDevAttrMultiProcessorCount);
    return count > 0 ? (unsigned)count : 1;
}

/* Splits of the longest context: as many blocks as are resident, if the workspace has room for
 * their results. */
static unsigned splits_for(const struct kv_attention *a, unsigned bundles, size_t group,
                           size_t floats) {
    size_t wanted = (size_t)multiprocessors() * BLOCKS_A_MULTIPROCESSOR / bundles;
    size_t keys = ceil_div(a->longest, ATTEND_SPLIT_KEYS);
    size_t room = floats / (bundles * group * (a->HS + 2));
    size_t splits = wanted < keys ? wanted : keys;
    splits = splits < room ? splits : room;
    splits = splits < ATTEND_SPLITS ? splits : (size_t)ATTEND_SPLITS;
    return splits > 1 ? (unsigned)splits : 1;
}

/* The workspace: the product, counters, partial results. */
static struct attend plan_of(const struct kv_attention *a, void *workspace, bool split,
                             size_t group) {
    struct attend p = {};
    size_t group_a_key = a->NH / a->KVH;
    size_t channels =
        ceil_div((a->NH + 2 * a->KVH) * a->HS, WORKSPACE_ALIGNMENT) * WORKSPACE_ALIGNMENT;
    p.a = *a;
    p.log2_theta = log2((double)a->theta);
    p.bundles = (unsigned)(a->KVH * ceil_div(group_a_key, group));
    p.qkv = (float *)workspace;
    p.counters = (unsigned *)(p.qkv + channels);
    p.partial = (float *)p.counters + p.bundles;
    size_t used = channels + p.bundles;
    p.splits =
        split ? splits_for(a, p.bundles, group, KV_WORKSPACE_BYTES / sizeof(float) - used) : 1;
    return p;
}

template <typename E, int LANES, int CHUNKS, bool VECTOR, int GROUP>
static void launch_group(const struct attend &p, bool dependent, device_stream stream) {
    launch<attend_kernel<E, LANES, CHUNKS, VECTOR, GROUP>>(dependent, p.splits * p.bundles,
                                                           ATTEND_THREADS, stream, p);
}

template <typename E, int LANES, int CHUNKS>
static void launch_lanes(const struct attend &p, size_t group, bool dependent,
                         device_stream stream) {
    if (group == 1) {
        launch_group<E, LANES, CHUNKS, true, 1>(p, dependent, stream);
    } else {
        launch_group<E, LANES, CHUNKS, true, ATTEND_GROUP>(p, dependent, stream);
    }
}

/* @param vector whether heads begin 16-byte aligned */
template <typename E>
static void launch_attend(const struct attend &p, size_t group, bool vector, bool dependent,
                          device_stream stream) {
    constexpr int MOST = (int)KV_MAX_HS / VECTOR_ELEMENTS<E> / 32;
    size_t pieces = p.a.HS / VECTOR_ELEMENTS<E>;
    if (!vector) {
        launch_group<E, 32, MOST, false, 1>(p, dependent, stream);
    } else if (pieces <= 8) {
        launch_lanes<E, 8, 1>(p, group, dependent, stream);
    } else if (pieces <= 16) {
        launch_lanes<E, 16, 1>(p, group, dependent, stream);
    } else if (pieces <= 32) {
        launch_lanes<E, 32, 1>(p, group, dependent, stream);
    } else {
        launch_lanes<E, 32, MOST>(p, group, dependent, stream);
    }
}

/* Most heads of a block. */
static size_t group_for(const struct kv_attention *a, bool vector) {
    return vector && a->NH > a->KVH ? (size_t)ATTEND_GROUP : 1;
}

static enum status launch_product_or_persistent(const struct product &p,
                                                const struct kv_launch *how, device_stream stream,
                                                struct error *error) {
    if (!how->persistent || !persistent_fits(&p.l)) {
        return launch_product(p, how->dependent, stream, error);
    }
    unsigned count = multiprocessors();
    FOR_ELEMENT_TYPE(p.l.dtype, (launch_persistent<E>(p, count, how->dependent, stream)));
    return device_launched("persistent", error);
}

enum status kv_product(const struct kv_linear *linear, const struct kv_launch *how,
                       device_stream stream, struct error *error) {
    struct product p = {*linear, NULL, 0, how->order, how->activated, how->activation};
    return launch_product_or_persistent(p, how, stream, error);
}

enum status kv_attend(const struct kv_attention *a, void *workspace, const struct kv_launch *how,
                      device_stream stream, struct error *error) {
    TRY(kv_attention_check(a, error));
    bool vector =
        a->HS * nn_dtype_bytes(a->dtype) % 16 == 0 && aligned_16(a->k) && aligned_16(a->v);
    size_t group = group_for(a, vector);
    struct attend plan = plan_of(a, workspace, how->split, group);
    struct product product = {
        qkv_product(a, plan.qkv), plan.counters, plan.bundles, KV_ORDERS, false, NN_GELU};
    TRY(launch_product_or_persistent(product, how, stream, error));
    FOR_ELEMENT_TYPE(a->dtype, (launch_attend<E>(plan, group, vector, how->dependent, stream)));
    return device_launched("attend", error);
}
