/**
 * @file child.h
 * @brief The child's way from fork() to the program: everything is taken from it, then it execs.
 */
#ifndef WARPBOOK_GRADER_SANDBOX_CHILD_H_
#define WARPBOOK_GRADER_SANDBOX_CHILD_H_

#include <stdbool.h>
#include <sys/types.h>

#include "grader/sandbox/code_files.h"
#include "grader/sandbox/sandbox.h"

/** Highest number of a descriptor that a program is given, plus one. */
enum { CHILD_DESCRIPTORS = 64 };

struct child {
    const struct sandbox_command *command;
    const char *program; /**< absolute path */
    const struct code_files *code;
    const char *folder; /**< absolute path */
    pid_t supervisor;
    unsigned tasks; /**< of this user before it started */
    unsigned holds; /**< enum sandbox_holds, as far as the supervisor knows */
    int out, error; /**< what becomes its standard output and error */
    int channel;    /**< of datagrams: one struct child_note; closed once the program runs */
};

/** What the child tells the supervisor. A listener comes with it when listener is set. */
struct child_note {
    unsigned holds; /**< enum sandbox_holds */
    bool listener;
    char failure[200]; /**< why it cannot start; "" when all is well so far */
};

/** Becomes the program. Does not return; the last note says why it could not. */
void child_become_program(const struct child *child) __attribute__((noreturn));

/**
 * @brief Reads a note, on the supervisor's side.
 * @param listener receives the descriptor, or keeps its value
 * @return 1 for a note, 0 at the end: the program runs or the child is dead; -1 for nothing yet
 */
int child_read_note(int channel, struct child_note *note, int *listener);

#endif
