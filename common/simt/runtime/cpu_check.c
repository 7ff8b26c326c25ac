/**
 * @file cpu_check.c
 * @brief Ends the program with one line on a CPU that the emulator's code is not built for.
 *
 * Built for any x86-64, unlike the rest, and run before it.
 */
#include <string.h>
#include <unistd.h>

enum { FIRST = 101 };

__attribute__((constructor(FIRST))) static void check_cpu(void) {
    static const char LINE[] = "simt: the CUDA emulator needs a CPU with AVX2, FMA and BMI2 "
                               "(x86-64-v3; Intel since 2013, AMD since 2015)\n";
    __builtin_cpu_init();
    /* What every x86-64-v3 CPU has and no other; clang 14 does not know that name. */
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
        !__builtin_cpu_supports("bmi2")) {
        ssize_t written = write(STDERR_FILENO, LINE, strlen(LINE));
        (void)written;
        _exit(1);
    }
}
