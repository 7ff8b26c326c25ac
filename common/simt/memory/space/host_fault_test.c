#include "common/simt/memory/space/host_fault.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/testing/testing.h"

enum { CHAINED = 7 };

static void chained(int number) {
    (void)number;
    _exit(CHAINED);
}

/* What a child does before it reads a byte it must not. */
struct plan {
    uint64_t address;
    bool chain;   /* a handler is there before */
    bool removed; /* the handler is taken away again */
};

static void crash(const struct simt_memory *memory, const struct plan *plan) {
    signal(SIGSEGV, plan->chain ? chained : SIG_DFL);
    if (simt_host_fault_install(memory) != STATUS_OK) {
        _exit(99);
    }
    if (plan->removed) {
        simt_host_fault_remove();
    }
    volatile const char *pointer = (const char *)(uintptr_t)plan->address;
    _exit(pointer[0] == 1 ? 50 : 51);
}

/* Runs the plan in a child. @return its wait status; @p text receives its stderr. */
static int run(const struct simt_memory *memory, const struct plan *plan, char *text, size_t size) {
    int ends[2], status = -1;
    memset(text, 0, size);
    if (pipe(ends) != 0) {
        return -1;
    }
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        crash(memory, plan);
    }
    close(ends[1]);
    size_t used = 0;
    ssize_t count;
    while (used + 1 < size && (count = read(ends[0], text + used, size - 1 - used)) > 0) {
        used += (size_t)count;
    }
    close(ends[0]);
    waitpid(child, &status, 0);
    return status;
}

C_TEST(host_fault, device_pointers_are_explained) {
    struct simt_memory *memory;
    uint64_t other, address;
    char text[2048], want[512];
    ASSERT_OK(simt_memory_create(&memory, 1 << 20));
    ASSERT_OK(simt_memory_alloc(memory, 100, 256, "cudaMalloc", &other));
    ASSERT_OK(simt_memory_alloc(memory, 400, 256, "cudaMalloc", &address));
    const struct plan plan = {.address = address + 8};
    int status = run(memory, &plan, text, sizeof text);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    snprintf(want, sizeof want,
             "this host code dereferences a device pointer, 0x%llx (8 bytes into allocation #2 "
             "(cudaMalloc, 400 bytes)): copy the data with cudaMemcpy first\n",
             (unsigned long long)address + 8);
    EXPECT_STR_EQ(want, text);
    simt_memory_free(memory);
}

C_TEST(host_fault, other_faults_go_on) {
    struct simt_memory *memory;
    char text[2048];
    ASSERT_OK(simt_memory_create(&memory, 1 << 20));
    struct plan plan = {.address = 16, .chain = true};
    int status = run(memory, &plan, text, sizeof text);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == CHAINED);
    plan.chain = false;
    status = run(memory, &plan, text, sizeof text);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    EXPECT_TRUE(strstr(text, "device pointer") == NULL);
    simt_memory_free(memory);
}

C_TEST(host_fault, can_be_removed) {
    struct simt_memory *memory;
    uint64_t address;
    char text[2048];
    ASSERT_OK(simt_memory_create(&memory, 1 << 20));
    ASSERT_OK(simt_memory_alloc(memory, 400, 256, "cudaMalloc", &address));
    const struct plan plan = {.address = address, .chain = true, .removed = true};
    int status = run(memory, &plan, text, sizeof text);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == CHAINED);
    ASSERT_OK(simt_host_fault_install(memory));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, simt_host_fault_install(memory));
    simt_host_fault_remove();
    simt_host_fault_remove();
    simt_memory_free(memory);
}
