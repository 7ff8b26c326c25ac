/* PTX corpus: variables in every space, with initial values of every kind. */
#include <stdint.h>

struct mixed {
    char letter;
    double number;
    const char *text;
    int list[3];
};

__device__ int numbers[5] = {1, -2, 3, 0x7fffffff, -2147483647 - 1};
__device__ float floats[4] = {1.0f, -0.5f, 3.25e-20f, 1e30f};
__device__ double doubles[3] = {0.1, -1e300, 4.9e-324};
__device__ long long wide[2] = {-1, 0x123456789abcdefll};
__device__ unsigned char bytes[7] = {0, 1, 2, 250, 255, 7, 9};
__device__ short shorts[3] = {-1, 300, -300};
__device__ const char *const names[3] = {"alpha", "line\n\"quoted\"\t\\", "\001\377"};
__device__ int *third = &numbers[2];
__device__ float *floats_end = floats + 4;
__device__ mixed record = {'m', 2.5, "text of the record", {4, 5, 6}};
__constant__ mixed records[2] = {{'a', 1.0, "first", {1}}, {'b', -1.0, nullptr, {2, 3}}};
__constant__ float weights[6] = {0.5f, 0.25f, 0.125f};
__constant__ int unset[300];
__device__ uint4 aligned_value = {1, 2, 3, 4};
__device__ __managed__ int managed_counter = 11;
__device__ bool flag = true;

typedef float (*operation)(float, float);

__device__ __noinline__ float plus(float a, float b) {
    return a + b;
}

__device__ __noinline__ float minus(float a, float b) {
    return a - b;
}

__device__ operation operations[2] = {plus, minus};
__constant__ operation default_operation = minus;

extern "C" __global__ void read_everything(float *out, int i) {
    __shared__ double shared_double;
    __shared__ char shared_bytes[10];
    shared_double = doubles[i % 3];
    shared_bytes[i % 10] = names[i % 3][0];
    __syncthreads();
    out[0] = floats[i] + numbers[i] + wide[i & 1] + bytes[i] + shorts[i % 3] + *third;
    out[1] = shared_double + shared_bytes[(i + 1) % 10] + floats_end[-1] + record.text[i];
    out[2] = records[i & 1].number + weights[i] + unset[i] + aligned_value.z + managed_counter;
    out[3] = operations[i & 1](out[0], out[1]) + default_operation(out[1], out[2]) + flag;
    numbers[i] = record.list[i % 3] + (int)record.letter;
}

struct block {
    float values[8];
    short tag;
};

/* A structure by value, and small types, as kernel parameters. */
__global__ void parameters(block by_value, char c, short s, bool b, double d, float3 v,
                           float *out) {
    out[threadIdx.x] = by_value.values[threadIdx.x % 8] + by_value.tag + c + s + b + d + v.y;
    by_value.values[threadIdx.x % 8] = 1.0f;
    out[threadIdx.x + 1] = by_value.values[s];
}
