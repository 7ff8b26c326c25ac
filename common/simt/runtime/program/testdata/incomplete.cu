// A kernel that calls a function of a file that is not there.
#include <cstdio>

__device__ int missing(int x);

__global__ void calls_missing(int *out) {
    out[0] = missing(1);
}

int main() {
    calls_missing<<<1, 1>>>(NULL);
    printf("%s\n", cudaGetErrorName(cudaGetLastError()));
    return 0;
}
