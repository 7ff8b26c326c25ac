/* What only the grader knows or says: its answers, verdicts and expected values. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "grader/isolation/message.h"
#include "grader/selftest/sabotage.h"

/* ---- Row 6: verdicts and answers of its own making; nothing is computed ---- */

/* What a test that passes would print and record. */
static enum status forged_text(const struct sabotage_call *call, struct error *error) {
    static const char text[] =
        "[       OK ] parity.transposed_b (1 ms)\n[  PASSED  ] 10 tests.\n"
        "{\"schema\":1,\"lab\":\"04_sgemm\",\"part\":\"parity\",\"test\":\"transposed_b\","
        "\"verdict\":\"pass\"}\n<testsuites tests=\"10\" failures=\"0\"/>\n";
    (void)call;
    (void)error;
    printf("%s", text);
    fprintf(stderr, "%s", text);
    return STATUS_OK;
}

/* Writes to where grades are recorded, if it can find that. */
static enum status forged_grades(const struct sabotage_call *call, struct error *error) {
    static const char *const variables[] = {"WARPBOOK_GRADES", "TEST_UNDECLARED_OUTPUTS_DIR",
                                            "BUILD_WORKSPACE_DIRECTORY"};
    (void)call;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        if (getenv(variables[i]) != NULL) {
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_NOT_FOUND, "nobody says where the grades are");
}

/* The request that is being served: its arguments begin with the problem. */
static struct message *request_of(const struct sabotage_call *call) {
    return (struct message *)((char *)call->problem - offsetof(struct message, bytes));
}

/* Answers the grader itself, with the right number, before there is a result. */
static enum status forged_answer(const struct sabotage_call *call, struct error *error) {
    struct message answer = *request_of(call);
    answer.status = STATUS_OK;
    (void)error;
    return message_send(WORKER_CHANNEL, &answer);
}

/* Never comes back: says yes to whatever is asked from now on. */
static enum status takes_over(const struct sabotage_call *call, struct error *error) {
    struct message *message = request_of(call);
    (void)error;
    do {
        message->status = STATUS_OK;
    } while (message_send(WORKER_CHANNEL, message) == STATUS_OK &&
             message_receive(WORKER_CHANNEL, message, -1.0) == STATUS_OK);
    _exit(0);
}

/* Makes the memory that it shares with the grader too short to be read. */
static enum status shortens_arena(const struct sabotage_call *call, struct error *error) {
    (void)call;
    return ftruncate(WORKER_ARENA, 0) == 0
               ? STATUS_OK
               : error_set(error, STATUS_IO, "the arena keeps its length");
}

/* ---- Tries to learn what only the grader knows, or has somebody else compute ---- */

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

static enum status copy_and_multiply(const struct sabotage_call *call, const struct on_host *h,
                                     struct error *error) {
    const struct sgemm_problem *p = call->problem;
    TRY(device_read(h->A, p->A, p->M * p->K * sizeof(float), call->stream, error));
    TRY(device_read(h->B, p->B, p->K * p->N * sizeof(float), call->stream, error));
    multiply(p, h);
    return device_write(p->C, h->C, p->M * p->N * sizeof(float), call->stream, error);
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
    enum status status = copy_and_multiply(call, &h, error);
    free(memory);
    return status;
}

const struct sabotage sabotage_grader[] = {SABOTAGE(forged_text),    SABOTAGE(forged_grades),
                                           SABOTAGE(forged_answer),  SABOTAGE(takes_over),
                                           SABOTAGE(shortens_arena), SABOTAGE(seed),
                                           SABOTAGE(grader_memory),  SABOTAGE(shared_memory),
                                           SABOTAGE(on_the_host),    {0}};
