/**
 * @file gpu.c
 * @brief Table of GPUs. The H200's row was read from one; the others are NVIDIA's published
 * figures. MODEL.md says where those of the model are from.
 */
#include "common/simt/runtime/gpu/gpu.h"

#include <stdio.h>
#include <string.h>

#define KIB ((size_t)1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)

/* Shared memory since Ampere, in KiB a multiprocessor: one KiB of each block is the driver's. */
#define SHARED_MEMORY(shared, with_l1)                                             \
    .shared_per_multiprocessor = (shared)*KIB, .shared_optin = ((shared)-1) * KIB, \
    .l1_and_shared = (with_l1)*KIB, .shared_reserved = KIB, .shared_unit = 128

/* Both SXM boards of Hopper carry this chip; they differ in their memory. */
#define HOPPER_CHIP                                                                          \
    .major = 9, .minor = 0, .multiprocessors = 132, .clock_khz = 1980000,                    \
    .threads_per_multiprocessor = 2048, .blocks_per_multiprocessor = 32, .double_ratio = 2,  \
    .bus = 55, .float_lanes = 128, .tensor_flops = 2560, .l1_bytes_per_clock = 128,          \
    .l2_bandwidth = 7000, .l2_latency = 263, .memory_latency = 479, SHARED_MEMORY(228, 256), \
    .served_ahead = 8

/* A multiprocessor of a workstation's or a player's card since Ampere. */
#define SMALL_MULTIPROCESSOR(blocks)                                                    \
    SHARED_MEMORY(100, 128), .threads_per_multiprocessor = 1536,                        \
                             .blocks_per_multiprocessor = (blocks), .double_ratio = 64, \
                             .float_lanes = 128, .l1_bytes_per_clock = 128

/* Ampere without the A100. */
#define GA10X_MULTIPROCESSOR                                                                  \
    .major = 8, .minor = 6, SMALL_MULTIPROCESSOR(16), .tensor_flops = 512, .l2_latency = 262, \
    .memory_latency = 466

#define ADA_MULTIPROCESSOR \
    .major = 8, .minor = 9, SMALL_MULTIPROCESSOR(24), .l2_latency = 273, .memory_latency = 541

static const struct simt_gpu GPUS[] = {
    {.key = "t4",
     .name = "Tesla T4",
     .major = 7,
     .minor = 5,
     .multiprocessors = 40,
     .clock_khz = 1590000,
     .memory_clock_khz = 5001000,
     .bus_bits = 256,
     .memory_bytes = 15 * GIB,
     .l2_bytes = 4 * MIB,
     .shared_per_multiprocessor = 64 * KIB,
     .shared_optin = 64 * KIB,
     .l1_and_shared = 96 * KIB,
     .shared_reserved = 0,
     .shared_unit = 256,
     .threads_per_multiprocessor = 1024,
     .blocks_per_multiprocessor = 16,
     .double_ratio = 32,
     .bandwidth = 320,
     .bus = 12,
     .float_lanes = 64,
     .tensor_flops = 1024,
     .l1_bytes_per_clock = 64,
     .l2_bandwidth = 1270,
     .l2_latency = 188,
     .memory_latency = 500},
    {.key = "l4",
     .name = "NVIDIA L4",
     ADA_MULTIPROCESSOR,
     .multiprocessors = 58,
     .clock_khz = 2040000,
     .memory_clock_khz = 6251000,
     .bus_bits = 192,
     .memory_bytes = 24 * GIB,
     .l2_bytes = 48 * MIB,
     .bandwidth = 300,
     .bus = 25,
     .tensor_flops = 1024,
     .l2_bandwidth = 1830},
    {.key = "rtx3060",
     .name = "NVIDIA GeForce RTX 3060",
     GA10X_MULTIPROCESSOR,
     .multiprocessors = 28,
     .clock_khz = 1777000,
     .memory_clock_khz = 7501000,
     .bus_bits = 192,
     .memory_bytes = 12 * GIB,
     .l2_bytes = 3 * MIB,
     .bandwidth = 360,
     .bus = 25,
     .l2_bandwidth = 720},
    {.key = "rtx3090",
     .name = "NVIDIA GeForce RTX 3090",
     GA10X_MULTIPROCESSOR,
     .multiprocessors = 82,
     .clock_khz = 1695000,
     .memory_clock_khz = 9751000,
     .bus_bits = 384,
     .memory_bytes = 24 * GIB,
     .l2_bytes = 6 * MIB,
     .bandwidth = 936,
     .bus = 25,
     .l2_bandwidth = 2000},
    {.key = "rtx4090",
     .name = "NVIDIA GeForce RTX 4090",
     ADA_MULTIPROCESSOR,
     .multiprocessors = 128,
     .clock_khz = 2520000,
     .memory_clock_khz = 10501000,
     .bus_bits = 384,
     .memory_bytes = 24 * GIB,
     .l2_bytes = 72 * MIB,
     .bandwidth = 1008,
     .bus = 25,
     .tensor_flops = 512,
     .l2_bandwidth = 5000},
    {.key = "rtx5090",
     .name = "NVIDIA GeForce RTX 5090",
     .major = 12,
     .minor = 0,
     .multiprocessors = 170,
     .clock_khz = 2407000,
     .memory_clock_khz = 14001000,
     .bus_bits = 512,
     .memory_bytes = 32 * GIB,
     .l2_bytes = 96 * MIB,
     SMALL_MULTIPROCESSOR(24),
     .bandwidth = 1792,
     .bus = 55,
     .tensor_flops = 512,
     .l2_bandwidth = 6340,
     .l2_latency = 273,
     .memory_latency = 541},
    {.key = "a100",
     .name = "NVIDIA A100-SXM4-80GB",
     .major = 8,
     .minor = 0,
     .multiprocessors = 108,
     .clock_khz = 1410000,
     .memory_clock_khz = 1593000,
     .bus_bits = 5120,
     .memory_bytes = 80 * GIB,
     .l2_bytes = 40 * MIB,
     SHARED_MEMORY(164, 192),
     .threads_per_multiprocessor = 2048,
     .blocks_per_multiprocessor = 32,
     .double_ratio = 2,
     .bandwidth = 2039,
     .bus = 25,
     .float_lanes = 64,
     .tensor_flops = 2048,
     .l1_bytes_per_clock = 128,
     .l2_bandwidth = 5050,
     .l2_latency = 262,
     .memory_latency = 466},
    {.key = "h100",
     .name = "NVIDIA H100 80GB HBM3",
     HOPPER_CHIP,
     .memory_clock_khz = 2619000,
     .bus_bits = 5120,
     .memory_bytes = 80 * GIB,
     .l2_bytes = 50 * MIB,
     .bandwidth = 3352},
    {.key = "h200",
     .name = "NVIDIA H200",
     HOPPER_CHIP,
     .memory_clock_khz = 3201000,
     .bus_bits = 6016,
     .memory_bytes = 150109880320,
     .l2_bytes = 60 * MIB,
     .bandwidth = 4800},
    {.key = "b200",
     .name = "NVIDIA B200",
     .major = 10,
     .minor = 0,
     .multiprocessors = 148,
     .clock_khz = 1965000,
     .memory_clock_khz = 3996000,
     .bus_bits = 8192,
     .memory_bytes = 180 * GIB,
     .l2_bytes = 126 * MIB,
     SHARED_MEMORY(228, 256),
     .threads_per_multiprocessor = 2048,
     .blocks_per_multiprocessor = 32,
     .double_ratio = 2,
     .bandwidth = 8000,
     .bus = 55,
     .float_lanes = 128,
     .tensor_flops = 2560,
     .l1_bytes_per_clock = 128,
     .l2_bandwidth = 14000,
     .l2_latency = 263,
     .memory_latency = 479},
};

enum { GPU_COUNT = sizeof GPUS / sizeof *GPUS };

const struct simt_gpu *simt_gpu_find(const char *key) {
    for (size_t i = 0; i < GPU_COUNT; i++) {
        if (strcmp(GPUS[i].key, key) == 0) {
            return &GPUS[i];
        }
    }
    return NULL;
}

const struct simt_gpu *simt_gpu_at(size_t index) {
    return index < GPU_COUNT ? &GPUS[index] : NULL;
}

const char *simt_gpu_keys(char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < GPU_COUNT && used < size; i++) {
        used += (size_t)snprintf(text + used, size - used, "%s%s", i == 0 ? "" : ", ", GPUS[i].key);
    }
    return text;
}
