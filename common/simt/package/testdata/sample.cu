/* A correct program; with VIDEO, one with an instruction that simt does not run. */
#include <cstdio>

#include <cuda_runtime.h>

__global__ void increment(int *numbers, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        int more = numbers[i] + 1;
#ifdef VIDEO
        asm("vadd.s32.s32.s32 %0, %0, %0;" : "+r"(more));
#endif
        numbers[i] = more;
    }
}

int main() {
    enum { COUNT = 100 };
    int *numbers;
    int last = 0;
    cudaMalloc(&numbers, COUNT * sizeof *numbers);
    cudaMemset(numbers, 0, COUNT * sizeof *numbers);
    increment<<<1, 128>>>(numbers, COUNT);
    cudaMemcpy(&last, numbers + COUNT - 1, sizeof last, cudaMemcpyDeviceToHost);
    cudaFree(numbers);
    printf("%d\n", last);
    return last == 1 ? 0 : 3;
}
