/*
 * NCCL on four emulated devices: communicators of one thread and of a thread a rank, all operations
 * and types, groups, graphs, splits, refusals. The program also runs on four GPUs with NVIDIA's
 * library; sums in another order of ranks give the same for the values here.
 */
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "common/simt/runtime/testdata/checks.h"
#include "common/testing/fixture.h"

enum { RANKS = 4, COUNT = 1000 };

/** Wants an NCCL result by name. */
#define WANT_NCCL(want, call) EXPECT_INT_EQ(want, call)

/** A communicator, a stream and room for RANKS * COUNT doubles in two buffers on each device. */
struct world {
    ncclComm_t comm[RANKS];
    cudaStream_t stream[RANKS];
    char *d_in[RANKS], *d_out[RANKS];
    double host[RANKS * COUNT];
};

static bool create(struct world *w) {
    bool good = ncclCommInitAll(w->comm, RANKS, NULL) == ncclSuccess;
    for (int r = 0; r < RANKS && good; r++) {
        good = cudaSetDevice(r) == cudaSuccess &&
               cudaStreamCreateWithFlags(&w->stream[r], cudaStreamNonBlocking) == cudaSuccess &&
               cudaMalloc((void **)&w->d_in[r], sizeof w->host) == cudaSuccess &&
               cudaMalloc((void **)&w->d_out[r], sizeof w->host) == cudaSuccess &&
               cudaMemset(w->d_out[r], 0, sizeof w->host) == cudaSuccess &&
               cudaDeviceSynchronize() == cudaSuccess;
    }
    return good;
}

static void destroy(struct world *w) {
    for (int r = 0; r < RANKS; r++) {
        WANT(cudaSuccess, cudaSetDevice(r));
        WANT(cudaSuccess, cudaStreamDestroy(w->stream[r]));
        WANT(cudaSuccess, cudaFree(w->d_in[r]));
        WANT(cudaSuccess, cudaFree(w->d_out[r]));
        WANT_NCCL(ncclSuccess, ncclCommDestroy(w->comm[r]));
    }
    WANT(cudaSuccess, cudaSetDevice(0));
}

#define WORLD_TEST(name) FIXTURE_TEST(nccl, name, struct world, w, create(w), destroy(w))

static void wait_for_all(struct world *w) {
    for (int r = 0; r < RANKS; r++) {
        WANT(cudaSuccess, cudaStreamSynchronize(w->stream[r]));
    }
}

/** Input i of rank r: small, so that no type rounds or overflows. */
static double input(int rank, size_t i) {
    return (double)((size_t)rank + 1 + i % 3);
}

/* ---- Types ---- */

static uint16_t half_of(double x, int fraction_bits, int bias) {
    int exponent = 0;
    while (x >= 2) {
        x /= 2;
        exponent++;
    }
    while (x != 0 && x < 1) {
        x *= 2;
        exponent--;
    }
    unsigned fraction = (unsigned)((x - 1) * (1 << fraction_bits));
    return x == 0 ? 0 : (uint16_t)((unsigned)(exponent + bias) << fraction_bits | fraction);
}

static size_t put(char *to, ncclDataType_t type, double x) {
#define PUT(number, T)                    \
    case number: {                        \
        T value = (T)x;                   \
        memcpy(to, &value, sizeof value); \
        return sizeof value;              \
    }
    switch ((int)type) {
        PUT(ncclInt8, int8_t)
        PUT(ncclUint8, uint8_t)
        PUT(ncclInt32, int32_t)
        PUT(ncclUint32, uint32_t)
        PUT(ncclInt64, int64_t)
        PUT(ncclUint64, uint64_t)
        PUT(ncclFloat32, float)
        PUT(ncclFloat64, double)
    default: {
        uint16_t bits = type == ncclFloat16 ? half_of(x, 10, 15) : half_of(x, 7, 127);
        memcpy(to, &bits, sizeof bits);
        return sizeof bits;
    }
    }
}

/** Gives each rank `count` inputs of a type. */
static void give(struct world *w, ncclDataType_t type, size_t count) {
    for (int r = 0; r < RANKS; r++) {
        char *at = (char *)w->host;
        for (size_t i = 0; i < count; i++) {
            at += put(at, type, input(r, i));
        }
        WANT(cudaSuccess, cudaSetDevice(r));
        WANT(cudaSuccess, cudaMemcpy(w->d_in[r], w->host, (size_t)(at - (char *)w->host),
                                     cudaMemcpyHostToDevice));
    }
}

/** Wants value(i) of a type in `count` results of a rank, from element `first` on. */
static void expect(struct world *w, int rank, ncclDataType_t type, size_t first, size_t count,
                   double (*value)(size_t i)) {
    char wanted[8];
    size_t bytes = put(wanted, type, 0);
    int wrong = 0;
    WANT(cudaSuccess, cudaSetDevice(rank));
    WANT(cudaSuccess, cudaMemcpy(w->host, w->d_out[rank] + first * bytes, count * bytes,
                                 cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++) {
        put(wanted, type, value(i));
        wrong += memcmp((char *)w->host + i * bytes, wanted, bytes) != 0;
    }
    EXPECT_INT_EQ(0, wrong);
}

static double sum(size_t i) {
    return 10 + 4.0 * (double)(i % 3);
}

static double product(size_t i) {
    double x = 1;
    for (int r = 0; r < RANKS; r++) {
        x *= input(r, i);
    }
    return x;
}

static double least(size_t i) {
    return input(0, i);
}

static double largest(size_t i) {
    return input(RANKS - 1, i);
}

static double triple(size_t i) {
    return 3 * sum(i);
}

static void all_reduce(struct world *w, ncclDataType_t type, const ncclRedOp_t op[RANKS]) {
    WANT_NCCL(ncclSuccess, ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        WANT_NCCL(ncclSuccess, ncclAllReduce(w->d_in[r], w->d_out[r], COUNT, type, op[r],
                                             w->comm[r], w->stream[r]));
    }
    WANT_NCCL(ncclSuccess, ncclGroupEnd());
    wait_for_all(w);
}

WORLD_TEST(reduces_all_types) {
    static const struct {
        ncclRedOp_t op;
        double (*value)(size_t i);
    } ops[] = {{ncclSum, sum}, {ncclProd, product}, {ncclMin, least}, {ncclMax, largest}};
    for (int type = 0; type < ncclNumTypes; type++) {
        give(w, (ncclDataType_t)type, COUNT);
        for (size_t n = 0; n < sizeof ops / sizeof *ops; n++) {
            bool fits = ops[n].op != ncclProd || (type != ncclInt8 && type != ncclBfloat16);
            const ncclRedOp_t op[RANKS] = {ops[n].op, ops[n].op, ops[n].op, ops[n].op};
            all_reduce(w, (ncclDataType_t)type, op);
            for (int r = 0; r < RANKS && fits; r++) {
                expect(w, r, (ncclDataType_t)type, 0, COUNT, ops[n].value);
            }
        }
    }
}

static double mean(size_t i) {
    return sum(i) / 4;
}

static double whole_mean(size_t i) {
    return (double)(int)(sum(i) / 4);
}

WORLD_TEST(averages_and_scales) {
    const ncclRedOp_t avg[RANKS] = {ncclAvg, ncclAvg, ncclAvg, ncclAvg};
    give(w, ncclFloat32, COUNT);
    all_reduce(w, ncclFloat32, avg);
    expect(w, 2, ncclFloat32, 0, COUNT, mean);
    give(w, ncclInt32, COUNT);
    all_reduce(w, ncclInt32, avg);
    expect(w, 1, ncclInt32, 0, COUNT, whole_mean);

    ncclRedOp_t scaled[RANKS];
    float three = 3;
    give(w, ncclFloat32, COUNT);
    for (int r = 0; r < RANKS; r++) {
        WANT_NCCL(ncclSuccess, ncclRedOpCreatePreMulSum(&scaled[r], &three, ncclFloat32,
                                                        ncclScalarHostImmediate, w->comm[r]));
    }
    all_reduce(w, ncclFloat32, scaled);
    expect(w, 3, ncclFloat32, 0, COUNT, triple);
    WANT_NCCL(ncclInvalidArgument, ncclAllReduce(w->d_in[0], w->d_out[0], 1, ncclInt32, scaled[0],
                                                 w->comm[0], w->stream[0]));
    for (int r = 0; r < RANKS; r++) {
        WANT_NCCL(ncclSuccess, ncclRedOpDestroy(scaled[r], w->comm[r]));
        WANT_NCCL(ncclInvalidArgument, ncclRedOpDestroy(scaled[r], w->comm[r]));
    }
}

static double of_rank_2(size_t i) {
    return input(2, i);
}

WORLD_TEST(reduces_to_and_broadcasts_from_one) {
    give(w, ncclInt64, COUNT);
    for (int r = 0; r < RANKS; r++) { // one thread, no group: nothing waits
        WANT_NCCL(ncclSuccess, ncclReduce(w->d_in[r], r == 1 ? w->d_out[r] : NULL, COUNT, ncclInt64,
                                          ncclSum, 1, w->comm[r], w->stream[r]));
    }
    wait_for_all(w);
    expect(w, 1, ncclInt64, 0, COUNT, sum);
    for (int r = 0; r < RANKS; r++) {
        WANT_NCCL(ncclSuccess, ncclBroadcast(w->d_in[r], w->d_out[r], COUNT, ncclInt64, 2,
                                             w->comm[r], w->stream[r]));
    }
    wait_for_all(w);
    for (int r = 0; r < RANKS; r++) {
        expect(w, r, ncclInt64, 0, COUNT, of_rank_2);
    }
}

static double of_rank_3(size_t i) {
    return input(3, i);
}

static double part_2(size_t i) {
    return sum(i + 2 * (COUNT / RANKS));
}

WORLD_TEST(gathers_and_scatters) {
    give(w, ncclFloat16, COUNT);
    for (int r = 0; r < RANKS; r++) {
        WANT_NCCL(ncclSuccess, ncclAllGather(w->d_in[r], w->d_out[r], COUNT, ncclFloat16,
                                             w->comm[r], w->stream[r]));
    }
    wait_for_all(w);
    for (int r = 0; r < RANKS; r++) {
        expect(w, r, ncclFloat16, 2 * COUNT, COUNT, of_rank_2);
        expect(w, r, ncclFloat16, 3 * COUNT, COUNT, of_rank_3);
    }
    for (int r = 0; r < RANKS; r++) {
        WANT_NCCL(ncclSuccess, ncclReduceScatter(w->d_in[r], w->d_out[r], COUNT / RANKS,
                                                 ncclFloat16, ncclSum, w->comm[r], w->stream[r]));
    }
    wait_for_all(w);
    expect(w, 2, ncclFloat16, 0, COUNT / RANKS, part_2);
}

WORLD_TEST(works_in_place) {
    give(w, ncclFloat32, COUNT);
    for (int r = 0; r < RANKS; r++) {
        WANT(cudaSuccess, cudaSetDevice(r));
        WANT(cudaSuccess,
             cudaMemcpy(w->d_out[r], w->d_in[r], COUNT * sizeof(float), cudaMemcpyDeviceToDevice));
        WANT(cudaSuccess, cudaDeviceSynchronize());
        WANT_NCCL(ncclSuccess, ncclAllReduce(w->d_out[r], w->d_out[r], COUNT, ncclFloat32, ncclSum,
                                             w->comm[r], w->stream[r]));
    }
    wait_for_all(w);
    for (int r = 0; r < RANKS; r++) {
        expect(w, r, ncclFloat32, 0, COUNT, sum);
    }
}

WORLD_TEST(sends_and_receives_in_a_ring) {
    give(w, ncclInt32, COUNT);
    WANT_NCCL(ncclSuccess, ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        WANT_NCCL(ncclSuccess, ncclSend(w->d_in[r], COUNT, ncclInt32, (r + 1) % RANKS, w->comm[r],
                                        w->stream[r]));
        WANT_NCCL(ncclSuccess, ncclRecv(w->d_out[r], COUNT, ncclInt32, (r + RANKS - 1) % RANKS,
                                        w->comm[r], w->stream[r]));
    }
    WANT_NCCL(ncclSuccess, ncclGroupEnd());
    wait_for_all(w);
    expect(w, 3, ncclInt32, 0, COUNT, of_rank_2);
    expect(w, 0, ncclInt32, 0, COUNT, of_rank_3);
}

WORLD_TEST(is_captured_in_graphs) {
    cudaGraphExec_t executable[RANKS];
    give(w, ncclFloat32, COUNT);
    WANT_NCCL(ncclSuccess, ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        WANT(cudaSuccess, cudaStreamBeginCapture(w->stream[r], cudaStreamCaptureModeThreadLocal));
        WANT_NCCL(ncclSuccess, ncclAllReduce(w->d_in[r], w->d_out[r], COUNT, ncclFloat32, ncclSum,
                                             w->comm[r], w->stream[r]));
    }
    WANT_NCCL(ncclSuccess, ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) {
        cudaGraph_t graph = NULL;
        WANT(cudaSuccess, cudaStreamEndCapture(w->stream[r], &graph));
        WANT(cudaSuccess, cudaSetDevice(r));
        WANT(cudaSuccess, cudaGraphInstantiate(&executable[r], graph, 0));
        WANT(cudaSuccess, cudaGraphDestroy(graph));
    }
    for (int round = 0; round < 2; round++) {
        for (int r = 0; r < RANKS; r++) {
            WANT(cudaSuccess, cudaMemset(w->d_out[r], 0, COUNT * sizeof(float)));
        }
        for (int r = 0; r < RANKS; r++) {
            WANT(cudaSuccess, cudaSetDevice(r));
            WANT(cudaSuccess, cudaDeviceSynchronize());
            WANT(cudaSuccess, cudaGraphLaunch(executable[r], w->stream[r]));
        }
        wait_for_all(w);
        for (int r = 0; r < RANKS; r++) {
            expect(w, r, ncclFloat32, 0, COUNT, sum);
        }
    }
    for (int r = 0; r < RANKS; r++) {
        WANT(cudaSuccess, cudaGraphExecDestroy(executable[r]));
    }
}

static double even_sum(size_t i) {
    return input(0, i) + input(2, i);
}

WORLD_TEST(splits_by_color_and_key) {
    ncclComm_t half[RANKS];
    int rank = -1, count = 0;
    WANT_NCCL(ncclSuccess, ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        int color = r == 3 ? NCCL_SPLIT_NOCOLOR : r % 2;
        WANT_NCCL(ncclSuccess, ncclCommSplit(w->comm[r], color, -r, &half[r], NULL));
    }
    WANT_NCCL(ncclSuccess, ncclGroupEnd());
    EXPECT_TRUE(half[3] == NULL);
    WANT_NCCL(ncclSuccess, ncclCommUserRank(half[2], &rank));
    EXPECT_INT_EQ(0, rank); // keys go down
    WANT_NCCL(ncclSuccess, ncclCommCount(half[2], &count));
    EXPECT_INT_EQ(2, count);
    WANT_NCCL(ncclSuccess, ncclCommCount(half[1], &count));
    EXPECT_INT_EQ(1, count);
    give(w, ncclFloat64, COUNT);
    for (int r = 0; r < RANKS; r += 2) {
        WANT_NCCL(ncclSuccess, ncclAllReduce(w->d_in[r], w->d_out[r], COUNT, ncclFloat64, ncclSum,
                                             half[r], w->stream[r]));
    }
    wait_for_all(w);
    expect(w, 0, ncclFloat64, 0, COUNT, even_sum);
    expect(w, 2, ncclFloat64, 0, COUNT, even_sum);
    for (int r = 0; r < RANKS; r++) {
        WANT_NCCL(ncclSuccess, ncclCommDestroy(half[r]));
    }
}

WORLD_TEST(answers_questions_and_refuses) {
    int value = -1;
    ncclResult_t state = ncclInternalError;
    void *handle = NULL;
    WANT_NCCL(ncclSuccess, ncclGetVersion(&value));
    EXPECT_TRUE(value >= NCCL_VERSION(2, 10, 0));
    WANT_NCCL(ncclSuccess, ncclCommCuDevice(w->comm[3], &value));
    EXPECT_INT_EQ(3, value);
    WANT_NCCL(ncclSuccess, ncclCommUserRank(w->comm[2], &value));
    EXPECT_INT_EQ(2, value);
    WANT_NCCL(ncclSuccess, ncclCommGetAsyncError(w->comm[0], &state));
    EXPECT_INT_EQ(ncclSuccess, state);
    EXPECT_STR_EQ("invalid usage", ncclGetErrorString(ncclInvalidUsage));
    WANT_NCCL(ncclInvalidArgument, ncclCommCount(w->comm[0], NULL));
    WANT_NCCL(ncclInvalidArgument, ncclAllReduce(w->d_in[0], w->d_out[0], 1, ncclNumTypes, ncclSum,
                                                 w->comm[0], w->stream[0]));
    WANT_NCCL(ncclInvalidArgument, ncclAllReduce(w->d_in[0], w->d_out[0], 1, ncclInt, ncclNumOps,
                                                 w->comm[0], w->stream[0]));
    WANT_NCCL(ncclInvalidArgument,
              ncclBroadcast(w->d_in[0], w->d_out[0], 1, ncclInt, RANKS, w->comm[0], w->stream[0]));
    WANT_NCCL(ncclInvalidArgument, ncclAllReduce(w->host, w->d_out[0], COUNT, ncclInt, ncclSum,
                                                 w->comm[0], w->stream[0]));
    (void)cudaGetLastError();
    WANT_NCCL(ncclInvalidArgument, ncclAllReduce(w->d_in[0], w->d_out[0], (size_t)1 << 40, ncclInt,
                                                 ncclSum, w->comm[0], w->stream[0]));
    WANT_NCCL(ncclInvalidArgument, ncclAllReduce(w->d_in[1], w->d_out[0], 1, ncclInt, ncclSum,
                                                 w->comm[0], w->stream[0]));
    WANT_NCCL(ncclInvalidArgument, ncclAllReduce(w->d_in[0], w->d_out[0], 1, ncclInt, ncclSum,
                                                 w->comm[0], w->stream[1]));
    (void)cudaGetLastError();
    WANT_NCCL(ncclInvalidUsage, ncclGroupEnd());
    WANT_NCCL(ncclSuccess, ncclCommRegister(w->comm[0], w->d_in[0], 4, &handle));
    WANT_NCCL(ncclSuccess, ncclCommDeregister(w->comm[0], handle));
    WANT(cudaSuccess, cudaSetDevice(0));
    WANT_NCCL(ncclSuccess, ncclMemAlloc(&handle, 100));
    WANT_NCCL(ncclSuccess, ncclMemFree(handle));
}

C_TEST(nccl, refuses_communicators_that_cannot_be) {
    ncclComm_t comms[2] = {NULL, NULL};
    const int same[] = {1, 1};
    ncclUniqueId id;
    WANT_NCCL(ncclInvalidUsage, ncclCommInitAll(comms, 2, same));
    EXPECT_TRUE(comms[0] == NULL && comms[1] == NULL);
    memset(&id, 7, sizeof id);
    WANT_NCCL(ncclInvalidArgument, ncclCommInitRank(&comms[0], 1, id, 0));
    WANT_NCCL(ncclSuccess, ncclGetUniqueId(&id));
    WANT_NCCL(ncclInvalidArgument, ncclCommInitRank(&comms[0], 2, id, 2));
    WANT_NCCL(ncclInvalidArgument, ncclCommInitRank(&comms[0], 0, id, 0));
    WANT_NCCL(ncclSuccess, ncclCommInitRank(&comms[0], 1, id, 0));
    WANT_NCCL(ncclSuccess, ncclCommDestroy(comms[0]));
}

/** A host thread a rank. */
struct member {
    ncclUniqueId id;
    int rank;
    int wrong;
};

static void *take_part(void *argument) {
    struct member *me = argument;
    ncclComm_t comm = NULL;
    int *d = NULL, host[COUNT];
    for (int i = 0; i < COUNT; i++) {
        host[i] = me->rank + i;
    }
    me->wrong = cudaSetDevice(me->rank) != cudaSuccess ||
                ncclCommInitRank(&comm, RANKS, me->id, me->rank) != ncclSuccess ||
                cudaMalloc((void **)&d, sizeof host) != cudaSuccess ||
                cudaMemcpy(d, host, sizeof host, cudaMemcpyDefault) != cudaSuccess;
    for (int round = 0; round < 5 && me->wrong == 0; round++) {
        me->wrong += ncclAllReduce(d, d, COUNT, ncclInt, ncclMax, comm, NULL) != ncclSuccess;
    }
    me->wrong += cudaMemcpy(host, d, sizeof host, cudaMemcpyDefault) != cudaSuccess;
    for (int i = 0; i < COUNT; i++) {
        me->wrong += host[i] != RANKS - 1 + i;
    }
    me->wrong += cudaFree(d) != cudaSuccess;
    me->wrong += ncclCommDestroy(comm) != ncclSuccess;
    return NULL;
}

C_TEST(nccl, a_thread_a_rank) {
    pthread_t threads[RANKS];
    struct member members[RANKS] = {{.rank = 0}};
    WANT_NCCL(ncclSuccess, ncclGetUniqueId(&members[0].id));
    for (int r = 0; r < RANKS; r++) {
        members[r].id = members[0].id;
        members[r].rank = r;
        EXPECT_INT_EQ(0, pthread_create(&threads[r], NULL, take_part, &members[r]));
    }
    for (int r = 0; r < RANKS; r++) {
        pthread_join(threads[r], NULL);
        EXPECT_INT_EQ(0, members[r].wrong);
    }
}
