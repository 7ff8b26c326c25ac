// One block of one warp each; sites_test.c finds the counts of these accesses by their lines.
extern "C" __global__ void sites(float *out, const float *in, int stride) {
    __shared__ float tile[32 * 33];
    int lane = threadIdx.x;
    float value = in[lane * stride];
    tile[lane * 32] = value;
    __syncthreads();
    float other = tile[31 * 33 - lane * 33];
    atomicAdd(&out[lane % 4], other);
    out[32 + lane + blockIdx.x * 32] = other;
}
