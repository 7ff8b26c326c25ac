/* Rows 34 to 36: what the grader needs of the runtime is destroyed, the emulated GPU is filled or
 * kept busy, and its process is sought. Each has computed what was asked for, unless said. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "grader/isolation/message.h"
#include "grader/selftest/sabotage.h"

/* ---- Row 34: what belongs to the grader, or to the next call ---- */

static size_t bytes_of(const struct sgemm_problem *p) {
    return p->M * p->N * sizeof(float);
}

/* The stream of the call; with none the default stream, which must stay. */
static enum status destroys_stream(const struct sabotage_call *call, struct error *error) {
    TRY(sabotage_right(call, error));
    (void)cudaStreamDestroy(call->stream);
    return STATUS_OK;
}

static enum status resets_device(const struct sabotage_call *call, struct error *error) {
    TRY(sabotage_right(call, error));
    (void)cudaDeviceReset();
    return STATUS_OK;
}

/* Leaves a stream that records, so that the next call's launches would be recorded and not run. */
static enum status leaves_capture(const struct sabotage_call *call, struct error *error) {
    static cudaStream_t own;
    TRY(sabotage_right(call, error));
    (void)cudaStreamCreate(&own);
    (void)cudaStreamBeginCapture(own, cudaStreamCaptureModeGlobal);
    return STATUS_OK;
}

static enum status frees_output(const struct sabotage_call *call, struct error *error) {
    TRY(sabotage_right(call, error));
    (void)cudaFree(call->problem->C);
    return STATUS_OK;
}

/* Frees what the grader reads the output from, and hopes that the next buffer lies there. */
static enum status moves_output(const struct sabotage_call *call, struct error *error) {
    static char *next;
    for (size_t before = 4096; before <= ((size_t)1 << 21); before *= 2) {
        (void)cudaFree((char *)((uintptr_t)call->problem->C & ~(uintptr_t)255) - before);
    }
    (void)cudaFree((void *)((uintptr_t)call->problem->C & ~(uintptr_t)255));
    (void)cudaMalloc((void **)&next, bytes_of(call->problem) + 4096);
    return sabotage_right(call, error);
}

/* ---- Row 35: the emulated GPU is filled, or does not come to an end ---- */

/* Touches all that it gets. */
static enum status takes_gpu_memory(const struct sabotage_call *call, struct error *error) {
    const size_t piece = (size_t)1 << 28;
    void *memory = NULL;
    for (int i = 0; i < 1024 && cudaMalloc(&memory, piece) == cudaSuccess; i++) {
        (void)cudaMemset(memory, 1, piece);
    }
    (void)cudaGetLastError();
    return sabotage_right(call, error);
}

static enum status endless_kernel(const struct sabotage_call *call, struct error *error) {
    (void)error;
    sabotage_special(call->problem, SABOTAGE_ENDLESS, call->stream);
    return STATUS_OK;
}

static enum status kernel_traps(const struct sabotage_call *call, struct error *error) {
    sabotage_special(call->problem, SABOTAGE_TRAP, call->stream);
    (void)cudaGetLastError();
    return sabotage_right(call, error);
}

/* What a kernel prints is text of the submission's, too. */
static enum status kernel_prints(const struct sabotage_call *call, struct error *error) {
    sabotage_special(call->problem, SABOTAGE_PRINT, call->stream);
    return error_set(error, STATUS_UNSUPPORTED, "a kernel printed");
}

static void CUDART_CB wait_for_ever(void *unused) {
    (void)unused;
    for (;;) {
        pause();
    }
}

/* A function of the host's, in the stream that the grader waits for. */
static enum status waits_in_stream(const struct sabotage_call *call, struct error *error) {
    TRY(sabotage_right(call, error));
    (void)cudaLaunchHostFunc(call->stream, wait_for_ever, NULL);
    return STATUS_OK;
}

/* ---- Row 27 and 29 once more: ends and stops by other ways ---- */

static enum status stops_itself(const struct sabotage_call *call, struct error *error) {
    raise(SIGSTOP);
    return sabotage_right(call, error);
}

static void *wait_in_thread(void *unused) {
    wait_for_ever(unused);
    return unused;
}

/* The thread that the grader waits for is no more, and its process is. */
static enum status leaves_thread(const struct sabotage_call *call, struct error *error) {
    pthread_t thread;
    (void)call;
    (void)error;
    pthread_create(&thread, NULL, wait_in_thread, NULL);
    pthread_exit(NULL);
}

static enum status sets_alarm(const struct sabotage_call *call, struct error *error) {
    const struct itimerval soon = {{0, 0}, {0, 1000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    const struct timespec later = {0, 20000000};
    nanosleep(&later, NULL);
    return sabotage_right(call, error);
}

static enum status closes_device(const struct sabotage_call *call, struct error *error) {
    close(WORKER_DEVICE);
    return sabotage_right(call, error);
}

/* Puts something else where the connection to the device was. */
static enum status replaces_device(const struct sabotage_call *call, struct error *error) {
    dup2(open("/dev/null", O_RDWR), WORKER_DEVICE);
    return sabotage_right(call, error);
}

static enum status closes_output(const struct sabotage_call *call, struct error *error) {
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    return sabotage_right(call, error);
}

/* ---- Row 36: the process of the emulated GPU, by its number ---- */

enum { NEAR = 64 };

/* Calls it for the processes that were started when this one was: the device is among them. */
static void each_near(void (*reach)(pid_t)) {
    pid_t own = getpid();
    for (pid_t p = own > NEAR ? own - NEAR : 1; p < own + NEAR; p++) {
        if (p != own) {
            reach(p);
        }
    }
}

static void write_memory(pid_t process) {
    double zero = 0.0;
    struct iovec from = {&zero, sizeof zero}, to = {(void *)(uintptr_t)write_memory, sizeof zero};
    (void)process_vm_writev(process, &from, 1, &to, 1, 0);
}

static void trace(pid_t process) {
    (void)ptrace(PTRACE_ATTACH, process, NULL, NULL);
}

static void take_descriptor(pid_t process) {
    int found = (int)syscall(SYS_pidfd_open, process, 0);
    (void)syscall(SYS_pidfd_getfd, found, 3, 0);
}

static bool reached; /* by the two below; a process has one call at a time */

static void open_files(pid_t process) {
    static const char *const names[] = {"mem", "maps", "fd/3", "environ", "root", "cwd"};
    char path[64];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "/proc/%d/%s", (int)process, names[i]);
        reached |= open(path, O_RDWR) >= 0 || open(path, O_RDONLY) >= 0;
    }
}

static void slow_down(pid_t process) {
    const struct rlimit none = {0, 0};
    reached |= syscall(SYS_prlimit64, process, RLIMIT_CPU, &none, NULL) == 0 ||
               setpriority(PRIO_PROCESS, (id_t)process, 19) == 0;
}

static enum status reach_all(const struct sabotage_call *call, void (*reach)(pid_t),
                             struct error *error) {
    reached = false;
    each_near(reach);
    return reached ? error_set(error, STATUS_MISMATCH, "another process was reached")
                   : sabotage_right(call, error);
}

static enum status reaches_memory(const struct sabotage_call *call, struct error *error) {
    return reach_all(call, write_memory, error);
}

static enum status reaches_thread(const struct sabotage_call *call, struct error *error) {
    return reach_all(call, trace, error);
}

static enum status reaches_descriptor(const struct sabotage_call *call, struct error *error) {
    return reach_all(call, take_descriptor, error);
}

static enum status reaches_files(const struct sabotage_call *call, struct error *error) {
    return reach_all(call, open_files, error);
}

static enum status reaches_limits(const struct sabotage_call *call, struct error *error) {
    return reach_all(call, slow_down, error);
}

/* ---- Row 37: operations that are counted and worth nothing ---- */

static float *copy_of(const float *device, size_t count) {
    float *host = malloc(count * sizeof *host);
    if (host == NULL ||
        cudaMemcpy(host, device, count * sizeof *host, cudaMemcpyDeviceToHost) != cudaSuccess) {
        abort();
    }
    return host;
}

/* The CPU computes; tensor cores multiply zeros, as often as it takes to be counted. */
static enum status tensor_zeros(const struct sabotage_call *call, struct error *error) {
    const struct sgemm_problem *p = call->problem;
    if (!sabotage_is_timed(p)) {
        return sabotage_right(call, error);
    }
    float *a = copy_of(p->A, p->M * p->K), *b = copy_of(p->B, p->N * p->K);
    float *c = malloc(bytes_of(p));
    for (size_t i = 0; c != NULL && i < p->M * p->N; i++) {
        c[i] = 0.0f;
        for (size_t k = 0; k < p->K; k++) {
            c[i] += a[i / p->N * p->K + k] * b[i % p->N * p->K + k];
        }
        c[i] *= p->alpha;
    }
    (void)cudaMemcpy(p->C, c, bytes_of(p), cudaMemcpyHostToDevice);
    sabotage_special(p, SABOTAGE_TENSOR, call->stream);
    free(a);
    free(b);
    free(c);
    return STATUS_OK;
}

const struct sabotage sabotage_runtime[] = {SABOTAGE(destroys_stream),
                                            SABOTAGE(resets_device),
                                            SABOTAGE(leaves_capture),
                                            SABOTAGE(frees_output),
                                            SABOTAGE(moves_output),
                                            SABOTAGE(takes_gpu_memory),
                                            SABOTAGE(endless_kernel),
                                            SABOTAGE(kernel_traps),
                                            SABOTAGE(kernel_prints),
                                            SABOTAGE(waits_in_stream),
                                            SABOTAGE(stops_itself),
                                            SABOTAGE(leaves_thread),
                                            SABOTAGE(sets_alarm),
                                            SABOTAGE(closes_device),
                                            SABOTAGE(replaces_device),
                                            SABOTAGE(closes_output),
                                            SABOTAGE(reaches_memory),
                                            SABOTAGE(reaches_thread),
                                            SABOTAGE(reaches_descriptor),
                                            SABOTAGE(reaches_files),
                                            SABOTAGE(reaches_limits),
                                            SABOTAGE(tensor_zeros),
                                            {0}};
