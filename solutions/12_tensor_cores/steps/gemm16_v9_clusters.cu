/**
 * @file gemm16_v9_clusters.cu
 * @brief Step 9: clusters of two blocks, and multicast.
 *
 * Changes since v8: two blocks with the same columns are a cluster; each fetches half of their
 * weights, and the TMA writes them to both. A stage is free when the consumers of both blocks have
 * read it.
 *
 * Why: a step of 128 x 256 asks L2 for 32 KiB instead of 48. What limits it now: the stores, which
 * use half of each sector, and in between which nothing multiplies; and tiles that do not divide
 * among 66 clusters.
 */
#include "solutions/12_tensor_cores/steps/direct_launch.cuh"

template <typename E> using cooperative = hopper_tile<E, 256, 1, TOP_AND_BOTTOM, ALONG_M>;
template <typename E> using pingpong = hopper_tile<E, 128, 2, IN_TURN, ALONG_M>;

enum status gemm16_v9_clusters(const struct gemm16_problem *p, void *workspace,
                               device_stream stream, struct error *error) {
    constexpr unsigned BAND = 8;
    constexpr size_t SHORT = 1024; /* K */
    bool done;
    TRY(begin_direct<cooperative<__half>>(p, "v9_clusters", workspace, stream, &done, error));
    return done ? STATUS_OK : for_element(p->dtype, [&](auto type) {
        typedef typename decltype(type)::E E;
        return p->K <= SHORT ? launch_direct<pingpong<E>>(p, BAND, true, stream, error)
                             : launch_direct<cooperative<E>>(p, BAND, true, stream, error);
    });
}
