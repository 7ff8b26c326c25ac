/* Kernels for corpus_decode_test: calls through pointers and virtual functions. */
typedef int (*operation)(int, int);

__device__ __noinline__ int plus(int a, int b) {
    return a + b;
}

__device__ __noinline__ int minus(int a, int b) {
    return a - b;
}

__device__ __noinline__ int times(int a, int b) {
    return a * b;
}

__device__ operation operations[3] = {plus, minus, times};

struct shape {
    __device__ virtual int area() const = 0;
};

struct square : shape {
    int side;
    __device__ square(int side) : side(side) {
    }
    __device__ int area() const override {
        return side * side;
    }
};

struct bar : shape {
    int length;
    __device__ bar(int length) : length(length) {
    }
    __device__ int area() const override {
        return length;
    }
};

/* Lanes of a warp call different functions. */
extern "C" __global__ void through_a_table(int *out) {
    int t = threadIdx.x;
    out[t] = operations[t % 3](t, 5);
}

extern "C" __global__ void of_objects(int *out) {
    int t = threadIdx.x;
    square s(t);
    bar b(t + 1);
    const shape *chosen = t % 2 == 0 ? (const shape *)&s : (const shape *)&b;
    out[t] = chosen->area();
}

/* The pointer comes from memory. */
extern "C" __global__ void through_a_value(const operation *pointer, int *out) {
    out[0] = (*pointer)(1, 2);
}
