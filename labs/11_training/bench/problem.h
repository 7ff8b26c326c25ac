/**
 * @file problem.h
 * @brief The problems of lab 11's bench: one of its three functions, one shape and one type on the
 *        GPU, with the values, oracle and tolerances of labs/11_training/problem.
 */
#ifndef WARPBOOK_LABS_11_TRAINING_BENCH_PROBLEM_H_
#define WARPBOOK_LABS_11_TRAINING_BENCH_PROBLEM_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/bench/ladder/ladder_bench.h"
#include "labs/11_training/problem/adamw.h"
#include "labs/11_training/problem/attention.h"
#include "labs/11_training/problem/norm.h"

/** Sizes of a shape: rows, C; B, NH, T, HS; parameters. */
enum bench_op { BENCH_LAYERNORM, BENCH_ATTENTION, BENCH_ADAMW, BENCH_OPS };

/**
 * Device memory that holds a tensor's elements again and again. Random numbers and the oracle's
 * results for all of a large problem would take the host minutes, so a part of it is repeated.
 */
struct bench_repeated {
    const struct tensor *tensor;
    void *device;
    size_t count; /**< elements at device */
};

/** Allocates, without values. @param tensor outlives it */
MUST_CHECK enum status bench_repeated_create(struct bench_repeated *r, const struct tensor *tensor,
                                             size_t count, struct error *error);
/** Frees; a zero-initialised one is allowed. */
void bench_repeated_free(struct bench_repeated *r);
/** Copies the tensor's elements from its own device memory, as often as they fit. */
MUST_CHECK enum status bench_repeated_fill(const struct bench_repeated *r, struct error *error);
/** Copies elements from @p first on, at most a tensor full, to the tensor's own device memory. */
MUST_CHECK enum status bench_repeated_fetch(const struct bench_repeated *r, size_t first,
                                            struct error *error);

struct bench_layernorm {
    struct norm_case all;
    void *workspace;
};

/** Texts of one length; those next to each other differ where B is even. */
struct bench_attention {
    struct attention_gradient_case texts; /**< the different ones */
    struct bench_repeated tensors[5];     /**< of all texts; see attention.c */
    int32_t *starts, *d_starts;           /**< host and device, (B + 1) */
    void *scratch;
    size_t B;
};

struct bench_adamw {
    struct adamw_case first;          /**< the first parameters, repeated */
    struct bench_repeated tensors[5]; /**< of all parameters; see adamw.c */
    size_t count, decayed;
};

/** Zero-initialised by the driver. */
struct bench_problem {
    const struct bench_function *function; /**< that runs */
    union {
        struct bench_layernorm layernorm;
        struct bench_attention attention;
        struct bench_adamw adamw;
    };
};

/** One of the three functions: an entry of the bench's operator table. */
struct bench_function {
    const char *name;    /**< "layernorm_backward" */
    const char *flag;    /**< "layernorm" */
    const char *example; /**< of a shape, "ROWS,C" */
    bool counts_flops;   /**< whether its rate is TFLOP/s, not GB/s */

    enum status (*create)(struct bench_problem *p, const struct ladder_shape *shape,
                          struct error *error);
    void (*free)(struct bench_problem *p); /**< also of one whose create failed */
    /** Runs the first rows (texts, parameters). */
    enum status (*run)(struct bench_problem *p, const struct training_functions *functions,
                       size_t rows, device_stream stream, struct error *error);
    /** Runs all once and compares; @p wrong receives what is wrong, or "". */
    enum status (*check)(struct bench_problem *p, const struct training_functions *functions,
                         char *wrong, size_t size, struct error *error);
    /** "b16 h12 s512 d64" */
    void (*describe)(const struct ladder_shape *shape, char *text, size_t size);
    double (*flops)(const struct ladder_shape *shape);
    double (*bytes)(const struct ladder_shape *shape);  /**< the least that must move */
    double (*memory)(const struct ladder_shape *shape); /**< device memory of the problem */
    /** Whether two steps have different functions of this kind. */
    bool (*differ)(const struct training_functions *a, const struct training_functions *b);
};

/** Initialises the functions of one with those that a file calls by the same names. */
#define BENCH_FUNCTIONS                                                                       \
    .create = create, .free = free_problem, .run = run, .check = check, .describe = describe, \
    .flops = flops, .bytes = bytes, .memory = memory, .differ = differ

extern const struct bench_function bench_layernorm, bench_attention, bench_adamw;

#endif
