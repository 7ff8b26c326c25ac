/* Needs the CUDA runtime, and holds one fat binary with one image: machine code for sm_90. */
#include <cuda_runtime_api.h>

__attribute__((section(".nv_fatbin"))) static const volatile unsigned long long FATBIN[] = {
    0x00100001ba55ed50, 72, 0x0000004001010002, 8, 0, 0x0000005a00000000, 0, 0, 0, 0, 0};

int main(void) {
    int count = (int)FATBIN[2];
    return cudaGetDeviceCount(&count);
}
