/**
 * @file functions.cuh
 * @brief Functions of elements, for kernels that apply them to vectors x (and y), of which the
 *        first element has a row-major index.
 */
#ifndef WARPBOOK_LABS_11_TRAINING_GIVEN_FUNCTIONS_CUH_
#define WARPBOOK_LABS_11_TRAINING_GIVEN_FUNCTIONS_CUH_

#include "labs/11_training/given/vectors.cuh"

/* Applies a function of one or two numbers to vectors. */
template <typename F> struct vectorwise {
    template <int L>
    __device__ __forceinline__ void operator()(float (&x)[L], const float (&y)[L], size_t) const {
#pragma unroll
        for (int i = 0; i < L; i++) {
            x[i] = F::of(x[i], y[i]);
        }
    }
};

/* The share of a normal distribution below x. */
static __device__ __forceinline__ float normal_share(float x) {
    return 0.5f * (1.0f + erff(x * 0.70710678118654752f));
}

struct gelu {
    static __device__ __forceinline__ float of(float x, float) {
        return x * normal_share(x);
    }
};

/* x: what the function was given, y: the gradient of its result. */
struct gelu_gradient {
    static __device__ __forceinline__ float of(float x, float y) {
        float density = 0.39894228040143268f * __expf(-0.5f * x * x);
        return y * fmaf(x, density, normal_share(x));
    }
};

struct hyperbolic_tangent {
    static __device__ __forceinline__ float of(float x, float) {
        return tanhf(x);
    }
};

struct tangent_gradient {
    static __device__ __forceinline__ float of(float x, float y) {
        float t = tanhf(x);
        return y * (1.0f - t * t);
    }
};

/* x + y after dropout of x. */
struct dropped {
    struct drop d;

    template <int L>
    __device__ __forceinline__ void operator()(float (&x)[L], const float (&y)[L],
                                               size_t first) const {
        drop_some(x, d, first);
#pragma unroll
        for (int i = 0; i < L; i++) {
            x[i] += y[i];
        }
    }
};

#endif
