#include "grader/selftest/channels.h"

#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 256, WORDS_OF_LAUNCH = 1000, PAGE = 4096 };

struct words {
    unsigned of[WORDS_OF_LAUNCH];
};

static __constant__ unsigned constants[CHANNEL_BYTES / sizeof(unsigned)];

static __global__ void store_arguments(unsigned *to, struct words words, size_t count) {
    for (size_t i = threadIdx.x; i < count; i += THREADS) {
        to[i] = words.of[i];
    }
}

static __global__ void copy_words(unsigned *to, const unsigned *from, size_t count) {
    for (size_t i = threadIdx.x; i < count; i += THREADS) {
        to[i] = from[i];
    }
}

static __global__ void copy_constants(unsigned *to, size_t count) {
    for (size_t i = threadIdx.x; i < count; i += THREADS) {
        to[i] = constants[i];
    }
}

/* What is sent, and where. */
struct sending {
    unsigned *to;
    const unsigned *from;
    size_t bytes, count; /* count: words */
    cudaStream_t stream;
};

static cudaError_t by_arguments(const struct sending *s) {
    for (size_t at = 0; at < s->count; at += WORDS_OF_LAUNCH) {
        struct words words;
        size_t count = s->count - at < WORDS_OF_LAUNCH ? s->count - at : WORDS_OF_LAUNCH;
        memcpy(words.of, s->from + at, count * sizeof *words.of);
        store_arguments<<<1, THREADS, 0, s->stream>>>(s->to + at, words, count);
    }
    return cudaGetLastError();
}

static cudaError_t by_array(const struct sending *s) {
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned>();
    cudaError_t code = cudaMallocArray(&array, &format, s->count, 1, 0);
    if (code == cudaSuccess) {
        code = cudaMemcpy2DToArrayAsync(array, 0, 0, s->from, s->bytes, s->bytes, 1,
                                        cudaMemcpyHostToDevice, s->stream);
    }
    return code == cudaSuccess ? cudaMemcpy2DFromArrayAsync(s->to, s->bytes, array, 0, 0, s->bytes,
                                                            1, cudaMemcpyDeviceToDevice, s->stream)
                               : code;
}

static cudaError_t by_constants(const struct sending *s) {
    cudaError_t code =
        cudaMemcpyToSymbolAsync(constants, s->from, s->bytes, 0, cudaMemcpyHostToDevice, s->stream);
    copy_constants<<<1, THREADS, 0, s->stream>>>(s->to, s->count);
    return code;
}

static cudaError_t by_graph(const struct sending *s) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaGraphNode_t node;
    cudaError_t code = cudaGraphCreate(&graph, 0);
    if (code == cudaSuccess) {
        code = cudaGraphAddMemcpyNode1D(&node, graph, NULL, 0, s->to, s->from, s->bytes,
                                        cudaMemcpyHostToDevice);
    }
    code = code == cudaSuccess ? cudaGraphInstantiate(&executable, graph, 0) : code;
    return code == cudaSuccess ? cudaGraphLaunch(executable, s->stream) : code;
}

static cudaError_t read_by_kernel(const struct sending *s, void *host) {
    unsigned *there;
    cudaError_t code = cudaHostGetDevicePointer(&there, host, 0);
    if (code == cudaSuccess) {
        copy_words<<<1, THREADS, 0, s->stream>>>(s->to, there, s->count);
        code = cudaGetLastError();
    }
    return code;
}

/* What a host function is to copy. */
static struct {
    void *to;
    const void *from;
    size_t bytes;
} of_host;

static void CUDART_CB fill(void *unused) {
    (void)unused;
    memcpy(of_host.to, of_host.from, of_host.bytes);
}

static cudaError_t by_host_memory(const struct sending *s, bool by_function) {
    void *host;
    cudaError_t code = cudaHostAlloc(&host, s->bytes, cudaHostAllocMapped);
    if (code != cudaSuccess) {
        return code;
    }
    of_host.to = host;
    of_host.from = s->from;
    of_host.bytes = s->bytes;
    if (!by_function) {
        fill(NULL);
        return read_by_kernel(s, host);
    }
    code = cudaLaunchHostFunc(s->stream, fill, NULL);
    return code == cudaSuccess
               ? cudaMemcpyAsync(s->to, host, s->bytes, cudaMemcpyHostToDevice, s->stream)
               : code;
}

static cudaError_t by_managed(const struct sending *s) {
    void *managed;
    cudaError_t code = cudaMallocManaged(&managed, s->bytes, cudaMemAttachGlobal);
    if (code != cudaSuccess) {
        return code;
    }
    memcpy(managed, s->from, s->bytes);
    return cudaMemcpyAsync(s->to, managed, s->bytes, cudaMemcpyDeviceToDevice, s->stream);
}

static cudaError_t by_registered(const struct sending *s) {
    size_t room = (s->bytes + PAGE - 1) / PAGE * PAGE;
    void *host = aligned_alloc(PAGE, room);
    cudaError_t code = host != NULL ? cudaHostRegister(host, room, cudaHostRegisterMapped)
                                    : cudaErrorMemoryAllocation;
    if (code != cudaSuccess) {
        return code;
    }
    memcpy(host, s->from, s->bytes);
    return read_by_kernel(s, host);
}

static cudaError_t by(enum channel channel, const struct sending *s) {
    switch (channel) {
    case CHANNEL_ARGUMENTS:
        return by_arguments(s);
    case CHANNEL_ARRAY:
        return by_array(s);
    case CHANNEL_CONSTANTS:
        return by_constants(s);
    case CHANNEL_GRAPH:
        return by_graph(s);
    case CHANNEL_HOST_FUNCTION:
        return by_host_memory(s, true);
    case CHANNEL_MANAGED:
        return by_managed(s);
    case CHANNEL_MAPPED:
        return by_host_memory(s, false);
    case CHANNEL_REGISTERED:
        return by_registered(s);
    }
    return cudaErrorInvalidValue;
}

enum status channel_send(enum channel channel, void *to, const void *from, size_t bytes,
                         device_stream stream, struct error *error) {
    const struct sending sending = {(unsigned *)to, (const unsigned *)from, bytes,
                                    bytes / sizeof(unsigned), (cudaStream_t)stream};
    cudaError_t code = by(channel, &sending);
    return code == cudaSuccess
               ? STATUS_OK
               : error_set(error, STATUS_DEVICE, "sending: %s", cudaGetErrorString(code));
}
