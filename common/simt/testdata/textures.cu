// Kernels that use texture and surface objects: first right ones, then some with one mistake each,
// which texture_test.c expects to be stopped at the line that carries its mark.

extern "C" {

__global__ void fetch_1d(float4 *out, const float4 *at, cudaTextureObject_t t) {
    out[threadIdx.x] = tex1D<float4>(t, at[threadIdx.x].x);
}

__global__ void fetch_2d(float4 *out, const float4 *at, cudaTextureObject_t t) {
    out[threadIdx.x] = tex2D<float4>(t, at[threadIdx.x].x, at[threadIdx.x].y);
}

__global__ void fetch_3d(float4 *out, const float4 *at, cudaTextureObject_t t) {
    out[threadIdx.x] = tex3D<float4>(t, at[threadIdx.x].x, at[threadIdx.x].y, at[threadIdx.x].z);
}

__global__ void fetch_layer(float4 *out, const float4 *at, cudaTextureObject_t t) {
    out[threadIdx.x] =
        tex2DLayered<float4>(t, at[threadIdx.x].x, at[threadIdx.x].y, (int)at[threadIdx.x].z);
}

__global__ void gather(float4 *out, const float4 *at, cudaTextureObject_t t) {
    out[threadIdx.x] = tex2Dgather<float4>(t, at[threadIdx.x].x, at[threadIdx.x].y, 0);
}

__global__ void fetch_index(float *out, cudaTextureObject_t t) {
    out[threadIdx.x] = tex1Dfetch<float>(t, (int)threadIdx.x - 4);
}

// Every second lane has another texture.
__global__ void fetch_two(float *out, cudaTextureObject_t a, cudaTextureObject_t b) {
    out[threadIdx.x] = tex2D<float>(threadIdx.x % 2 ? a : b, threadIdx.x % 4 + 0.5f, 0.5f);
}

__global__ void signs_do_not_matter(unsigned *out, cudaTextureObject_t t) {
    out[threadIdx.x] = (unsigned char)tex2D<unsigned>(t, threadIdx.x % 4 + 0.5f, threadIdx.x / 4 + 0.5f);
}

__global__ void copy_surface(cudaSurfaceObject_t to, cudaSurfaceObject_t from) {
    float value;
    surf2Dread(&value, from, 4 * threadIdx.x, threadIdx.y);
    surf2Dwrite(value, to, 4 * threadIdx.x, threadIdx.y);
}

// Reads around the borders; writes there change nothing, or the border.
__global__ void beyond_on_purpose(float *out, cudaSurfaceObject_t s) {
    int x = (int)threadIdx.x - 2, y = (int)threadIdx.y - 2;
    float zero, clamped;
    surf2Dread(&zero, s, 4 * x, y, cudaBoundaryModeZero);
    surf2Dread(&clamped, s, 4 * x, y, cudaBoundaryModeClamp);
    out[threadIdx.y * blockDim.x + threadIdx.x] = 1000 * zero + clamped;
    if (x < 0) {
        surf2Dwrite(-1.0f, s, 4 * x, y, cudaBoundaryModeZero);
    }
}

__global__ void bytes_of_elements(unsigned *out, cudaSurfaceObject_t s) {
    unsigned char byte;
    surf2Dread(&byte, s, threadIdx.x, 1);
    out[threadIdx.x] = byte;
}

__global__ void sizes(unsigned *out, cudaTextureObject_t t, cudaSurfaceObject_t s) {
    asm("txq.width.b32 %0, [%1];" : "=r"(out[0]) : "l"(t));
    asm("suq.height.b32 %0, [%1];" : "=r"(out[1]) : "l"(s));
}

// Mistakes.

__global__ void floats_of_integers(float *out, cudaTextureObject_t t) {
    out[threadIdx.x] = tex2D<float>(t, threadIdx.x, 0); // FAULT: floats_of_integers
}

__global__ void integers_of_floats(int *out, cudaTextureObject_t t) {
    out[threadIdx.x] = tex2D<int>(t, threadIdx.x, 0); // FAULT: integers_of_floats
}

__global__ void one_dimension_of_two(float *out, cudaTextureObject_t t) {
    out[threadIdx.x] = tex1D<float>(t, threadIdx.x); // FAULT: one_dimension_of_two
}

__global__ void index_into_an_array(float *out, cudaTextureObject_t t) {
    out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x); // FAULT: index_into_an_array
}

__global__ void coordinates_of_memory(float *out, cudaTextureObject_t t) {
    out[threadIdx.x] = tex1D<float>(t, threadIdx.x); // FAULT: coordinates_of_memory
}

__global__ void layers_of_none(float *out, cudaTextureObject_t t) {
    out[threadIdx.x] = tex2DLayered<float>(t, threadIdx.x, 0, 0); // FAULT: layers_of_none
}

__global__ void texture_that_is_none(float *out, cudaTextureObject_t t) {
    out[threadIdx.x] = tex2D<float>(t, threadIdx.x, 0); // FAULT: texture_that_is_none
}

__global__ void texture_of_a_surface(float *out, cudaTextureObject_t t) {
    out[threadIdx.x] = tex2D<float>(t, threadIdx.x, 0); // FAULT: texture_of_a_surface
}

__global__ void texture_destroyed(float *out, cudaTextureObject_t t) {
    out[threadIdx.x] = tex2D<float>(t, threadIdx.x, 0); // FAULT: texture_destroyed
}

__global__ void array_freed(float *out, cudaTextureObject_t t) {
    out[threadIdx.x] = tex2D<float>(t, threadIdx.x, 0); // FAULT: array_freed
}

__global__ void array_never_written(float *out, cudaTextureObject_t t) {
    out[threadIdx.x] = tex2D<float>(t, threadIdx.x, 0); // FAULT: array_never_written
}

__global__ void memory_too_short(float *out, cudaTextureObject_t t) {
    out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x); // FAULT: memory_too_short
}

__global__ void surface_of_a_texture(float *out, cudaSurfaceObject_t s) {
    surf2Dread(&out[threadIdx.x], s, 4 * threadIdx.x, 0); // FAULT: surface_of_a_texture
}

__global__ void surface_destroyed(float *out, cudaSurfaceObject_t s) {
    surf2Dread(&out[threadIdx.x], s, 4 * threadIdx.x, 0); // FAULT: surface_destroyed
}

__global__ void elements_for_bytes(float *out, cudaSurfaceObject_t s) {
    surf2Dread(&out[threadIdx.x], s, threadIdx.x, 0); // FAULT: elements_for_bytes
}

__global__ void row_one_past(float *out, cudaSurfaceObject_t s) {
    surf2Dread(&out[threadIdx.x], s, 4 * threadIdx.x, 0); // FAULT: row_one_past
}

__global__ void rows_one_past(float *out, cudaSurfaceObject_t s) {
    surf2Dwrite(out[0], s, 0, threadIdx.x); // FAULT: rows_one_past
}

__global__ void planes_one_past(float *out, cudaSurfaceObject_t s) {
    surf3Dread(&out[threadIdx.x], s, 0, 0, threadIdx.x); // FAULT: planes_one_past
}

__global__ void layers_one_past(float *out, cudaSurfaceObject_t s) {
    surf2DLayeredread(&out[threadIdx.x], s, 0, 0, threadIdx.x); // FAULT: layers_one_past
}

__global__ void before_the_row(float *out, cudaSurfaceObject_t s) {
    surf1Dwrite(out[0], s, 4 * ((int)threadIdx.x - 1)); // FAULT: before_the_row
}

__global__ void four_elements_at_once(float4 *out, cudaSurfaceObject_t s) {
    surf2Dread(&out[0], s, 0, threadIdx.x); // FAULT: four_elements_at_once
}

__global__ void surface_of_two_dimensions(float *out, cudaSurfaceObject_t s) {
    surf1Dread(&out[threadIdx.x], s, 4 * threadIdx.x); // FAULT: surface_of_two_dimensions
}

__global__ void two_blocks_write(float *out, cudaSurfaceObject_t s) {
    if (threadIdx.x < 4) {
        surf2Dwrite((float)blockIdx.x, s, 4 * threadIdx.x, 0); // FAULT: two_blocks_write
    }
}

__global__ void writes_what_nobody_wrote(float *out, cudaSurfaceObject_t s) {
    __shared__ float values[32];
    if (threadIdx.x < 4) {
        surf2Dwrite(values[threadIdx.x], s, 4 * threadIdx.x, 1); // FAULT: writes_what_nobody_wrote
    }
}

}
