/**
 * @file remote.h
 * @brief The grader's side: calls to the learner's code, which lives in another process.
 *
 * A graded test holds the oracle, the seed, the clock that counts and the verdict. It links none
 * of the learner's code. Each test case gets processes of its own, one for the learner's code and
 * one for the baseline, started when they are first needed. In this program the functions of
 * common/device work on the GPU of the process that remote_use() named last: the linker sends them
 * to remote_device.c (--wrap, see remote.bzl), so a case reads as if all of it were here.
 *
 * What a worker answers is checked before it is used, and never believed: values are read back and
 * compared here, the time of a call is not less than what this process saw go by. When a worker
 * crashes, hangs or is stopped by the sandbox, the request fails with STATUS_INTERRUPTED and a line
 * that says so, and so does every later one of the same test case.
 */
#ifndef WARPBOOK_GRADER_ISOLATION_REMOTE_H_
#define WARPBOOK_GRADER_ISOLATION_REMOTE_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bench_timing;
struct device_bench_options;

/** Whose functions are called. */
enum remote_side { REMOTE_SUBJECT, REMOTE_BASELINE, REMOTE_SIDES };

/** What takes the subject's side where the starter is graded (starter.h). */
enum { REMOTE_STARTER = REMOTE_SIDES, REMOTE_WORKERS };

/** Of workers. */
enum remote_gpu {
    REMOTE_NO_GPU,
    REMOTE_GPU,        /**< or simt */
    REMOTE_MADE_UP_GPU /**< for a test: they say themselves what their device does */
};

/** The workers of this test program; defined by program.c, from what BUILD says. */
struct remote_program {
    const char *workers[REMOTE_WORKERS]; /**< files beside the test's own; NULL: there is none */
    enum remote_gpu device;              /**< what they use */
    const char *baseline_times;          /**< file beside them, see baseline_times.h; NULL: none */
};
extern const struct remote_program remote_program;

/** From here on calls and device functions go to this side. The subject's, to begin with. */
void remote_use(enum remote_side side);

/**
 * @brief Ends the workers and is back at the subject's side. What a worker wrote is printed when it
 *        ends, here or before its time.
 *
 * device_open() begins with this, so that each test case has fresh workers; a case that does
 * without the device calls it first.
 */
void remote_close(void);

/** @return whether the side in use has answered everything so far; starts nothing. */
bool remote_alive(void);

/**
 * @brief Calls a function of the worker, by the name in its table.
 *
 * All of the arguments come back as the worker says: it may have changed what it was given, too. A
 * size or a pointer of the grader's own must not be taken from there again.
 *
 * @param arguments as the function takes them, with what it leaves there afterwards
 * @return what the function returns, with its line; STATUS_INTERRUPTED, as above
 */
MUST_CHECK enum status remote_call(const char *name, void *arguments, size_t size,
                                   struct error *error);

/**
 * @brief Calls it and times it, waiting for the whole device before and after.
 *
 * Measured time is the worker's, but not less than this process's own clock saw, minus what the
 * baseline's requests take or, before there were any, REMOTE_MESSAGE_MS: a worker that stops its
 * clock too early gains nothing. Modelled time is the
 * device's, which is asked before and after. The arguments do not come back.
 *
 * @param ms receives milliseconds, infinite when it fails
 */
MUST_CHECK enum status remote_call_timed(const char *name, const void *arguments, size_t size,
                                         device_stream stream, double *ms, struct error *error);

/**
 * @return milliseconds that a thread of the side in use has waited for a processor since it
 *         started: of the thread that waited longest; 0 where the kernel does not say
 */
double remote_waited_ms(void);

/**
 * @brief Fails the test where the subject's timed calls so far, on a CPU, kept more processors busy
 *        than they may have threads: what they must reach is a share of these.
 */
void remote_check_threads(int threads);

/** What simt counted in the last call or bench; zeros on a GPU, but for operations and bytes. */
struct remote_counts {
    double flops, bytes; /**< of kernels: operations, and bytes of global memory */
    double sent;         /**< bytes from the worker to the device */
    double launched;     /**< kernels, copies and fills, those of graphs' nodes too */
};
struct remote_counts remote_counted(void);

/**
 * @brief Fails the running test when kernels worked or bytes were sent in the last call, in which
 * nothing was to be computed: operands were loaded before the timed call, or results copied behind
 * it. Does nothing on a GPU.
 */
void remote_check_idle(const char *what);

/** Of which type the operands of a case's products are. */
enum remote_products {
    REMOTE_FP32_PRODUCTS,  /**< three of tensor cores make one, by splitting the operands */
    REMOTE_16_BIT_PRODUCTS /**< tensor cores multiply them as they are */
};

/**
 * @brief Fails the running test when simt counted less than half of @p flops floating-point
 *        operations in the last call or bench that was timed; does nothing on a GPU.
 *
 * What the CPU computes takes no modelled time: the work must have been done by kernels. Operations
 * on tensor cores cost little and can be done on zeros, so that they count by what they are worth.
 */
void remote_check_counted(double flops, enum remote_products products);

/** The same with four fifths: where a part of the results tells the others to whoever finds out
 * how. Seven eighths are enough for a product (Strassen). */
void remote_check_most_counted(double flops, enum remote_products products);

/** The same for bytes that kernels read from and wrote to global memory. */
void remote_check_counted_bytes(double bytes);

/**
 * @brief Fails the running test when the worker sent the device so much in that call that it can
 *        have been the result; does nothing on a GPU.
 *
 * Kernels may do any number of operations while the CPU computes the result, which then has to go
 * to the device: by a copy, as memory of the host that a kernel reads, or in a kernel's arguments.
 *
 * @param inputs bytes that the call got in host memory, and bytes that it may make of them
 * @param result bytes of its result in device memory; an eighth of them is too much: 16 bits are as
 *               good as 32 where a result is compared with others, and fewer may be
 */
void remote_check_sent(double inputs, double result);

/**
 * @brief Fails the running test when the worker has fetched an eighth of the weights from the
 * device since it was started; does nothing on a GPU.
 *
 * Whoever would compute on the CPU what has little input and a small result needs them.
 *
 * @param weights bytes that lie in device memory alone
 */
void remote_check_fetched(double weights);

/** What a request and its answer may take of a call's time without counting. */
#define REMOTE_MESSAGE_MS 0.25

/** The same, where the baseline's requests are known to take long. */
#define REMOTE_SLOWEST_MESSAGE_MS 1.0

/** A message to a submission's worker may take so much longer than what is known of the baseline's:
 * on an H100's busy host it took up to 0.1 ms longer, with honest submissions. */
#define REMOTE_SLACK_MS 0.1

/**
 * @brief Times options->min_runs runs (64 at most) behind options->warmup, each between two events
 *        in the worker; on simt one, by the device's clock, after one call or with its L2 swept.
 * The same arguments serve every run, and do not come back.
 *
 * A run's time is the worker's, but not less than this process's own clock saw beyond what the
 * baseline's runs take beside their time (overheads.h): the baseline is to be timed first.
 */
MUST_CHECK enum status remote_bench(const struct device_bench_options *options, const char *name,
                                    const void *arguments, size_t size, device_stream stream,
                                    struct bench_timing *timing, struct error *error);

/**
 * @brief Counts the launches it makes on @p stream, with the restrictions of
 *        device_count_launches(), and runs exactly these once: the result is to be checked, as the
 *        call could have known that it was only recorded. The arguments do not come back.
 */
MUST_CHECK enum status remote_count_launches(const char *name, const void *arguments, size_t size,
                                             device_stream stream, size_t *launches,
                                             struct error *error);

/**
 * @brief Host memory that the worker in use has at the same address, 64-byte aligned, zeros.
 *
 * For what a function takes or gives in host memory. The worker may change it at any time: copy
 * what comes back before looking at it, and keep own copies of inputs. Freed by remote_close().
 */
MUST_CHECK enum status remote_alloc(void **memory, size_t bytes, struct error *error);

/** remote_alloc() with a copy of @p bytes from @p from. */
MUST_CHECK enum status remote_copy(void **memory, const void *from, size_t bytes,
                                   struct error *error);

#ifdef __cplusplus
}
#endif

#endif
