/**
 * @file runner.h
 * @brief Starts a CUDA program on the emulator: the program `run`, and `simt run` and `simt report`
 *        of the package.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_RUNNER_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_RUNNER_H_

/** What differs between the programs. */
struct runner {
    const char *program; /**< what messages and --help call it */
    const char *summary;
    const char *report;     /**< --report where it is not given; NULL: none */
    int failed;             /**< exit status where the program cannot be started */
    const char *error_exit; /**< --error-exitcode where it is not given; NULL: the program's own */
};

/** Becomes the program that the arguments name. @return otherwise, the exit status */
int runner_main(const struct runner *runner, int argc, char **argv);

#endif
