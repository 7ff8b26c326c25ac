/* PTX corpus: printf, assert, malloc, functions, recursion, pointers to functions, a switch. */
#include <assert.h>
#include <stdio.h>

struct pair {
    long long first;
    float second[4];
};

__device__ __noinline__ pair make_pair(int seed, float4 values) {
    pair result = {seed, {values.x, values.y, values.z, values.w}};
    return result;
}

__device__ __noinline__ int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ bool is_odd(unsigned n);

__device__ __noinline__ bool is_even(unsigned n) {
    return n == 0 ? true : is_odd(n - 1);
}

__device__ __noinline__ bool is_odd(unsigned n) {
    return n == 0 ? false : is_even(n - 1);
}

__global__ void call(int *out, int n) {
    pair p = make_pair(n, make_float4(1.0f, 2.0f, 3.0f, n));
    out[0] = fibonacci(n) + is_even(n) + (int)p.first + (int)p.second[n & 3];
}

__global__ void say(const float *values, int n) {
    assert(n > 0 && "a count");
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        printf("value %d of %s is %f%%, %c %lld\n", i, "the array", values[i], 'x', (long long)n);
    }
    printf("done\n");
}

__global__ void heap(int **out, int n) {
    int *list = (int *)malloc(n * sizeof(int));
    if (list == nullptr) {
        __trap();
    }
    for (int i = 0; i < n; i++) {
        list[i] = i;
    }
    *out = list;
    free(list);
    double *more = new double[n];
    delete[] more;
}

__global__ void many_cases(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int x = in[i];
    switch (n) {
    case 0:
        x = x * 3 + out[1];
        break;
    case 1:
        x = x / (out[2] | 1);
        break;
    case 2:
        x ^= out[x & 7];
        break;
    case 3:
        atomicAdd(out, x);
        break;
    case 4:
        x = __popc(x);
        __syncthreads();
        break;
    case 5:
        x = __clz(x) << 3;
        break;
    case 6:
        x = fibonacci(x);
        break;
    case 8:
        return;
    default:
        x = -x;
    }
    out[i] = x;
}

struct shape {
    __device__ virtual float area() const = 0;
    __device__ virtual float scaled(float factor) const {
        return area() * factor;
    }
};

struct square : shape {
    float side;
    __device__ float area() const override {
        return side * side;
    }
};

struct disc : shape {
    float radius;
    __device__ float area() const override {
        return 3.14159265f * radius * radius;
    }
};

__global__ void virtual_calls(float *out, int which) {
    square s;
    s.side = 2.0f;
    disc d;
    d.radius = 1.0f;
    const shape *shapes[2] = {&s, &d};
    out[threadIdx.x] = shapes[(which + threadIdx.x) & 1]->scaled(out[0]);
}

__global__ void parent(float *out, int n) {
    if (n > 3) {
        __brkpt();
    }
    __nanosleep(100);
    out[0] = (float)clock64() + clock() + __isGlobal(out);
}
