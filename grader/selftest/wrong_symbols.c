/* Submissions to lab 04 whose names alone are wrong: each compiled with one REFERS_ or DEFINES_. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common/nn/nn.h"
#include "labs/04_sgemm/sgemm.h"

#if defined(REFERS_TO_A_LIBRARY_BY_NAME)
static enum status work(const struct sgemm_problem *problem, struct error *error) {
    (void)problem;
    return dlopen("libcublas.so", RTLD_NOW) != NULL ? STATUS_OK
                                                    : error_set(error, STATUS_NOT_FOUND, "none");
}

#elif defined(REFERS_TO_CUBLAS)
int cublasSgemm_v2(const void *A, const void *B, void *C);

static enum status work(const struct sgemm_problem *problem, struct error *error) {
    (void)error;
    return cublasSgemm_v2(problem->A, problem->B, problem->C) == 0 ? STATUS_OK : STATUS_DEVICE;
}

#elif defined(REFERS_TO_THE_REFERENCE)
static enum status work(const struct sgemm_problem *problem, struct error *error) {
    (void)error;
    nn_matmul(problem->C, problem->A, problem->B, problem->M, problem->N, problem->K);
    return STATUS_OK;
}

#elif defined(REFERS_TO_THE_GRADER)
int message_send(int channel, const void *message);

static enum status work(const struct sgemm_problem *problem, struct error *error) {
    (void)problem, (void)error;
    return message_send(3, "passed") == 0 ? STATUS_OK : STATUS_IO;
}

#elif defined(REFERS_TO_PROCESSES)
static enum status work(const struct sgemm_problem *problem, struct error *error) {
    (void)problem, (void)error;
    return fork() > 0 ? STATUS_OK : STATUS_IO;
}

#elif defined(REFERS_TO_PAGES)
static enum status work(const struct sgemm_problem *problem, struct error *error) {
    (void)error;
    return mprotect(problem->C, 4096, PROT_READ) == 0 ? STATUS_OK : STATUS_IO;
}

#elif defined(REFERS_TO_THE_ENVIRONMENT)
static enum status work(const struct sgemm_problem *problem, struct error *error) {
    (void)problem, (void)error;
    return getenv("GTEST_FILTER") != NULL ? STATUS_OK : STATUS_IO;
}

#else
static enum status work(const struct sgemm_problem *problem, struct error *error) {
    return device_set(problem->C, 0, problem->M * problem->N * sizeof(float), NULL, error);
}
#endif

enum status sgemm(const struct sgemm_problem *problem, void *workspace, device_stream stream,
                  struct error *error) {
    (void)workspace, (void)stream;
    return work(problem, error);
}

#if defined(DEFINES_THE_RUNTIMES_TIMER)
int cudaEventElapsedTime(float *ms, void *start, void *stop);
int cudaEventElapsedTime(float *ms, void *start, void *stop) {
    (void)start, (void)stop;
    *ms = 1e-3F;
    return 0;
}

#elif defined(DEFINES_THE_DEVICES_CLOCK)
double device_now(void) {
    return 0;
}

#elif defined(DEFINES_THE_WALLS_CLOCK)
int clock_gettime(clockid_t clock, struct timespec *t) {
    (void)clock;
    *t = (struct timespec){0};
    return 0;
}

#elif defined(DEFINES_MALLOC)
__attribute__((weak)) void *malloc(size_t bytes) {
    (void)bytes;
    return NULL;
}

#elif defined(DEFINES_A_NAME_WITH_WHITE_SPACE)
/* In a list of names it would stand for the weak name in front of the white space. */
__asm__(".weak \"_ZNSt6chrono3_V212steady_clock3nowEv W\"\n"
        ".set \"_ZNSt6chrono3_V212steady_clock3nowEv W\", 1\n");

#elif defined(DEFINES_THE_GRADERS_CHANNEL)
int message_send(int channel, const void *message);
int message_send(int channel, const void *message) {
    (void)channel, (void)message;
    return 0;
}
#endif
