#include "common/simt/runtime/gpu/link.h"

#include <stddef.h>
#include <string.h>

#include "common/simt/runtime/gpu/gpu.h"

/*
 * H100: measured on two of them (18 NVLinks): a kernel that pulls gets 369 GB/s, and a counter goes
 * there and back in 2.8 us. The others were not measured. H200: its links are the H100's. A100 and
 * B200: the same share of 12 and 18 links as the datasheet has them, 300 and 900 GB/s each way.
 * Over PCIe a copy has what one between host and device has, and a store twice NVLink's latency.
 */
static const struct {
    const char *key;
    struct simt_link link;
} LINKS[] = {
    {"a100", {.peers = true, .nvlink = true, .bandwidth = 246, .latency = 1400}},
    {"h100", {.peers = true, .nvlink = true, .bandwidth = 369, .latency = 1400}},
    {"h200", {.peers = true, .nvlink = true, .bandwidth = 369, .latency = 1400}},
    {"b200", {.peers = true, .nvlink = true, .bandwidth = 738, .latency = 1400}},
    {"t4", {.peers = true, .bandwidth = 12, .latency = 2800}},
    {"l4", {.peers = true, .bandwidth = 25, .latency = 2800}},
    /* NVIDIA's driver lets no GeForce reach another one over PCIe: copies go through the host. */
    {"rtx3060", {.bandwidth = 12, .latency = 2800}},
    {"rtx3090", {.bandwidth = 12, .latency = 2800}},
    {"rtx4090", {.bandwidth = 12, .latency = 2800}},
    {"rtx5090", {.bandwidth = 27, .latency = 2800}},
};

const struct simt_link *simt_gpu_link(const struct simt_gpu *gpu) {
    static const struct simt_link unknown = {.bandwidth = 12, .latency = 2800};
    for (size_t n = 0; n < sizeof LINKS / sizeof *LINKS; n++) {
        if (strcmp(LINKS[n].key, gpu->key) == 0) {
            return &LINKS[n].link;
        }
    }
    return &unknown;
}

double simt_link_copy(const struct simt_gpu *gpu, size_t bytes) {
    const double overhead = 4500; /* as of a copy within the device: MODEL.md */
    const struct simt_link *link = simt_gpu_link(gpu);
    double once = link->latency + (double)bytes / link->bandwidth;
    return overhead + (link->peers ? once : 2 * once); /* else to the host, and from there */
}
