/**
 * @file crash_handler.h
 * @brief What a graded test says when it crashes itself, which is never the learner's fault.
 */
#ifndef WARPBOOK_GRADER_HARNESS_CRASH_HANDLER_H_
#define WARPBOOK_GRADER_HARNESS_CRASH_HANDLER_H_

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Installs handlers for SIGSEGV, SIGBUS, SIGILL and SIGFPE, on a stack of their own.
 *
 * A crash prints to standard error which signal came from where, what the grader was doing, the
 * registers, and the addresses on the stack that lie in the program's code, for addr2line. Then
 * the process ends by that signal.
 */
void crash_handler_install(void);

/**
 * @brief Says what the grader does from here on, for the line.
 * @param phase must live until the next call
 * @return the phase before, to go back to
 */
const char *crash_handler_phase(const char *phase);

#ifdef __cplusplus
}
#endif

#endif
