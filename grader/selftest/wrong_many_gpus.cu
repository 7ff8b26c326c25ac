/*
 * Wrong submissions to lab 15. $WRONG_MANY_GPUS names one; each must be caught by the parity test,
 * with a message that leads to the mistake. "right" is the control: it must pass, and so must the
 * others whose names begin with it. There are three designs, and "right" uses each for some sizes:
 *
 * - SLOTS: each rank writes its data into a slot of every rank's workspace, signals, waits for all
 *   signals and adds up; "relaxed" where all these accesses are volatile;
 * - IN_PLACE: the ranks meet, each adds up its chunk of all ranks' data and writes the sums to all,
 *   and they meet again;
 * - PACKETS: a word and the call's number are one 8-byte store into a mailbox of every rank.
 */
#include <stdint.h>
#include <string.h>

#include "common/cuda/convert.cuh"
#include "labs/15_many_gpus/given/renamed_starter.h"

#define MISTAKES(X)                                                                               \
    X(right)                                                                                      \
    X(empty)         /* does nothing */                                                           \
    X(own_only)      /* waits for the others and adds nothing */                                  \
    X(no_fence)      /* no fence between the data and its signal */                               \
    X(no_wait)       /* does not wait for the signals */                                          \
    X(single_buffer) /* one slot for all calls: it is used again before the others have read */   \
    X(stale)         /* any signal will do, also that of a call before */                         \
    X(own_first)     /* each rank begins with its own data: another order on each */              \
    X(two_only)      /* adds ranks 0 and 1 alone */                                               \
    X(off_by_one)    /* takes the neighbour's slot for each rank's */                             \
    X(tail)          /* leaves out what is behind the last whole block of threads */              \
    X(counts_differ) /* rank 1 sends and signals half */                                          \
    X(bf16_bits)     /* adds bf16 as if it were fp32 */                                           \
    X(no_bias)       /* the product forgets the bias */                                           \
    X(x_replaced)    /* the product replaces x */                                                 \
    X(cut_no_bias)   /* the cut gives nobody the bias of out and down */                          \
    X(cut_all_bias)  /* the cut gives every rank the bias of out and down */                      \
    X(cut_all)       /* every rank has all of every matrix */                                     \
    X(cut_queries)   /* key heads are cut as if there were as many as query heads */              \
    X(cut_rows)      /* out is cut by rows */                                                     \
    X(not_refused)   /* takes what it must refuse */                                              \
    X(in_place_no_fence)     /* in place: no fence before the last signal */                      \
    X(in_place_gpu_fence)    /* in place: a fence for the own GPU alone */                        \
    X(in_place_no_start)     /* in place: reads data of ranks that have not come */               \
    X(in_place_no_end)       /* in place: writes data of ranks that are done */                   \
    X(in_place_late_fence)   /* in place: no fence between the poll and what comes after */       \
    X(relaxed_no_fence)      /* relaxed slots: no fence between the data and its signal */        \
    X(relaxed_single_buffer) /* relaxed slots: one for all calls */                               \
    X(right_relaxed)         /* relaxed slots with fences, two in turn */                         \
    X(packets_host_count)    /* packets: calls are counted on the host */                         \
    X(packets_one_mailbox)   /* packets: one mailbox for all calls */                             \
    X(packets_flag_first)    /* packets: the number is stored before the word */                  \
    X(packets_two_stores)    /* packets: the word is stored before the number, without a fence */ \
    X(packets_two_loads)     /* packets: the word is loaded before the number */                  \
    X(right_fenced)          /* packets: word, fence, number; number, fence, word */              \
    X(right_given_back)      /* packets: one mailbox, used again when all have read it */
#define MISTAKE_VARIABLE "WRONG_MANY_GPUS"
#include "grader/selftest/mistakes.h"

enum {
    THREADS = 256,
    SLOT_BYTES = 1 << 20,
    PACKETS_AT = 8 << 20,
    MAILBOX_BYTES = 1 << 18,
    CALLS_AT = 14 << 20, /* one counter a design */
    SIGNALS_AT = 15 << 20
};

enum design { SLOTS, IN_PLACE, PACKETS, DESIGNS, RELAXED_SLOTS };

struct everybody {
    int rank, ranks;
    char *workspace[COMM_MAX_RANKS], *data[COMM_MAX_RANKS];
};

static enum design design_of(enum mistake m, size_t words) {
    return m == MISTAKE_right                ? (enum design)(words % DESIGNS)
           : m >= MISTAKE_packets_host_count ? PACKETS
           : m >= MISTAKE_relaxed_no_fence   ? RELAXED_SLOTS
           : m >= MISTAKE_in_place_no_fence  ? IN_PLACE
                                             : SLOTS;
}

static __device__ volatile unsigned *signal_of(const struct everybody &e, int to, int from) {
    return (volatile unsigned *)(e.workspace[to] + SIGNALS_AT) + from * 32;
}

static __device__ unsigned *slot_of(const struct everybody &e, int to, int from, unsigned call,
                                    enum mistake m) {
    bool single = m == MISTAKE_single_buffer || m == MISTAKE_relaxed_single_buffer;
    size_t box = single ? 0 : call & 1;
    return (unsigned *)(e.workspace[to] + (box * (size_t)e.ranks + (size_t)from) * SLOT_BYTES);
}

static __device__ unsigned add_words(unsigned a, unsigned b, bool fp32) {
    if (fp32) {
        return __float_as_uint(__uint_as_float(a) + __uint_as_float(b));
    }
    float2 x = __bfloat1622float2(*(const __nv_bfloat162 *)&a);
    float2 y = __bfloat1622float2(*(const __nv_bfloat162 *)&b);
    __nv_bfloat162 sum = __floats2bfloat162_rn(x.x + y.x, x.y + y.y);
    return *(const unsigned *)&sum;
}

template <bool RELAXED>
static __device__ unsigned sum_at(const struct everybody &e, unsigned call, size_t i, bool fp32,
                                  enum mistake m) {
    unsigned sum = 0;
    int n = m == MISTAKE_two_only && e.ranks > 2 ? 2 : e.ranks;
    for (int k = 0; k < n; k++) {
        int r = m == MISTAKE_own_first ? (e.rank + k) % n : k;
        int from = m == MISTAKE_off_by_one && r != e.rank ? (r + 1) % e.ranks : r;
        const unsigned *at = slot_of(e, e.rank, from, call, m) + i;
        unsigned x;
        if (RELAXED) {
            x = *(const volatile unsigned *)at;
        } else {
            x = *at;
        }
        sum = k == 0 ? x : add_words(sum, x, fp32);
    }
    return sum;
}

/* One block; words are fp32, or two bf16. */
template <bool RELAXED>
static __device__ void sum(unsigned *data, size_t words, bool fp32, const struct everybody &e,
                           enum mistake m) {
    unsigned *calls = (unsigned *)(e.workspace[e.rank] + CALLS_AT), call = *calls + 1;
    size_t sent = m == MISTAKE_tail                           ? words / THREADS * THREADS
                  : m == MISTAKE_counts_differ && e.rank == 1 ? words / 2
                                                              : words;
    __syncthreads();
    for (int to = 0; to < e.ranks; to++) {
        for (size_t i = threadIdx.x; i < sent; i += THREADS) {
            unsigned *at = slot_of(e, to, e.rank, call, m) + i;
            if (RELAXED) {
                *(volatile unsigned *)at = data[i];
            } else {
                *at = data[i];
            }
        }
    }
    if (m != MISTAKE_no_fence && m != MISTAKE_relaxed_no_fence) {
        __threadfence_system();
    }
    __syncthreads();
    if (threadIdx.x < e.ranks) {
        *signal_of(e, (int)threadIdx.x, e.rank) = call;
        while (m != MISTAKE_no_wait &&
               *signal_of(e, e.rank, (int)threadIdx.x) < (m == MISTAKE_stale ? 1 : call)) {
        }
        __threadfence_system();
    }
    __syncthreads();
    for (size_t i = threadIdx.x; i < sent && m != MISTAKE_own_only; i += THREADS) {
        data[i] = sum_at<RELAXED>(e, call, i, fp32 || m == MISTAKE_bf16_bits, m);
    }
    if (threadIdx.x == 0) {
        *calls = call;
    }
}

static __global__ void __launch_bounds__(THREADS)
    sum_kernel(unsigned *data, size_t words, bool fp32, struct everybody e, enum mistake m) {
    sum<false>(data, words, fp32, e, m);
}

static __global__ void __launch_bounds__(THREADS)
    relaxed_kernel(unsigned *data, size_t words, bool fp32, struct everybody e, enum mistake m) {
    sum<true>(data, words, fp32, e, m);
}

static __device__ void meet(const struct everybody &e, unsigned phase, unsigned call,
                            enum mistake m) {
    size_t at = SIGNALS_AT + (1 + phase) * (size_t)4096;
    __syncthreads();
    if (threadIdx.x < e.ranks) {
        if (m == MISTAKE_in_place_gpu_fence) {
            __threadfence();
        } else if (m != MISTAKE_in_place_no_fence) {
            __threadfence_system();
        }
        ((volatile unsigned *)(e.workspace[threadIdx.x] + at))[e.rank] = call;
        while (((volatile unsigned *)(e.workspace[e.rank] + at))[threadIdx.x] != call) {
        }
    }
    if (m != MISTAKE_in_place_late_fence) {
        __threadfence_system();
        __syncthreads();
    }
}

/* One block, as sum_kernel. */
static __global__ void __launch_bounds__(THREADS)
    in_place_kernel(size_t words, bool fp32, struct everybody e, enum mistake m) {
    unsigned *calls = (unsigned *)(e.workspace[e.rank] + CALLS_AT) + IN_PLACE, call = *calls + 1;
    size_t end = words * (e.rank + 1) / e.ranks;
    if (m != MISTAKE_in_place_no_start) {
        meet(e, 0, call, m);
    }
    for (size_t i = words * e.rank / e.ranks + threadIdx.x; i < end; i += THREADS) {
        unsigned sum = ((const unsigned *)e.data[0])[i];
        for (int r = 1; r < e.ranks; r++) {
            sum = add_words(sum, ((const unsigned *)e.data[r])[i], fp32);
        }
        for (int r = 0; r < e.ranks; r++) {
            ((unsigned *)e.data[r])[i] = sum;
        }
    }
    if (m != MISTAKE_in_place_no_end) {
        meet(e, 1, call, m);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        *calls = call;
    }
}

typedef unsigned long long packet;

static __device__ void send(volatile packet *to, unsigned word, unsigned call, enum mistake m) {
    volatile unsigned *parts = (volatile unsigned *)to;
    if (m == MISTAKE_packets_flag_first) {
        parts[1] = call;
        parts[0] = word;
    } else if (m == MISTAKE_packets_two_stores || m == MISTAKE_right_fenced) {
        parts[0] = word;
        if (m == MISTAKE_right_fenced) {
            __threadfence_system();
        }
        parts[1] = call;
    } else {
        *to = (packet)call << 32 | word;
    }
}

static __device__ unsigned receive(const volatile packet *from, unsigned call, enum mistake m) {
    const volatile unsigned *parts = (const volatile unsigned *)from;
    if (m == MISTAKE_packets_two_loads) {
        unsigned word;
        do {
            word = parts[0];
        } while (parts[1] != call);
        return word;
    }
    if (m == MISTAKE_right_fenced) {
        while (parts[1] != call) {
        }
        __threadfence_system();
        return parts[0];
    }
    packet got;
    do {
        got = *from;
    } while ((unsigned)(got >> 32) != call);
    return (unsigned)got;
}

/* Packets of this call have been read, here: every rank hears of that, and waits for all. */
static __device__ void give_back(const struct everybody &e, unsigned call) {
    size_t at = SIGNALS_AT + (COMM_MAX_RANKS * (size_t)blockIdx.x + 64) * 4;
    __syncthreads();
    if (threadIdx.x < e.ranks) {
        __threadfence_system();
        ((volatile unsigned *)(e.workspace[threadIdx.x] + at))[e.rank] = call;
        while (((volatile unsigned *)(e.workspace[e.rank] + at))[threadIdx.x] != call) {
        }
        __threadfence_system();
    }
}

/* A thread a word. @param counted the number of the call, or 0: counted here */
static __global__ void __launch_bounds__(THREADS)
    packets_kernel(unsigned *data, size_t words, bool fp32, unsigned counted, struct everybody e,
                   enum mistake m) {
    size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x;
    unsigned *calls = (unsigned *)(e.workspace[e.rank] + CALLS_AT) + 64 + blockIdx.x;
    unsigned call = counted != 0 ? counted : *calls + 1;
    size_t box = m == MISTAKE_packets_one_mailbox || m == MISTAKE_right_given_back ? 0 : call % 2;
    size_t at = PACKETS_AT + box * COMM_MAX_RANKS * MAILBOX_BYTES + i * sizeof(packet);
    for (int to = 0; to < e.ranks && i < words; to++) {
        send((volatile packet *)(e.workspace[to] + at + (size_t)e.rank * MAILBOX_BYTES), data[i],
             call, m);
    }
    unsigned sum = 0;
    for (int r = 0; r < e.ranks && i < words; r++) {
        unsigned word =
            receive((const volatile packet *)(e.workspace[e.rank] + at + (size_t)r * MAILBOX_BYTES),
                    call, m);
        sum = r == 0 ? word : add_words(sum, word, fp32);
    }
    if (i < words) {
        data[i] = sum;
    }
    if (m == MISTAKE_right_given_back) {
        give_back(e, call);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        *calls = call;
    }
}

/* Of a rank's calls by packets so far, each rank on a thread of its own. */
static unsigned count_on_host(enum mistake m, int rank) {
    static unsigned calls[COMM_MAX_RANKS];
    return m == MISTAKE_packets_host_count ? ++calls[rank] : 0;
}

static void launch(const struct everybody &e, size_t words, bool fp32, device_stream stream,
                   enum mistake m) {
    unsigned *data = (unsigned *)e.data[e.rank];
    switch (design_of(m, words)) {
    case IN_PLACE:
        in_place_kernel<<<1, THREADS, 0, stream>>>(words, fp32, e, m);
        break;
    case PACKETS:
        packets_kernel<<<(unsigned)((words + THREADS - 1) / THREADS), THREADS, 0, stream>>>(
            data, words, fp32, count_on_host(m, e.rank), e, m);
        break;
    case RELAXED_SLOTS:
        relaxed_kernel<<<1, THREADS, 0, stream>>>(data, words, fp32, e, m);
        break;
    default:
        sum_kernel<<<1, THREADS, 0, stream>>>(data, words, fp32, e, m);
    }
}

enum status many_all_reduce(struct comm *comm, const struct many_all_reduce *reduce,
                            device_stream stream, struct error *error) {
    enum mistake m = chosen_mistake();
    struct everybody e = {};
    e.rank = comm->rank, e.ranks = comm->ranks;
    if (m != MISTAKE_not_refused) {
        TRY(many_all_reduce_check(comm, reduce, error));
    }
    for (int r = 0; r < comm->ranks; r++) {
        e.workspace[r] = (char *)reduce->workspace->at[r];
        e.data[r] = (char *)reduce->data[r];
    }
    if (m != MISTAKE_empty) {
        size_t words = reduce->count * nn_dtype_bytes(reduce->dtype) / sizeof(unsigned);
        launch(e, words, reduce->dtype == NN_F32, stream, m);
    }
    return device_launched("sum", error);
}

enum status many_linear(struct comm *comm, const struct many_linear *linear, device_stream stream,
                        struct error *error) {
    struct many_linear own = *linear;
    if (chosen_mistake() == MISTAKE_no_bias) {
        own.bias = NULL;
    }
    if (chosen_mistake() == MISTAKE_x_replaced) {
        TRY(device_set(own.x, 0, own.N * sizeof(float), stream, error));
    }
    return starter_many_linear(comm, &own, stream, error);
}

void many_cut(enum many_matrix matrix, const struct many_shape *shape, int rank, int ranks,
              struct many_part *part) {
    enum mistake m = chosen_mistake();
    bool keys = matrix == MANY_K || matrix == MANY_V, last = matrix == MANY_OUT;
    bool heads = keys || last || matrix == MANY_Q, out = last || matrix == MANY_DOWN;
    size_t all = heads ? shape->HS * (keys ? shape->KVH : shape->NH) : shape->hidden;
    size_t parts = m == MISTAKE_cut_all ? 1 : (size_t)ranks, count = all / parts;
    size_t first = m == MISTAKE_cut_all ? 0 : (size_t)rank * count;
    if (keys && m == MISTAKE_cut_queries) {
        first = all - (size_t)(rank + 1) * count;
    }
    if (last && m == MISTAKE_cut_rows) {
        size_t rows = shape->C / parts;
        *part = {(size_t)rank * rows, rows, 0, all, (size_t)rank * rows, rows};
    } else if (out) {
        bool adds = m == MISTAKE_cut_all_bias || (rank == 0 && m != MISTAKE_cut_no_bias);
        *part = {0, shape->C, first, count, 0, adds ? shape->C : 0};
    } else {
        *part = {first, count, 0, shape->C, first, count};
    }
}

const struct many_step *many_ladder(size_t *count) {
    static const struct many_functions functions = {many_all_reduce, many_linear, NULL};
    static const struct many_step steps[] = {{"wrong", functions, false},
                                             {"recorded", functions, true}};
    *count = chosen_mistake() == MISTAKE_packets_host_count ? 2 : 1;
    return steps;
}
