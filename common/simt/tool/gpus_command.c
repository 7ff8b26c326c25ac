/* simt gpus: the GPUs that simt can present itself as. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "common/simt/runtime/gpu/gpu.h"
#include "common/simt/tool/commands.h"

static void print_gpu(const struct simt_gpu *gpu) {
    printf("%-8s  %-26s  %2d.%d  %15d  %6d  %8.0f  %6zu  %10zu\n", gpu->key, gpu->name, gpu->major,
           gpu->minor, gpu->multiprocessors, gpu->clock_khz / 1000, gpu->bandwidth,
           gpu->memory_bytes >> 30, gpu->shared_optin >> 10);
}

int gpus_command(const char *program, int argc, char **argv) {
    const struct flags flags = {
        .program = program,
        .positional = "",
        .summary = "Lists the GPUs that --gpu of `simt run` and `simt doctor` takes.",
        .epilogue = "Modelled times were compared with a GPU's for the H200 and the H100 only.\n"};
    struct arguments arguments;
    struct error error = {0};
    enum status status = flags_read(&flags, argc, argv, &arguments, &error);
    free(arguments.values);
    if (status == STATUS_OK && !arguments.help && arguments.count > 0) {
        status = error_set(&error, STATUS_INVALID_ARGUMENT, "it takes no argument; --help helps");
    }
    if (status != STATUS_OK) {
        (void)report_failure(program, &error, status);
        return SIMT_EXIT_BAD_INPUT;
    }
    if (arguments.help) {
        return 0;
    }
    printf("%-8s  %-26s  %4s  %15s  %6s  %8s  %6s  %10s\n", "--gpu", "name", "cc",
           "multiprocessors", "MHz", "GB/s", "GiB", "KiB shared");
    for (size_t n = 0; simt_gpu_at(n) != NULL; n++) {
        print_gpu(simt_gpu_at(n));
    }
    return 0;
}
