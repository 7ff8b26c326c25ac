/** What the two files of the program `linked` share. */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_PROGRAM_TESTDATA_LINKED_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_PROGRAM_TESTDATA_LINKED_H_

typedef int operation(int x);

extern __device__ int counter;
extern __constant__ int weights[4];
extern __device__ operation *operations[2];
extern __managed__ int managed;

__device__ int twice(int x);
__device__ void store_beyond(int *array, int count);

// Of each file that calls it: nvcc keeps one.
template <int N> __device__ __noinline__ int add(int x) {
    return x + N;
}

void launch_other(int *d_out);

#endif
