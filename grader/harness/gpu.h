/**
 * @file gpu.h
 * @brief The GPU that graded cases run on, and whose time they compare.
 */
#ifndef WARPBOOK_GRADER_HARNESS_GPU_H_
#define WARPBOOK_GRADER_HARNESS_GPU_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/device/device.h"
#include "grader/harness/speedup.h"

#ifdef __cplusplus
extern "C" {
#endif

struct grader_gpu {
    struct device_properties properties;
    bool modelled;   /**< on simt: time is modelled, every access is checked */
    char clock[320]; /**< "modelled for NVIDIA H200 by simt", "measured on NVIDIA H200" */
};

/**
 * @brief Opens the GPU; fails the running test with one line when that does not work.
 *
 * Without a GPU the program's other tests are not run: the line comes once.
 *
 * A kernel's mistake stops the GPU for the rest of the process, as CUDA has it. Cases that come
 * after it fail here, with a line that says so.
 *
 * @return whether the test can go on
 */
bool grader_gpu_open(struct grader_gpu *gpu);

/**
 * @brief On a GPU, measures its limits before there is a process of the submission's; once a
 *        program. A test of speed begins with it.
 * @return false, and the program ends, when the GPU cannot be used
 */
bool grader_gpu_probe(void);

/**
 * @brief grader_gpu_probe(), and grader_gpu_open() for a test of speed. In parity tests simt
 * checks all blocks for races, uninitialised reads and more; here some blocks of each launch, which
 * the grader's seed draws, for races and copies that nobody waits for, unless $SIMT_CHECK says
 * otherwise.
 */
bool grader_gpu_open_for_timing(struct grader_gpu *gpu);

/**
 * @return a comparison on @p gpu whose times are still unknown, infinite; but for the baseline's
 *         where the build has recorded it
 */
struct speedup grader_gpu_speedup(const struct grader_gpu *gpu, const char *lab,
                                  const char *measure);

/**
 * @brief The least time of this work on the GPU. The baseline's worker finds the GPU's limits; the
 *        running test fails when that does not work. A GPU that is throttled, or shared with
 * another program, is noticed by them: a line says so.
 */
struct least_time grader_gpu_least_time(const struct work *work);

/**
 * @return whether the GPU can do this work; if not, the running test is skipped, and says so: its
 *         points go to the lab's other measures
 */
bool grader_gpu_can(const struct grader_gpu *gpu, const struct work *work);

/** Fails the running test unless a model's logits (V) equal those of the reference engine. */
void grader_check_logits(const float *got, const float *want, size_t V, const char *whose);

#ifdef __cplusplus
}
#endif

#endif
