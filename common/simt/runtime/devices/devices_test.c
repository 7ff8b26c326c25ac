/*
 * Several devices: what belongs to one, copies and pointers between two, kernels that wait for each
 * other. Run with SIMT_DEVICES=4; the program also runs on four GPUs that reach each other.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "common/simt/runtime/devices/devices.h"
#include "common/simt/runtime/testdata/checks.h"
#include "common/simt/simt.h"
#include "common/testing/fixture.h"

enum { DEVICES = 4, COUNT = 1000 };

/** COUNT ints on each device. */
struct pair {
    int *d[DEVICES];
    int host[COUNT];
};

static bool create(struct pair *p) {
    bool good = true;
    for (int d = 0; d < DEVICES; d++) {
        good = good && cudaSetDevice(d) == cudaSuccess &&
               cudaMalloc((void **)&p->d[d], sizeof p->host) == cudaSuccess &&
               cudaMemset(p->d[d], 0, sizeof p->host) == cudaSuccess &&
               cudaDeviceSynchronize() == cudaSuccess;
    }
    return good && cudaSetDevice(0) == cudaSuccess;
}

static void destroy(struct pair *p) {
    for (int d = 0; d < DEVICES; d++) {
        WANT(cudaSuccess, cudaSetDevice(d));
        WANT(cudaSuccess, cudaDeviceSynchronize());
        WANT(cudaSuccess, cudaFree(p->d[d]));
    }
    WANT(cudaSuccess, cudaSetDevice(0));
}

#define PAIR_TEST(name) FIXTURE_TEST(devices, name, struct pair, p, create(p), destroy(p))

/** Wants value, value + 1, ... on a device. */
static void expect_line(struct pair *p, int device, int value) {
    memset(p->host, 0xff, sizeof p->host);
    WANT(cudaSuccess, cudaMemcpy(p->host, p->d[device], sizeof p->host, cudaMemcpyDefault));
    int wrong = 0;
    for (int i = 0; i < COUNT; i++) {
        wrong += p->host[i] != value + i;
    }
    EXPECT_INT_EQ(0, wrong);
}

/** Lets each of the two reach the other, or not any more. */
static void connect(int a, int b) {
    WANT(cudaSuccess, cudaSetDevice(b));
    WANT(cudaSuccess, cudaDeviceEnablePeerAccess(a, 0));
    WANT(cudaSuccess, cudaSetDevice(a));
    WANT(cudaSuccess, cudaDeviceEnablePeerAccess(b, 0));
}

static void disconnect(int a, int b) {
    WANT(cudaSuccess, cudaSetDevice(b));
    WANT(cudaSuccess, cudaDeviceDisablePeerAccess(a));
    WANT(cudaSuccess, cudaSetDevice(a));
    WANT(cudaSuccess, cudaDeviceDisablePeerAccess(b));
}

C_TEST(devices, are_counted_and_told_apart) {
    int count = 0, device = -1;
    struct cudaDeviceProp properties[2];
    char bus[2][20];
    WANT(cudaSuccess, cudaGetDeviceCount(&count));
    EXPECT_INT_EQ(DEVICES, count);
    WANT(cudaErrorInvalidDevice, cudaSetDevice(DEVICES));
    WANT(cudaErrorInvalidDevice, cudaGetDeviceProperties(properties, DEVICES));
    WANT(cudaSuccess, cudaSetDevice(3));
    WANT(cudaSuccess, cudaGetDevice(&device));
    EXPECT_INT_EQ(3, device);
    WANT(cudaSuccess, cudaSetDevice(0));
    for (int d = 0; d < 2; d++) {
        WANT(cudaSuccess, cudaGetDeviceProperties(&properties[d], d));
        WANT(cudaSuccess, cudaDeviceGetPCIBusId(bus[d], sizeof bus[d], d));
    }
    EXPECT_STR_EQ(properties[0].name, properties[1].name);
    EXPECT_TRUE(properties[0].pciBusID != properties[1].pciBusID);
    EXPECT_TRUE(memcmp(&properties[0].uuid, &properties[1].uuid, sizeof properties[0].uuid) != 0);
    EXPECT_TRUE(strcmp(bus[0], bus[1]) != 0);
}

static void *ask_device(void *device) {
    (void)cudaGetDevice(device);
    (void)cudaSetDevice(2);
    return NULL;
}

C_TEST(devices, each_thread_has_its_own) {
    pthread_t thread;
    int device = -1;
    WANT(cudaSuccess, cudaSetDevice(1));
    EXPECT_INT_EQ(0, pthread_create(&thread, NULL, ask_device, &device));
    pthread_join(thread, NULL);
    EXPECT_INT_EQ(0, device);
    WANT(cudaSuccess, cudaGetDevice(&device));
    EXPECT_INT_EQ(1, device);
    WANT(cudaSuccess, cudaSetDevice(0));
}

PAIR_TEST(memory_and_streams_belong_to_one) {
    struct cudaPointerAttributes attributes;
    size_t before = 0, after = 0, total = 0;
    cudaStream_t stream = NULL;
    int device = -1;
    WANT(cudaSuccess, cudaPointerGetAttributes(&attributes, p->d[2] + 5));
    EXPECT_INT_EQ(2, attributes.device);
    EXPECT_INT_EQ(cudaMemoryTypeDevice, attributes.type);
    WANT(cudaSuccess, cudaMemGetInfo(&before, &total));
    WANT(cudaSuccess, cudaSetDevice(1));
    void *memory = NULL;
    WANT(cudaSuccess, cudaMalloc(&memory, 1 << 20));
    WANT(cudaSuccess, cudaStreamCreate(&stream));
    WANT(cudaSuccess, cudaSetDevice(0));
    WANT(cudaSuccess, cudaMemGetInfo(&after, &total));
    EXPECT_TRUE(before == after);
    WANT(cudaSuccess, cudaStreamGetDevice(stream, &device));
    EXPECT_INT_EQ(1, device);
    launch_fill(p->d[0], 1, COUNT, stream);
    WANT_KEPT(cudaErrorInvalidResourceHandle, cudaGetLastError());
    WANT(cudaSuccess, cudaMemsetAsync(memory, 0, 1 << 20, stream)); // copies may come from anywhere
    WANT(cudaSuccess, cudaStreamSynchronize(stream));
    WANT(cudaSuccess, cudaStreamDestroy(stream));
    WANT(cudaSuccess, cudaFree(memory));
}

PAIR_TEST(device_variables_are_there_once_a_device) {
    int value[2] = {0};
    for (int round = 0; round < 2; round++) {
        for (int d = 0; d < 2; d++) {
            WANT(cudaSuccess, cudaSetDevice(d));
            launch_own(p->d[d], d + 1, NULL);
            WANT(cudaSuccess,
                 cudaMemcpy(&value[d], p->d[d], sizeof *value, cudaMemcpyDeviceToHost));
        }
    }
    EXPECT_INT_EQ(2, value[0]);
    EXPECT_INT_EQ(4, value[1]);
}

PAIR_TEST(copies_between_devices) {
    launch_fill(p->d[0], 7, COUNT, NULL);
    WANT(cudaSuccess, cudaMemcpyPeer(p->d[1], 1, p->d[0], 0, sizeof p->host));
    expect_line(p, 1, 7);
    WANT(cudaSuccess, cudaMemcpy(p->d[2], p->d[1], sizeof p->host, cudaMemcpyDefault));
    expect_line(p, 2, 7);
    WANT(cudaSuccess, cudaMemcpyPeerAsync(p->d[3], 3, p->d[2], 2, sizeof p->host, NULL));
    WANT(cudaSuccess, cudaDeviceSynchronize());
    expect_line(p, 3, 7);
    WANT(cudaErrorInvalidDevice, cudaMemcpyPeer(p->d[1], DEVICES, p->d[0], 0, 4));
    WANT(cudaErrorInvalidValue, cudaMemcpyPeer(p->d[1], 0, p->d[0], 0, 4));
}

PAIR_TEST(kernels_use_peers_memory) {
    int can = 0;
    WANT(cudaSuccess, cudaDeviceCanAccessPeer(&can, 0, 1));
    EXPECT_INT_EQ(1, can);
    WANT(cudaSuccess, cudaDeviceCanAccessPeer(&can, 1, 1));
    EXPECT_INT_EQ(0, can);
    WANT(cudaErrorInvalidDevice, cudaDeviceCanAccessPeer(&can, 0, DEVICES));
    WANT(cudaErrorPeerAccessUnsupported, cudaDeviceEnablePeerAccess(0, 0));
    WANT(cudaErrorInvalidValue, cudaDeviceEnablePeerAccess(1, 1));
    WANT(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(1));
    connect(0, 1);
    WANT(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(1, 0));
    launch_fill(p->d[1], 40, COUNT, NULL); // device 0 writes device 1's
    launch_next(p->d[0], p->d[1], COUNT, NULL);
    WANT(cudaSuccess, cudaDeviceSynchronize());
    expect_line(p, 0, 41);
    expect_line(p, 1, 40);
    disconnect(0, 1);
}

/* Each device has pools of its own, and says who else may use what they have. */
PAIR_TEST(pools_belong_to_devices) {
    cudaMemPool_t pools[2] = {NULL, NULL};
    enum cudaMemAccessFlags access = cudaMemAccessFlagsProtNone;
    struct cudaMemAccessDesc desc = {.location = {.type = cudaMemLocationTypeDevice, .id = 0},
                                     .flags = cudaMemAccessFlagsProtReadWrite};
    int *memory = NULL;
    WANT(cudaSuccess, cudaDeviceGetDefaultMemPool(&pools[0], 0));
    WANT(cudaSuccess, cudaDeviceGetDefaultMemPool(&pools[1], 1));
    WANT(cudaErrorInvalidDevice, cudaDeviceGetDefaultMemPool(&pools[0], DEVICES));
    EXPECT_TRUE(pools[0] != pools[1]);
    WANT(cudaErrorInvalidValue, cudaDeviceSetMemPool(0, pools[1]));
    WANT(cudaSuccess, cudaMemPoolGetAccess(&access, pools[1], &desc.location));
    EXPECT_INT_EQ(cudaMemAccessFlagsProtNone, access);
    WANT(cudaSuccess, cudaMemPoolSetAccess(pools[1], &desc, 1));
    WANT(cudaSuccess, cudaMemPoolGetAccess(&access, pools[1], &desc.location));
    EXPECT_INT_EQ(cudaMemAccessFlagsProtReadWrite, access);
    WANT(cudaSuccess, cudaSetDevice(1));
    WANT(cudaSuccess, cudaMallocAsync((void **)&memory, COUNT * sizeof *memory, NULL));
    WANT(cudaSuccess, cudaDeviceSynchronize());
    WANT(cudaSuccess, cudaSetDevice(0));
    launch_fill(memory, 50, COUNT, NULL); // device 0 writes device 1's
    launch_next(p->d[0], memory, COUNT, NULL);
    WANT(cudaSuccess, cudaDeviceSynchronize());
    expect_line(p, 0, 51);
    desc.flags = cudaMemAccessFlagsProtNone;
    WANT(cudaSuccess, cudaMemPoolSetAccess(pools[1], &desc, 1));
    WANT(cudaSuccess, cudaSetDevice(1));
    WANT(cudaSuccess, cudaFree(memory));
    WANT(cudaSuccess, cudaSetDevice(0));
}

PAIR_TEST(events_order_devices) {
    cudaStream_t streams[2];
    cudaEvent_t event = NULL;
    float milliseconds = -1;
    connect(0, 1);
    for (int d = 0; d < 2; d++) {
        WANT(cudaSuccess, cudaSetDevice(d));
        WANT(cudaSuccess, cudaStreamCreateWithFlags(&streams[d], cudaStreamNonBlocking));
    }
    WANT(cudaSuccess, cudaSetDevice(0));
    WANT(cudaSuccess, cudaEventCreate(&event));
    launch_fill(p->d[0], 3, COUNT, streams[0]);
    WANT(cudaSuccess, cudaEventRecord(event, streams[0]));
    WANT(cudaSuccess, cudaSetDevice(1));
    WANT(cudaSuccess, cudaStreamWaitEvent(streams[1], event, 0));
    launch_next(p->d[1], p->d[0], COUNT, streams[1]);
    WANT(cudaSuccess, cudaStreamSynchronize(streams[1]));
    expect_line(p, 1, 4);
    WANT(cudaSuccess, cudaEventElapsedTime(&milliseconds, event, event));
    EXPECT_NEAR(0, milliseconds, 0);
    disconnect(0, 1);
    WANT(cudaSuccess, cudaEventDestroy(event));
    for (int d = 0; d < 2; d++) {
        WANT(cudaSuccess, cudaStreamDestroy(streams[d]));
    }
}

/** Two kernels that need each other, in this order or the other one. */
static void play(struct pair *p, int first, int second) {
    enum { ROUNDS = 50 };
    int rounds[2] = {0};
    const int order[] = {first, second};
    connect(0, 1);
    for (int n = 0; n < 2; n++) {
        int d = order[n];
        WANT(cudaSuccess, cudaSetDevice(d));
        launch_play(p->d[d], p->d[1 - d], ROUNDS, d == 0, NULL);
        WANT(cudaSuccess, cudaGetLastError());
    }
    for (int d = 0; d < 2; d++) {
        WANT(cudaSuccess, cudaSetDevice(d));
        WANT(cudaSuccess, cudaDeviceSynchronize());
        WANT(cudaSuccess, cudaMemcpy(&rounds[d], p->d[d], sizeof *rounds, cudaMemcpyDefault));
        EXPECT_INT_EQ(ROUNDS, rounds[d]);
    }
    disconnect(0, 1);
}

PAIR_TEST(kernels_that_wait_for_each_other_go_on) {
    play(p, 0, 1);
}

PAIR_TEST(in_the_other_order_too) {
    play(p, 1, 0);
}

PAIR_TEST(work_behind_a_kernel_that_waits_comes_later) {
    cudaStream_t stream = NULL, other = NULL;
    cudaEvent_t event = NULL;
    int got[2] = {0};
    const int one = 1;
    WANT(cudaSuccess, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    WANT(cudaSuccess, cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    WANT(cudaSuccess, cudaEventCreate(&event));
    launch_wait(p->d[0], 1, p->d[0] + 1, stream);
    launch_next(p->d[0] + 2, p->d[0] + 1, 1, stream);
    WANT(cudaSuccess, cudaEventRecord(event, stream));
    WANT_KEPT(cudaErrorNotReady, cudaStreamQuery(stream));
    WANT_KEPT(cudaErrorNotReady, cudaEventQuery(event));
    WANT(cudaSuccess, cudaStreamQuery(other));
    WANT(cudaSuccess, cudaMemcpyAsync(p->d[0], &one, sizeof one, cudaMemcpyDefault, other));
    WANT(cudaSuccess, cudaEventSynchronize(event));
    WANT(cudaSuccess, cudaStreamQuery(stream));
    WANT(cudaSuccess, cudaMemcpy(got, p->d[0] + 1, sizeof got, cudaMemcpyDefault));
    EXPECT_INT_EQ(1, got[0]);
    EXPECT_INT_EQ(2, got[1]);
    WANT(cudaSuccess, cudaEventDestroy(event));
    WANT(cudaSuccess, cudaStreamDestroy(stream));
    WANT(cudaSuccess, cudaStreamDestroy(other));
}

PAIR_TEST(streams_wait_for_events_that_have_not_come) {
    cudaEvent_t event = NULL;
    int got = 0;
    connect(0, 1);
    WANT(cudaSuccess, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    launch_wait_atomic(p->d[0], 1, p->d[0] + 1, NULL);
    WANT(cudaSuccess, cudaEventRecord(event, NULL));
    WANT(cudaSuccess, cudaSetDevice(1));
    WANT(cudaSuccess, cudaStreamWaitEvent(NULL, event, 0));
    launch_next(p->d[1], p->d[0] + 1, 1, NULL);
    WANT(cudaSuccess, cudaEventDestroy(event)); // before it has come, as CUDA allows
    WANT(cudaSuccess, cudaSetDevice(2));
    WANT(cudaSuccess, cudaDeviceEnablePeerAccess(0, 0));
    launch_fill(p->d[0], 1, 1, NULL);
    WANT(cudaSuccess, cudaDeviceSynchronize());
    WANT(cudaSuccess, cudaDeviceDisablePeerAccess(0));
    WANT(cudaSuccess, cudaSetDevice(1));
    WANT(cudaSuccess, cudaDeviceSynchronize());
    WANT(cudaSuccess, cudaMemcpy(&got, p->d[1], sizeof got, cudaMemcpyDefault));
    EXPECT_INT_EQ(2, got);
    disconnect(0, 1);
}

/** What a host thread does for its device. */
struct player {
    struct pair *pair;
    int device;
    cudaError_t error;
};

static void *play_alone(void *argument) {
    struct player *me = argument;
    int *const *d = me->pair->d;
    (void)cudaSetDevice(me->device);
    launch_play(d[me->device], d[1 - me->device], 20, me->device == 0, NULL);
    me->error = cudaDeviceSynchronize();
    return NULL;
}

PAIR_TEST(a_host_thread_a_device_works) {
    pthread_t threads[2];
    struct player players[2] = {{p, 0, cudaErrorUnknown}, {p, 1, cudaErrorUnknown}};
    connect(0, 1);
    for (int n = 0; n < 2; n++) {
        EXPECT_INT_EQ(0, pthread_create(&threads[n], NULL, play_alone, &players[n]));
    }
    for (int n = 0; n < 2; n++) {
        pthread_join(threads[n], NULL);
        EXPECT_STR_EQ("cudaSuccess", cudaGetErrorName(players[n].error));
    }
    disconnect(0, 1);
}

PAIR_TEST(graphs_wait_for_each_other) {
    cudaStream_t streams[2];
    connect(0, 1);
    for (int d = 0; d < 2; d++) {
        cudaGraph_t graph = NULL;
        cudaGraphExec_t executable = NULL;
        WANT(cudaSuccess, cudaSetDevice(d));
        WANT(cudaSuccess, cudaStreamCreateWithFlags(&streams[d], cudaStreamNonBlocking));
        WANT(cudaSuccess, cudaStreamBeginCapture(streams[d], cudaStreamCaptureModeThreadLocal));
        launch_play(p->d[d], p->d[1 - d], 5, d == 0, streams[d]);
        launch_fill(p->d[d] + 2, 9, 1, streams[d]);
        WANT(cudaSuccess, cudaStreamEndCapture(streams[d], &graph));
        WANT(cudaSuccess, cudaGraphInstantiate(&executable, graph, 0));
        WANT(cudaSuccess, cudaGraphLaunch(executable, streams[d]));
        WANT(cudaSuccess, cudaGraphExecDestroy(executable)); // it ends all the same
        WANT(cudaSuccess, cudaGraphDestroy(graph));
    }
    for (int d = 0; d < 2; d++) {
        int got[3] = {0};
        WANT(cudaSuccess, cudaStreamSynchronize(streams[d]));
        WANT(cudaSuccess, cudaStreamDestroy(streams[d]));
        WANT(cudaSuccess, cudaMemcpy(got, p->d[d], sizeof got, cudaMemcpyDefault));
        EXPECT_INT_EQ(5, got[0]);
        EXPECT_INT_EQ(9, got[2]);
    }
    disconnect(0, 1);
}

PAIR_TEST(data_and_a_flag_are_no_race) {
    int sum = 0;
    connect(0, 1);
    launch_send(p->d[1], p->d[1] + 200, 1, 100, true, NULL);
    WANT(cudaSuccess, cudaSetDevice(1));
    launch_receive(p->d[1], p->d[1] + 200, 100, p->d[1] + 300, true, NULL);
    WANT(cudaSuccess, cudaDeviceSynchronize());
    WANT(cudaSuccess, cudaMemcpy(&sum, p->d[1] + 300, sizeof sum, cudaMemcpyDefault));
    EXPECT_INT_EQ(5050, sum);
    WANT(cudaSuccess, cudaSetDevice(0));
    WANT(cudaSuccess, cudaDeviceSynchronize());
    disconnect(0, 1);
}

/** Modelled milliseconds of a kernel that writes a device's memory, by device 0. */
static float time_of_fill(int *to, int count) {
    cudaEvent_t events[2];
    float milliseconds = 0;
    for (int n = 0; n < 2; n++) {
        WANT(cudaSuccess, cudaEventCreate(&events[n]));
    }
    WANT(cudaSuccess, cudaEventRecord(events[0], NULL));
    launch_fill(to, 1, count, NULL);
    WANT(cudaSuccess, cudaEventRecord(events[1], NULL));
    WANT(cudaSuccess, cudaEventSynchronize(events[1]));
    WANT(cudaSuccess, cudaEventElapsedTime(&milliseconds, events[0], events[1]));
    for (int n = 0; n < 2; n++) {
        WANT(cudaSuccess, cudaEventDestroy(events[n]));
    }
    return milliseconds;
}

C_TEST(devices, links_take_time) {
    enum { MANY = 1 << 20 };
    int *d[2] = {NULL, NULL};
    for (int n = 0; n < 2; n++) {
        WANT(cudaSuccess, cudaSetDevice(n));
        WANT(cudaSuccess, cudaMalloc((void **)&d[n], MANY * sizeof(int)));
    }
    connect(0, 1);
    float near = time_of_fill(d[0], MANY);
    float far = time_of_fill(d[1], MANY);
    const char *check = getenv("SIMT_CHECK"); // simt prices links where it follows accesses
    if (check == NULL || strcmp(check, "full") == 0) {
        EXPECT_TRUE(far > near + 0.005f); // 4 MiB by the fastest link: 6 us
    }
    disconnect(0, 1);
    for (int n = 0; n < 2; n++) {
        WANT(cudaSuccess, cudaFree(d[n]));
    }
}

/** Modelled milliseconds of a game of two blocks. */
static float time_of_game(struct pair *p, int pollers) {
    enum { ROUNDS = 20 };
    cudaEvent_t events[2];
    float milliseconds = 0;
    for (int d = 0; d < 2; d++) {
        WANT(cudaSuccess, cudaSetDevice(d));
        WANT(cudaSuccess, cudaMemset(p->d[d], 0, sizeof(int)));
        WANT(cudaSuccess, cudaDeviceSynchronize());
    }
    for (int n = 0; n < 2; n++) {
        WANT(cudaSuccess, cudaEventCreate(&events[n]));
    }
    WANT(cudaSuccess, cudaEventRecord(events[0], NULL));
    launch_play_together(p->d[1], p->d[0], ROUNDS, true, pollers, NULL);
    WANT(cudaSuccess, cudaEventRecord(events[1], NULL));
    WANT(cudaSuccess, cudaSetDevice(0));
    launch_play_together(p->d[0], p->d[1], ROUNDS, false, pollers, NULL);
    WANT(cudaSuccess, cudaDeviceSynchronize());
    WANT(cudaSuccess, cudaSetDevice(1));
    WANT(cudaSuccess, cudaEventSynchronize(events[1]));
    WANT(cudaSuccess, cudaEventElapsedTime(&milliseconds, events[0], events[1]));
    for (int n = 0; n < 2; n++) {
        WANT(cudaSuccess, cudaEventDestroy(events[n]));
    }
    return milliseconds;
}

/** Who polls, and how often it happens to look here, is no matter of modelled time. With full
 * checks the order of turns changes from launch to launch, and the times of such kernels with it.
 */
PAIR_TEST(waiting_takes_no_time) {
    const char *check = getenv("SIMT_CHECK");
    connect(0, 1);
    float one = time_of_game(p, 1), all = time_of_game(p, 128);
    if (check != NULL && strcmp(check, "bounds") == 0) {
        EXPECT_TRUE(one < 1.5f * all && all < 1.5f * one);
    }
    disconnect(0, 1);
}

/** Work in the round of a polling loop in which the flag has changed is work. */
PAIR_TEST(work_in_a_polling_loop_counts) {
    enum { CHANGES = 12 };
    struct simt_totals before, after;
    struct simt_api simt;
    int *d_flag = p->d[0] + CHANGES + 1, times = 0;
    connect(0, 1);
    bool counts = simt_find(&simt);
    if (counts) {
        simt.read_totals(&before);
    }
    launch_work_while_waiting(d_flag, CHANGES, p->d[0] + CHANGES + 2, NULL);
    WANT(cudaSuccess, cudaSetDevice(1));
    launch_tell_words(p->d[0], d_flag, CHANGES, true, NULL);
    WANT(cudaSuccess, cudaDeviceSynchronize());
    WANT(cudaSuccess, cudaSetDevice(0));
    WANT(cudaSuccess, cudaMemcpy(&times, p->d[0] + CHANGES + 2, sizeof times, cudaMemcpyDefault));
    EXPECT_TRUE(times >= 1 && times <= CHANGES);
    if (counts) {
        simt.read_totals(&after);
        struct simt_totals work = simt_totals_between(&before, &after);
        EXPECT_TRUE(work.counters.flops >= (uint64_t)times * WORK_AT_A_CHANGE);
    }
    disconnect(0, 1);
}

/** @return words that were missing in all games of several */
static int missing_words(struct pair *p, bool fence) {
    enum { GAMES = 8, WORDS = 12 };
    int *d_flag = p->d[0] + WORDS + 1, *d_missing = d_flag + 1, missing = 0, sum = 0;
    for (int game = 0; game < GAMES; game++) {
        WANT(cudaSuccess, cudaSetDevice(0));
        WANT(cudaSuccess, cudaMemset(p->d[0], 0, sizeof p->host));
        WANT(cudaSuccess, cudaDeviceSynchronize());
        launch_count_missing(p->d[0], d_flag, WORDS, d_missing, NULL);
        WANT(cudaSuccess, cudaSetDevice(1));
        launch_tell_words(p->d[0], d_flag, WORDS, fence, NULL);
        WANT(cudaSuccess, cudaDeviceSynchronize());
        WANT(cudaSuccess, cudaSetDevice(0));
        WANT(cudaSuccess, cudaMemcpy(&missing, d_missing, sizeof missing, cudaMemcpyDefault));
        sum += missing;
    }
    return sum;
}

/** Others may see a store after later ones, but not beyond a fence. */
PAIR_TEST(stores_come_late) {
    const char *check = getenv("SIMT_CHECK");
    connect(0, 1);
    EXPECT_INT_EQ(0, missing_words(p, true));
    int without = missing_words(p, false);
    if (getenv("SIMT_DEVICES") != NULL && (check == NULL || strcmp(check, "full") == 0)) {
        EXPECT_TRUE(without > 0);
    }
    disconnect(0, 1);
}

C_TEST(devices, reset_leaves_the_others) {
    void *a = NULL, *b = NULL;
    size_t free_bytes = 0, total = 0, at_first = 0;
    WANT(cudaSuccess, cudaSetDevice(3));
    WANT(cudaSuccess, cudaMemGetInfo(&at_first, &total));
    WANT(cudaSuccess, cudaMalloc(&a, 4096));
    WANT(cudaSuccess, cudaSetDevice(2));
    WANT(cudaSuccess, cudaMalloc(&b, 4096));
    WANT(cudaSuccess, cudaSetDevice(3));
    WANT(cudaSuccess, cudaDeviceReset());
    WANT(cudaSuccess, cudaMemGetInfo(&free_bytes, &total));
    EXPECT_TRUE(free_bytes >= at_first);
    WANT(cudaErrorInvalidValue, cudaFree(a));
    WANT(cudaSuccess, cudaSetDevice(2));
    WANT(cudaSuccess, cudaFree(b));
    WANT(cudaSuccess, cudaSetDevice(0));
}
