#include "common/simt/memory/space/host_fault.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

/*
 * A signal handler is given nothing but the signal: what it needs can only be
 * static. Written while the handler is not installed.
 */
static const struct simt_memory *watched;
static struct sigaction before;
static simt_host_fault_repairer *repairs;
static void *repairs_context;
static int (*end_status)(int otherwise);

static void explain(uint64_t address) {
    char where[400], line[600];
    simt_memory_describe(watched, address, where, sizeof where);
    int length = snprintf(line, sizeof line,
                          "this host code dereferences a device pointer, 0x%" PRIx64
                          " (%s): copy the data with cudaMemcpy first\n",
                          address, where);
    size_t left = length < (int)sizeof line ? (size_t)length : sizeof line - 1;
    const char *rest = line;
    while (left > 0) {
        ssize_t count = write(STDERR_FILENO, rest, left);
        if (count <= 0) {
            break;
        }
        rest += count;
        left -= (size_t)count;
    }
}

static void pass_on(int number, siginfo_t *info, void *context) {
    if ((before.sa_flags & SA_SIGINFO) != 0) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    } else {
        /* Back to the default; the instruction faults again and ends the program. */
        signal(number, SIG_DFL);
    }
}

bool simt_host_fault_writes(const void *context) {
    enum { WRITE = 2 }; /* of a page fault's error code */
    const ucontext_t *state = context;
    return (state->uc_mcontext.gregs[REG_ERR] & WRITE) != 0;
}

static void handle(int number, siginfo_t *info, void *context) {
    if (simt_memory_is_device(watched, info->si_addr)) {
        explain((uint64_t)(uintptr_t)info->si_addr);
        _exit(end_status != NULL ? end_status(1) : 1);
    }
    if (info->si_code == SEGV_ACCERR && repairs != NULL &&
        repairs(repairs_context, info->si_addr, simt_host_fault_writes(context))) {
        return;
    }
    pass_on(number, info, context);
}

enum status simt_host_fault_install(const struct simt_memory *memory) {
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (watched != NULL) {
        return STATUS_INVALID_ARGUMENT;
    }
    watched = memory;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGSEGV, &action, &before) != 0) {
        watched = NULL;
        return STATUS_IO;
    }
    return STATUS_OK;
}

void simt_host_fault_repair(simt_host_fault_repairer *repair, void *context) {
    repairs = repair;
    repairs_context = context;
}

void simt_host_fault_status(int (*status)(int otherwise)) {
    end_status = status;
}

void simt_host_fault_remove(void) {
    if (watched != NULL) {
        sigaction(SIGSEGV, &before, NULL);
        watched = NULL;
    }
}
