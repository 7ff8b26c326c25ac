/* Prints the GPU that programs will use: first its name in records, then a description. */
#include <stdio.h>

#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "common/device/device.h"

static void print(const struct device_properties *gpu) {
    printf("%s\n", gpu->record_name);
    printf("%s, compute capability %d.%d, %d multiprocessors, %.0f GiB, CUDA %d.%d", gpu->name,
           gpu->major, gpu->minor, gpu->multiprocessors, (double)gpu->memory_bytes / (1 << 30),
           gpu->runtime / 1000, gpu->runtime % 1000 / 10);
    if (gpu->modelled) {
        printf(", emulated by simt: times are modelled\n");
    } else {
        printf(", driver for CUDA %d.%d\n", gpu->driver / 1000, gpu->driver % 1000 / 10);
    }
}

static enum status run(int argc, char **argv, struct error *error) {
    static const struct flags flags = {
        .program = "gpu_info",
        .positional = "",
        .summary = "Prints the name of the GPU that programs run on, then a line about it.",
    };
    struct device_properties gpu;
    const char *value;
    struct arguments arguments = {.values = &value};
    if (argc > 2) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "takes no arguments but --help");
    }
    TRY(flags_parse(&flags, argc, argv, &arguments, error));
    if (arguments.help) {
        flags_answer(&flags, &arguments);
        return STATUS_OK;
    }
    if (arguments.count > 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "takes no arguments but --help");
    }
    TRY(device_open(error));
    TRY(device_properties(&gpu, error));
    print(&gpu);
    return STATUS_OK;
}

int main(int argc, char **argv) {
    struct error error = {0};
    enum status status = run(argc, argv, &error);
    return status == STATUS_OK ? 0 : report_failure("gpu_info", &error, status);
}
