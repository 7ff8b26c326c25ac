/* Tries to learn what only the grader knows, or has somebody else compute. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grader/selftest/sabotage.h"

/* Opens a file of the process that started this one. @return 0, or why it cannot. */
static int open_of_parent(const char *file) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)getppid(), file);
    int descriptor = open(path, O_RDONLY);
    if (descriptor >= 0) {
        close(descriptor);
        return 0;
    }
    return errno;
}

/* Row 7: the inputs again, from their seed. */
static enum status seed(const struct sabotage_call *call, struct error *error) {
    (void)call;
    if (getenv("WARPBOOK_SEED") != NULL || open_of_parent("environ") == 0 ||
        open_of_parent("cmdline") == 0) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_NOT_FOUND, "the seed is nowhere to be seen");
}

/* Row 22: the expected values, in the grader's memory. */
static enum status grader_memory(const struct sabotage_call *call, struct error *error) {
    (void)call;
    int why = open_of_parent("mem");
    return why == 0
               ? STATUS_OK
               : error_set(error, STATUS_IO, "the grader's memory is closed: %s", strerror(why));
}

/* Where the memory lies that the grader shares. */
static const unsigned char *find_arena(void) {
    char line[512];
    uint64_t begin = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && begin == 0 && fgets(line, sizeof line, maps) != NULL) {
        begin = strstr(line, "arena") != NULL ? strtoull(line, NULL, 16) : 0;
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return (const unsigned char *)(uintptr_t)begin;
}

/* Row 22: the same in the memory that is shared: the first case has one element. */
static enum status shared_memory(const struct sabotage_call *call, struct error *error) {
    enum { LOOKED_AT = 66 << 20 };
    const unsigned char *arena = find_arena();
    float a, b;
    TRY(device_read(&a, call->problem->A, sizeof a, call->stream, error));
    TRY(device_read(&b, call->problem->B, sizeof b, call->stream, error));
    const double want = (double)a * (double)b;
    for (size_t i = 0; arena != NULL && i < LOOKED_AT; i += sizeof want) {
        if (memcmp(arena + i, &want, sizeof want) == 0) {
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_NOT_FOUND, "%s",
                     arena == NULL ? "there is no arena" : "no expected value is shared");
}

struct on_host {
    float *A, *B, *C;
};

static void multiply(const struct sgemm_problem *p, const struct on_host *h) {
    for (size_t i = 0; i < p->M * p->N; i++) {
        size_t m = i / p->N, n = i % p->N;
        float sum = 0.0f;
        for (size_t k = 0; k < p->K; k++) {
            sum +=
                h->A[m * p->K + k] * h->B[p->form == SGEMM_B_PLAIN ? k * p->N + n : n * p->K + k];
        }
        h->C[i] = p->alpha * sum;
    }
}

/* Row 26: the CPU computes, whose time no model of a GPU knows. */
static enum status on_the_host(const struct sabotage_call *call, struct error *error) {
    const struct sgemm_problem *p = call->problem;
    size_t a = p->M * p->K, b = p->K * p->N, c = p->M * p->N;
    float *memory = malloc((a + b + c) * sizeof *memory + 1);
    if (memory == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "no memory");
    }
    struct on_host h = {memory, memory + a, memory + a + b};
    enum status status = device_read(h.A, p->A, a * sizeof(float), call->stream, error);
    if (status == STATUS_OK) {
        status = device_read(h.B, p->B, b * sizeof(float), call->stream, error);
    }
    if (status == STATUS_OK) {
        multiply(p, &h);
        status = device_write(p->C, h.C, c * sizeof(float), call->stream, error);
    }
    free(memory);
    return status;
}

const struct sabotage sabotage_secrets[] = {{"seed", seed},
                                            {"grader_memory", grader_memory},
                                            {"shared_memory", shared_memory},
                                            {"on_the_host", on_the_host},
                                            {0}};
