/**
 * @file run.c
 * @brief Runs a CUDA program on the emulator: bazel run //common/simt:run -- PROGRAM ARGUMENTS
 */
#include "common/base/file.h"
#include "common/simt/runtime/runner.h"

int main(int argc, char **argv) {
    static const struct runner RUN = {.program = "run",
                                      .summary =
                                          "Runs a CUDA program on the CPU, checked and counted.",
                                      .failed = 1};
    file_enter_working_directory();
    return runner_main(&RUN, argc, argv);
}
