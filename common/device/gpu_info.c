/* Says which GPU this program would run on: its name for records, then a line to read. */
#include <stdio.h>

#include "common/base/terminal.h"
#include "common/device/device.h"

int main(void) {
    struct device_properties gpu;
    struct error error = {0};
    enum status status = device_open(&error);
    if (status == STATUS_OK) {
        status = device_properties(&gpu, &error);
    }
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
