/**
 * @file multiply_unit.cuh
 * @brief A warp multiplies a unit of 16 rows on tensor cores: weights in registers, as they are
 * stored, and `in` from wherever a kernel has it.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_STEPS_MULTIPLY_UNIT_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_STEPS_MULTIPLY_UNIT_CUH_

#include "common/cuda/mma.cuh"
#include "solutions/13_low_bit/steps/fragments.cuh"
#include "solutions/13_low_bit/steps/unpack.cuh"

/* A kernel's form. GROUP: columns with one scale, 0: the row. NT: eights of rows of `in`. */
template <enum low_bit_type TYPE_, int GROUP_, typename S_, int NT_, int R_, int WARPS_, int DEPTH_,
          bool CHAINED_ = false>
struct form {
    static constexpr enum low_bit_type TYPE = TYPE_;
    static constexpr int GROUP = GROUP_, NT = NT_, R = R_, WARPS = WARPS_, DEPTH = DEPTH_;
    static constexpr int UNIT = TYPE == LOW_BIT_INT4 ? 128 : 64; /* columns */
    static constexpr int GROUPS = GROUP == 0 ? 0 : UNIT / GROUP; /* in a unit */
    static constexpr int SUMS = R * NT * 4;                      /* of a lane */
    static constexpr bool CHAINED = CHAINED_; /* launched by launch_dependent() */
    typedef S_ S;                             /* of scales by group */
};

static __device__ __forceinline__ float scale_of(uint32_t entry, __nv_bfloat16) {
    return __uint_as_float(entry << 16);
}

static __device__ __forceinline__ float scale_of(uint32_t, float) {
    return 1.0f; /* scales by row are applied at the end */
}

static __device__ __forceinline__ float scale_of(uint32_t entry, __half) {
    return __half2float(__ushort_as_half((unsigned short)entry));
}

/* What a lane has in flight: a unit of each of its tiles. */
template <typename F> struct unit_registers {
    uint4 values[F::R][2];
    uint32_t scales[F::R][F::GROUPS > 0 ? F::GROUPS : 1][2];
};

static __device__ __forceinline__ unsigned word_of(const uint4 &x, int i) {
    return i == 0 ? x.x : i == 1 ? x.y : i == 2 ? x.z : x.w;
}

/* The fragment of step s (0, 1) of 32 columns; `half`: which 32 of the unit's. */
template <typename F>
static __device__ __forceinline__ struct fragment weights_of(const struct unit_registers<F> &u,
                                                             int r, int half, int s) {
    struct fragment a;
    if constexpr (F::TYPE == LOW_BIT_INT4) {
        unsigned word = word_of(u.values[r][half / 2], half % 2 * 2 + s);
        int group = half * 32 / F::GROUP;
        unsigned zero = __byte_perm(u.scales[r][group][0], 0, 0x3232);
        unsigned zero8 = __byte_perm(u.scales[r][group][1], 0, 0x3232);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            a.x[i] = unpack_int4(word, i, i % 2 == 0 ? zero : zero8);
        }
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            unsigned word = word_of(u.values[r][half], s * 2 + i / 2);
            a.x[i] = F::TYPE == LOW_BIT_INT8 ? unpack_int8(word, i % 2) : unpack_fp8(word, i % 2);
        }
    }
    return a;
}

/* sums += scale * part, and part = 0; scales of rows g and g + 8. */
static __device__ __forceinline__ void add_scaled(float *sums, float *part, float scale,
                                                  float scale8) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        sums[i] += (i < 2 ? scale : scale8) * part[i];
        part[i] = 0.0f;
    }
}

/* sums += a unit times its columns of `in`, of which in(n, column) is the lane's eight from
 * `column`
 * + 8 (lane % 4) on: of row 8n + lane / 4. */
template <typename F, typename INPUT>
static __device__ __forceinline__ void multiply_unit(float (*sums)[F::NT][4],
                                                     const struct unit_registers<F> &u,
                                                     const INPUT &in, unsigned unit) {
    float parts[F::R][F::NT][4] = {};
#pragma unroll
    for (int half = 0; half < F::UNIT / 32; half++) {
        uint4 x[F::NT];
#pragma unroll
        for (int n = 0; n < F::NT; n++) {
            x[n] = in(n, unit * F::UNIT + half * 32);
        }
#pragma unroll
        for (int r = 0; r < F::R; r++) {
            float(*to)[4] = F::GROUP == 0 ? sums[r] : parts[r];
#pragma unroll
            for (int s = 0; s < 2; s++) {
                struct fragment a = weights_of<F>(u, r, half, s);
#pragma unroll
                for (int n = 0; n < F::NT; n++) {
                    mma_m16n8k16(to[n], a, word_of(x[n], 2 * s), word_of(x[n], 2 * s + 1),
                                 __nv_bfloat16());
                }
            }
            if (F::GROUP != 0 && (half + 1) * 32 % (F::GROUP != 0 ? F::GROUP : 1) == 0) {
                const uint32_t *entry = u.scales[r][F::GROUP != 0 ? half * 32 / F::GROUP : 0];
#pragma unroll
                for (int n = 0; n < F::NT; n++) {
                    add_scaled(sums[r][n], parts[r][n], scale_of(entry[0], typename F::S()),
                               scale_of(entry[1], typename F::S()));
                }
            }
        }
    }
}

#endif
