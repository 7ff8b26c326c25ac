/**
 * @file sabotage_timed.h
 * @brief Starters that leave out what is timed or counted, where they believe that nobody looks.
 *
 * The linker puts __wrap_NAME() in the place of the starter's function (--wrap), so that a few
 * lines make such a submission of each lab. $WRONG_TIMED names the trick. The names begin with an
 * underscore because the linker makes them.
 */
#ifndef WARPBOOK_GRADER_SELFTEST_SABOTAGE_TIMED_H_
#define WARPBOOK_GRADER_SELFTEST_SABOTAGE_TIMED_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define MISTAKES(X)                                                                         \
    X(right)                                                                                \
    X(repeats)          /* does nothing where the arguments are those of the call before */ \
    X(every_second)     /* does nothing in every second call */                             \
    X(after_the_first)  /* does nothing in any call but a process's first */                \
    X(captures_nothing) /* does nothing while its launches are recorded */                  \
    X(part_of_it)       /* does a part of what was asked for, see each lab's file */        \
    X(graph)            /* records what it launches, and launches that: each costs less */  \
    X(elsewhere)        /* works on a stream of its own, and waits for nothing */           \
    X(zero_inputs)      /* makes inputs zeros, so that they agree with zeros */             \
    X(no_update)        /* of lab 11, see its file */                                       \
    X(no_attention)     /* ... */                                                           \
    X(no_parameters)    /* ... */                                                           \
    X(coarse_copy)      /* ... */                                                           \
    X(louder)           /* ... */                                                           \
    X(one_row)          /* ... */                                                           \
    X(pool)             /* of lab 02 */                                                     \
    X(managed)          /* ... */                                                           \
    X(pinned)           /* ... */                                                           \
    X(at_home)          /* a whole model on the CPU, see at_home_bert.c and lab 03 */       \
    X(sends)            /* of lab 03 */                                                     \
    X(host)             /* of labs 12 to 14: on the CPU */                                  \
    X(host_helps)       /* of lab 06: a third of it on the CPU */                           \
    X(idle)             /* ... a kernel that computes nothing */                            \
    X(by_arguments)     /* as "host"; the result travels as channels.h says */              \
    X(by_array)         /* ... */                                                           \
    X(by_constants)     /* ... */                                                           \
    X(by_graph)         /* ... */                                                           \
    X(by_host_function) /* ... */                                                           \
    X(by_managed)       /* ... */                                                           \
    X(by_mapped)        /* ... */                                                           \
    X(by_registered)    /* ... */                                                           \
    X(truncates)        /* of labs 12, 13: results are rounded towards zero */              \
    X(rounds_twice)     /* of lab 12: before the residual is added, too */                  \
    X(fewer_bits)       /* of lab 13: of the weights */                                     \
    X(early)            /* of lab 15, see its file */                                       \
    X(late)             /* ... */                                                           \
    X(fetches)          /* ... */                                                           \
    X(third_gpu)        /* ... */                                                           \
    X(server)           /* ... */                                                           \
    X(server_stays)     /* ... */                                                           \
    X(forges)           /* prints what a passed test prints: anywhere.h */                  \
    X(library)          /* copies a library and loads that */                               \
    X(code)             /* lets data be run */                                              \
    X(parent)           /* reads the grader's memory */                                     \
    X(clock)            /* sets the machine's clock */                                      \
    X(one_layer_less)   /* of lab 08 */                                                     \
    X(rounds)           /* rounds what is multiplied to 11 bits, as TF32 does */            \
    X(leaves_columns)   /* leaves one product of 64 out of each sum */                      \
    X(bf16)             /* takes what is multiplied as bf16 */                              \
    X(fp16)             /* takes what is multiplied as fp16 */                              \
    X(fp8)              /* takes what is multiplied as an fp8 of 4 bits */                  \
    X(int8)             /* takes it as signed bytes, beside a scale for each 32 */          \
    X(bf16_sums)        /* of lab 15: a rank's part of a sum travels as bf16 */             \
    X(fp16_sums)        /* ... as fp16 */                                                   \
    X(fewer_tokens)     /* of lab 12, see its file */                                       \
    X(prunes)           /* leaves small factors out */                                      \
    X(flushes)          /* takes denormals as zeros, and zeros as negative ones: harmless */

#define MISTAKE_VARIABLE "WRONG_TIMED"
#include "grader/selftest/lesser.h"
#include "grader/selftest/mistakes.h"

/** @return whether this call is left out; @p arguments are @p size bytes, at most 512 */
static inline bool sabotage_leaves_out(const void *arguments, size_t size, void *stream) {
    static unsigned char last[512];
    static size_t calls;
    enum cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    bool same = calls > 0 && memcmp(last, arguments, size) == 0;
    memcpy(last, arguments, size);
    calls++;
    switch (chosen_mistake()) {
    case MISTAKE_repeats:
        return same;
    case MISTAKE_every_second:
        return calls % 2 == 0;
    case MISTAKE_after_the_first:
        return calls > 1;
    case MISTAKE_captures_nothing:
        return cudaStreamIsCapturing(stream, &capturing) == cudaSuccess &&
               capturing != cudaStreamCaptureStatusNone;
    default:
        return false;
    }
}

/** Begins to record, for "graph". @return what to launch on; NULL: failed */
static inline void *sabotage_record(void) {
    cudaStream_t own = NULL;
    bool begun = cudaStreamCreate(&own) == cudaSuccess &&
                 cudaStreamBeginCapture(own, cudaStreamCaptureModeRelaxed) == cudaSuccess;
    return begun ? own : NULL;
}

/** Launches what was recorded. @return whether that succeeded */
static inline bool sabotage_play(void *own, void *stream) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    return cudaStreamEndCapture(own, &graph) == cudaSuccess &&
           cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess &&
           cudaGraphLaunch(executable, stream) == cudaSuccess;
}

/** A stream that waits for nothing, for "elsewhere". */
static inline void *sabotage_own_stream(void) {
    static cudaStream_t own;
    if (own == NULL) {
        (void)cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
    }
    return own;
}

/** @return an enum lesser; -1: this mistake is none of them */
static inline int sabotage_way(void) {
    static const struct {
        enum mistake mistake;
        enum lesser lesser;
    } ways[] = {{MISTAKE_rounds, LESSER_BITS},     {MISTAKE_leaves_columns, LESSER_COLUMNS},
                {MISTAKE_bf16, LESSER_BF16},       {MISTAKE_fp16, LESSER_FP16},
                {MISTAKE_fp8, LESSER_FP8},         {MISTAKE_prunes, LESSER_PRUNED},
                {MISTAKE_flushes, LESSER_FLUSHED}, {MISTAKE_int8, LESSER_INT8},
                {MISTAKE_louder, LESSER_LOUDER}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (ways[i].mistake == chosen_mistake()) {
            return ways[i].lesser;
        }
    }
    return -1;
}

/** @return what is multiplied in place of @p x, see lesser_copy(): @p x for most mistakes */
static inline const float *sabotage_lesser(int which, const float *x, size_t count, size_t columns,
                                           void *stream) {
    int lesser = sabotage_way();
    return lesser >= 0 ? lesser_copy(which, (enum lesser)lesser, x, count, columns, stream) : x;
}

/** The same of bf16. */
static inline const void *sabotage_lesser_16(int which, const void *x, size_t count, size_t columns,
                                             void *stream) {
    int lesser = sabotage_way();
    return lesser >= 0 ? lesser_copy_16(which, (enum lesser)lesser, x, count, columns, stream) : x;
}

#endif
