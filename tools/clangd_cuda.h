/**
 * @file clangd_cuda.h
 * @brief What clangd reads before each .cu file; nothing else includes it. See compile_commands.sh.
 *
 * clang knows CUDA's language, but its own wrapper of the toolkit's headers fits older toolkits. So
 * it reads the toolkit's headers as nvcc does, but for those two that declare the C library's
 * functions again for the device: here all of those are for both sides.
 */
#ifndef WARPBOOK_TOOLS_CLANGD_CUDA_H_
#define WARPBOOK_TOOLS_CLANGD_CUDA_H_

#define __CUDACC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0

/* Has operators of its own for the device. */
#include <new>

/* glibc has functions of these names, and they are intrinsics in CUDA. */
#define __cosf warpbook_libc__cosf
#define __exp10f warpbook_libc__exp10f
#define __expf warpbook_libc__expf
#define __log10f warpbook_libc__log10f
#define __log2f warpbook_libc__log2f
#define __logf warpbook_libc__logf
#define __powf warpbook_libc__powf
#define __sincosf warpbook_libc__sincosf
#define __sinf warpbook_libc__sinf
#define __tanf warpbook_libc__tanf
#define __tanhf warpbook_libc__tanhf

#pragma clang force_cuda_host_device begin
#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#undef __cosf
#undef __exp10f
#undef __expf
#undef __log10f
#undef __log2f
#undef __logf
#undef __powf
#undef __sincosf
#undef __sinf
#undef __tanf
#undef __tanhf

/* What the C library does not have of crt/math_functions.h. */
#define WARPBOOK_MIN_MAX(type) \
    type min(type a, type b);  \
    type max(type a, type b);
WARPBOOK_MIN_MAX(int)
WARPBOOK_MIN_MAX(unsigned)
WARPBOOK_MIN_MAX(long)
WARPBOOK_MIN_MAX(unsigned long)
WARPBOOK_MIN_MAX(long long)
WARPBOOK_MIN_MAX(unsigned long long)
WARPBOOK_MIN_MAX(float)
WARPBOOK_MIN_MAX(double)
#undef WARPBOOK_MIN_MAX
extern "C" {
double rsqrt(double x);
float rsqrtf(float x);
float normcdff(float x);
float sinpif(float x);
float cospif(float x);
void sincospif(float x, float *sine, float *cosine);
}
#pragma clang force_cuda_host_device end

#define __COMMON_FUNCTIONS_H__
#define __MATH_FUNCTIONS_H__
#include <cuda_runtime.h>
#include <device_launch_parameters.h>

#endif
