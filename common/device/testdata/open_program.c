/* Opens the GPU and says its name, or in one line why not: what every program does first. */
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
        return report_failure("open_program", &error, status);
    }
    printf("%s, compute capability %d.%d\n", gpu.record_name, gpu.major, gpu.minor);
    return 0;
}
