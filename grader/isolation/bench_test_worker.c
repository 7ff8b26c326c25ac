/* A worker with a real device: simt here, in its own process or the grader's. */
#include <cuda_runtime_api.h>

#include "common/device/device.h"
#include "common/simt/fatbin/fatbin_image.h"
#include "grader/isolation/test_calls.h"
#include "grader/isolation/worker.h"

/* What nvcc's code calls before main(). */
void **__cudaRegisterFatBinary(const void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFunction(void **handle, const void *host, char *device, const char *name,
                            int thread_limit, void *tid, void *bid, void *block, void *grid,
                            int *warp_size);

static const char PTX[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                          ".visible .entry k()\n{\n    ret;\n}\n";

static enum status copy(void *arguments, struct error *error) {
    const struct copy_call *c = arguments;
    return device_copy(c->to, c->from, c->bytes, (device_stream)c->stream, error);
}

/* Registers a kernel "k" that does nothing, with machine code of another one. */
static void register_kernel(const char *host, unsigned registers) {
    enum { KIND_PTX = 1, KIND_CODE, ARCHITECTURE = 75 };
    static struct fatbin_image image;
    static struct {
        uint32_t magic, version;
        const void *data;
        void *unused;
    } wrapper = {0x466243b1, 1, image.bytes, NULL};
    static char name[] = "k";
    struct cubin_image code;
    cubin_image_make(&code, name, registers);
    fatbin_image_add(&image, KIND_PTX, ARCHITECTURE, 0, PTX);
    fatbin_image_add_bytes(&image, KIND_CODE, ARCHITECTURE, 0, &code, sizeof code);
    void **handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(handle, host, name, name, -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFatBinaryEnd(handle);
}

static enum status ask_registers(void *arguments, struct error *error) {
    static const char kernel;
    struct registers_call *c = arguments;
    struct cudaFuncAttributes attributes;
    register_kernel(&kernel, (unsigned)c->said);
    cudaError_t code = cudaFuncGetAttributes(&attributes, &kernel);
    if (code != cudaSuccess) {
        return error_set(error, STATUS_DEVICE, "a kernel's attributes: %s",
                         cudaGetErrorString(code));
    }
    c->taken = attributes.numRegs;
    return STATUS_OK;
}

static const struct worker_entry entries[] = {
    {"copy", sizeof(struct copy_call), copy},
    {"registers", sizeof(struct registers_call), ask_registers},
    {0}};

const struct worker worker = {entries, &worker_device};
