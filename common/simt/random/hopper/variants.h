/**
 * @file variants.h
 * @brief The forms of wgmma that random programs use.
 *
 * Each row: form, registers of sums, kind of sums (FLOATS, INTEGERS), where a comes from (SHARED,
 * REGISTERS), what follows scale-d; formats of a and b, N, and whether a and b are transposed or a
 * negated.
 */
#ifndef WARPBOOK_COMMON_SIMT_RANDOM_HOPPER_VARIANTS_H_
#define WARPBOOK_COMMON_SIMT_RANDOM_HOPPER_VARIANTS_H_

#define RH_HALVES(X, T, F)                                                             \
    X("m64n64k16.f32." T "." T, 32, FLOATS, SHARED, ", 1, 1, 0, 0", F, F, 64, 0, 0, 0) \
    X("m64n64k16.f32." T "." T, 32, FLOATS, SHARED, ", 1, 1, 1, 0", F, F, 64, 1, 0, 0) \
    X("m64n64k16.f32." T "." T, 32, FLOATS, SHARED, ", 1, 1, 0, 1", F, F, 64, 0, 1, 0) \
    X("m64n64k16.f32." T "." T, 32, FLOATS, SHARED, ", 1, 1, 1, 1", F, F, 64, 1, 1, 0) \
    X("m64n64k16.f32." T "." T, 32, FLOATS, REGISTERS, ", 1, 1, 0", F, F, 64, 0, 0, 0) \
    X("m64n64k16.f32." T "." T, 32, FLOATS, REGISTERS, ", 1, 1, 1", F, F, 64, 0, 1, 0) \
    X("m64n8k16.f32." T "." T, 4, FLOATS, SHARED, ", 1, 1, 0, 0", F, F, 8, 0, 0, 0)    \
    X("m64n8k16.f32." T "." T, 4, FLOATS, REGISTERS, ", 1, 1, 0", F, F, 8, 0, 0, 0)    \
    X("m64n8k16.f32." T "." T, 4, FLOATS, SHARED, ", -1, 1, 0, 0", F, F, 8, 0, 0, 1)

#define RH_LIST(X)                                                                               \
    RH_HALVES(X, "f16", RH_F16)                                                                  \
    RH_HALVES(X, "bf16", RH_BF16)                                                                \
    X("m64n64k8.f32.tf32.tf32", 32, FLOATS, SHARED, ", 1, 1", RH_F32, RH_F32, 64, 0, 0, 0)       \
    X("m64n64k8.f32.tf32.tf32", 32, FLOATS, REGISTERS, ", 1, 1", RH_F32, RH_F32, 64, 0, 0, 0)    \
    X("m64n8k8.f32.tf32.tf32", 4, FLOATS, SHARED, ", 1, 1", RH_F32, RH_F32, 8, 0, 0, 0)          \
    X("m64n64k32.f32.e4m3.e4m3", 32, FLOATS, SHARED, ", 1, 1", RH_E4M3, RH_E4M3, 64, 0, 0, 0)    \
    X("m64n64k32.f32.e4m3.e4m3", 32, FLOATS, REGISTERS, ", 1, 1", RH_E4M3, RH_E4M3, 64, 0, 0, 0) \
    X("m64n64k32.f32.e5m2.e5m2", 32, FLOATS, SHARED, ", 1, 1", RH_E5M2, RH_E5M2, 64, 0, 0, 0)    \
    X("m64n8k32.f32.e4m3.e5m2", 4, FLOATS, SHARED, ", 1, 1", RH_E4M3, RH_E5M2, 8, 0, 0, 0)       \
    X("m64n64k32.f32.e5m2.e4m3", 32, FLOATS, REGISTERS, ", 1, 1", RH_E5M2, RH_E4M3, 64, 0, 0, 0) \
    X("m64n64k32.s32.s8.s8", 32, INTEGERS, SHARED, "", RH_S8, RH_S8, 64, 0, 0, 0)                \
    X("m64n64k32.s32.s8.s8", 32, INTEGERS, REGISTERS, "", RH_S8, RH_S8, 64, 0, 0, 0)             \
    X("m64n64k32.s32.u8.u8", 32, INTEGERS, SHARED, "", RH_U8, RH_U8, 64, 0, 0, 0)                \
    X("m64n8k32.s32.s8.u8", 4, INTEGERS, SHARED, "", RH_S8, RH_U8, 8, 0, 0, 0)                   \
    X("m64n8k32.s32.u8.s8", 4, INTEGERS, REGISTERS, "", RH_U8, RH_S8, 8, 0, 0, 0)                \
    X("m64n32k16.f32.f16.f16", 16, FLOATS, SHARED, ", 1, 1, 0, 0", RH_F16, RH_F16, 32, 0, 0, 0)  \
    X("m64n32k32.f32.e4m3.e4m3", 16, FLOATS, SHARED, ", 1, 1", RH_E4M3, RH_E4M3, 32, 0, 0, 0)    \
    X("m64n32k32.s32.s8.s8", 16, INTEGERS, SHARED, "", RH_S8, RH_S8, 32, 0, 0, 0)

#endif
