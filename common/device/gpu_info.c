/* Prints the GPU that programs will use: first its name in records, then a description. */
#include <stdio.h>

#include "common/base/terminal.h"
#include "common/device/device.h"

static enum status find_gpu(struct device_properties *gpu, struct error *error) {
    TRY(device_open(error));
    return device_properties(gpu, error);
}

int main(void) {
    struct device_properties gpu;
    struct error error = {0};
    enum status status = find_gpu(&gpu, &error);
    if (status != STATUS_OK) {
        return report_failure("gpu_info", &error, status);
    }
    printf("%s\n", gpu.record_name);
    printf("%s, compute capability %d.%d, %d multiprocessors, %.0f GiB, CUDA %d.%d", gpu.name,
           gpu.major, gpu.minor, gpu.multiprocessors, (double)gpu.memory_bytes / (1 << 30),
           gpu.runtime / 1000, gpu.runtime % 1000 / 10);
    if (gpu.modelled) {
        printf(", emulated by simt: times are modelled\n");
    } else {
        printf(", driver for CUDA %d.%d\n", gpu.driver / 1000, gpu.driver % 1000 / 10);
    }
    return 0;
}
