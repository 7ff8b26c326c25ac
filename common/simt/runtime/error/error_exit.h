/**
 * @file error_exit.h
 * @brief Ends a program in which simt found something with the status that the user chose.
 *
 * SIMT_ERROR_EXITCODE=N, and `simt run --error-exitcode N`, are for scripts and CI: a program that
 * looks at no CUDA error ends with 0 though a kernel of it is wrong.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_ERROR_ERROR_EXIT_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_ERROR_ERROR_EXIT_H_

/** @return SIMT_ERROR_EXITCODE, or @p otherwise where it is not set, 0 or no number. For signal
 *          handlers, too. */
int error_exit_status(int otherwise);

/** Flushes all streams and ends the process with SIMT_ERROR_EXITCODE; returns where there is
 *  none. For the end of the program alone. */
void error_exit(void);

#endif
