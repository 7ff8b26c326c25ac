/**
 * @file device_main.c
 * @brief The library as a program: `ld-linux-x86-64.so.2 libcudart.so.13 [detach]` is a device.
 *
 * So there is one file that a program needs, and the device always matches it. The loader has set
 * up the C library when it comes here; there is no main().
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/simt/control.h"
#include "common/simt/runtime/remote/device_process.h"
#include "common/simt/runtime/remote/server.h"

/* The kernel's stack: the number of arguments, the arguments. */
__asm__(".globl simt_device_start\n"
        ".hidden simt_device_start\n"
        ".type simt_device_start, @function\n"
        ".text\n"
        "simt_device_start:\n"
        "    xor %ebp, %ebp\n"
        "    mov (%rsp), %rdi\n"
        "    lea 8(%rsp), %rsi\n"
        "    and $-16, %rsp\n"
        "    call simt_device_main\n"
        "    hlt\n"
        ".size simt_device_start, .-simt_device_start\n");

void simt_device_main(long argc, char **argv) __attribute__((noreturn));

static int open_or_none(int descriptor) {
    return fcntl(descriptor, F_GETFD) >= 0 ? descriptor : -1;
}

void simt_device_main(long argc, char **argv) {
    bool shared = argc > 1 && strcmp(argv[1], "shared") == 0;
    bool detached = shared || (argc > 1 && strcmp(argv[1], "detach") == 0);
    if (detached && fork() != 0) {
        _exit(0); /* the program that started it has no child to wait for */
    }
    prctl(PR_SET_NAME, "simt device", 0, 0, 0);
    if (shared) {
        _exit(server_run_shared(SIMT_DEVICE_PROGRAM));
    }
    _exit(server_run(open_or_none(SIMT_DEVICE_PROGRAM), open_or_none(SIMT_DEVICE_CONTROLLER),
                     detached)); /* who starts it otherwise has it in a sandbox */
}
