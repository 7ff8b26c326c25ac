/**
 * @file handed.h
 * @brief How hand_over.c hands a submission all that it could find: as values of signals, which
 * need neither a descriptor nor memory that both have.
 */
#ifndef WARPBOOK_GRADER_SELFTEST_HANDED_H_
#define WARPBOOK_GRADER_SELFTEST_HANDED_H_

/** Numbers of signals, as SIGRTMIN is no constant. They wait until the submission takes them. */
enum handed {
    HANDED_PROCESS = 40, /**< number of a process: grader, watcher, device, baseline */
    HANDED_ADDRESS,      /**< of memory that the device writes, in its process */
    HANDED_ALL           /**< that was all */
};

#endif
