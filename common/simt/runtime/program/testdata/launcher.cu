// A kernel that starts a kernel, which simt refuses.
#include <cstdio>

__global__ void child(int *out) {
    out[0] = 1;
}

__global__ void parent(int *out) {
    child<<<1, 1>>>(out);
}

int main() {
    parent<<<1, 1>>>(NULL);
    printf("%s\n", cudaGetErrorName(cudaGetLastError()));
    return 0;
}
