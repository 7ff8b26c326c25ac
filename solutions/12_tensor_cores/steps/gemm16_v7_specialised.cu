/**
 * @file gemm16_v7_specialised.cu
 * @brief Step 7: warps with roles, a producer and consumers, and registers where they are needed.
 *
 * Changes since v6: a warpgroup of its own starts the copies and gives its registers back
 * (setmaxnreg 24); two others multiply, with 240 registers a thread: enough for m64n256, a tile of
 * 128 x 256. A consumer waits for the products of a step only after it has started the next ones.
 *
 * Why: 128 x 256 reads 80 bytes of shared memory a cycle instead of 96, and three quarters of v6's
 * bytes from L2 for a product. The tensor cores always have a step queued. What limits it now: a
 * block that has ended its products stores results, while its multiprocessor multiplies nothing.
 */
#include "solutions/12_tensor_cores/steps/direct_launch.cuh"

template <typename E> using tile_of = hopper_tile<E, 256, 1, TOP_AND_BOTTOM, ALONE>;

enum status gemm16_v7_specialised(const struct gemm16_problem *p, void *workspace,
                                  device_stream stream, struct error *error) {
    bool done;
    TRY(begin_direct<tile_of<__half>>(p, "v7_specialised", workspace, stream, &done, error));
    return done ? STATUS_OK : for_element(p->dtype, [&](auto type) {
        return launch_direct<tile_of<typename decltype(type)::E>>(p, 1, false, stream, error);
    });
}
