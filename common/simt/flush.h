/**
 * @file flush.h
 * @brief For a program whose emulated GPU is another process: has it do what was asked of it.
 *
 * Calls whose answer the program can foresee are sent with the next one that has to be asked, even
 * if they wait for the GPU. Whoever looks at the GPU's work by another way than this process's
 * calls, as a grader does, must have it flushed.
 */
#ifndef WARPBOOK_COMMON_SIMT_FLUSH_H_
#define WARPBOOK_COMMON_SIMT_FLUSH_H_

#ifdef __cplusplus
extern "C" {
#endif

/** Does nothing where no call waits, and on a GPU. */
void simt_flush_calls(void);

#ifdef __cplusplus
}
#endif

#endif
