/**
 * @file build.h
 * @brief Compiles a learner's file in the sandbox and links it with what the kit has prebuilt.
 */
#ifndef WARPBOOK_GRADER_CLASS_BUILD_H_
#define WARPBOOK_GRADER_CLASS_BUILD_H_

#include "grader/class/result.h"

/** Where a lab is built. */
struct build_place {
    const char *kit;    /**< folder, absolute */
    const char *source; /**< the learner's file, absolute */
    const char *work; /**< scratch folder: run/grader/ in it receives the worker and its symbols */
    double limit_s;   /**< of the compiler and of the linker */
};

/**
 * @brief Makes run/grader/LAB_worker and run/grader/LAB_symbols.txt by the commands of the build.
 * @param built receives what was said; not good: the submission's fault
 * @return STATUS_OK; another where this machine or the kit is at fault
 */
MUST_CHECK enum status build_lab(struct built *built, const struct lab *lab,
                                 const struct build_place *place, struct error *error);

#endif
