/**
 * @file peer.cuh
 * @brief Accesses to the shared memory of another block of the cluster.
 */
#ifndef WARPBOOK_COMMON_SIMT_CALIBRATION_HOPPER_PEER_CUH_
#define WARPBOOK_COMMON_SIMT_CALIBRATION_HOPPER_PEER_CUH_

#include "common/cuda/cluster.cuh"
#include "common/cuda/memory.cuh"

constexpr unsigned BLOCKS_IN_ALL = 128;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

constexpr unsigned WORDS = 8192; /* of a block's shared memory that others read: 32 KiB */

/* Address of `place` (of the own block's shared memory) in block `rank` of the cluster. */
__device__ __forceinline__ unsigned of_peer(const void *place, unsigned rank) {
    unsigned address;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(address)
                 : "r"(shared_address(place)), "r"(rank));
    return address;
}

template <int EACH> __device__ __forceinline__ unsigned load_peer(unsigned from) {
    unsigned v[4] = {0, 0, 0, 0};
    if constexpr (EACH == 4) {
        asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                     : "r"(from));
    } else if constexpr (EACH == 2) {
        asm volatile("ld.shared::cluster.v2.u32 {%0, %1}, [%2];"
                     : "=r"(v[0]), "=r"(v[1])
                     : "r"(from));
    } else {
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v[0]) : "r"(from));
    }
    return v[0] + v[1] + v[2] + v[3];
}

template <int EACH> __device__ __forceinline__ void store_peer(unsigned to, unsigned value) {
    if constexpr (EACH == 4) {
        asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(to), "r"(value)
                     : "memory");
    } else {
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(to), "r"(value) : "memory");
    }
}

__device__ __forceinline__ float load_peer_float(unsigned from) {
    float value;
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(from));
    return value;
}

__device__ __forceinline__ void add_to_peer(unsigned to, unsigned value) {
    asm volatile("red.shared::cluster.add.u32 [%0], %1;" ::"r"(to), "r"(value) : "memory");
}

#endif

#endif
