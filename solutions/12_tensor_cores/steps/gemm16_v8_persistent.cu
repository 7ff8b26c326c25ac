/**
 * @file gemm16_v8_persistent.cu
 * @brief Step 8: blocks that stay, the order of tiles, and the ping-pong schedule.
 *
 * Changes since v7: a block a multiprocessor takes tile after tile; its producer already copies for
 * the next one while the consumers store. Tiles go down eight rows of tiles before they go right,
 * so that those in flight together share rows and columns in L2. Where K is short, each consumer
 * warpgroup has tiles of 128 x 128 of its own, and one multiplies while the other one stores
 * (ping-pong); else both share one of 128 x 256 (cooperative).
 *
 * Why: prologue and epilogue of a tile cost as much as some steps of K, and with K = 768 there are
 * but twelve. What limits it now: L2, which each block asks for 48 KiB every 1024 cycles.
 */
#include "solutions/12_tensor_cores/steps/direct_launch.cuh"

template <typename E> using cooperative = hopper_tile<E, 256, 1, TOP_AND_BOTTOM, ALONE>;
template <typename E> using pingpong = hopper_tile<E, 128, 2, IN_TURN, ALONE>;

enum status gemm16_v8_persistent(const struct gemm16_problem *p, void *workspace,
                                 device_stream stream, struct error *error) {
    constexpr unsigned BAND = 8;
    constexpr size_t SHORT = 1024; /* K */
    bool done;
    TRY(begin_direct<cooperative<__half>>(p, "v8_persistent", workspace, stream, &done, error));
    return done ? STATUS_OK : for_element(p->dtype, [&](auto type) {
        typedef typename decltype(type)::E E;
        return p->K <= SHORT ? launch_direct<pingpong<E>>(p, BAND, true, stream, error)
                             : launch_direct<cooperative<E>>(p, BAND, true, stream, error);
    });
}
