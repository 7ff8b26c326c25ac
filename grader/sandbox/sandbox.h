/**
 * @file sandbox.h
 * @brief Runs a program that nobody trusts as a child process, and says how it ended.
 *
 * The program runs in a session of its own, in a fresh empty folder, with no
 * environment, no descriptors and no privileges but those it is given; system
 * calls that reach beyond it end it, and its limits end it with all that it
 * started. What this holds against, and what not, is in README.md beside this
 * file.
 *
 *     sandbox_start() ── supervisor ── program
 *
 * Between the caller and the program stands the supervisor, a copy of the caller's
 * process that waits for the program, reads its output, kills it at a limit and
 * takes in every process that it leaves behind. The program ends when the
 * caller ends, however that happens.
 */
#ifndef WARPBOOK_GRADER_SANDBOX_SANDBOX_H_
#define WARPBOOK_GRADER_SANDBOX_SANDBOX_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes that are kept of each output stream: the first half and the last half. */
enum { SANDBOX_KEPT = 64 * 1024 };

/** What the program may use. All of it but output_bytes must be more than nothing. */
struct sandbox_limits {
    double wall_s;
    double cpu_s;        /**< of all its threads together */
    size_t memory_bytes; /**< of address space, or resident */
    bool resident;       /**< count resident memory: CUDA and simt reserve more addresses than
                              there is memory. It is looked at a hundred times a second. */
    unsigned threads;    /**< that exist at once; looked at a hundred times a second */
    unsigned files;      /**< open at once */
    size_t output_bytes; /**< of standard output and error together; 0: any number */
    size_t file_bytes;   /**< of any file it writes, and of all in its folder: looked at twenty
                              times a second, as is that there are fewer than 1000 of them */
    size_t stack_bytes;  /**< of its first thread, and what others get unless they ask */
};

/** 10 s of wall time, 20 s of CPU, 1 GiB, 64 threads, 64 files of at most 64 MiB, 8 MiB of stack.
 */
struct sandbox_limits sandbox_default_limits(void);

/** A descriptor that the program gets. */
struct sandbox_descriptor {
    int ours;   /**< stays open in the caller */
    int theirs; /**< its number in the program, below 64; 0 to 2 replace what is there */
};

/** What confines the program; which of it a kernel has is found out when it starts. */
#define SANDBOX_HOLDS_LIST(X)                                                      \
    X(PRIVILEGES, 0, "no new privileges, no capabilities")                         \
    X(CALLS, 1, "system calls filtered (seccomp)")                                 \
    X(NAMES, 2, "refused system calls named (seccomp notifications)")              \
    X(READS, 3, "files outside its folder not readable (Landlock)")                \
    X(WRITES, 4, "files outside its folder not writable (Landlock, else seccomp)") \
    X(SIGNALS, 5, "signals kept inside a second time (Landlock)")                  \
    X(MEMORY, 6, "the caller's memory closed to it (not dumpable)")                \
    X(ORPHANS, 7, "processes that leave its session found (subreaper)")            \
    X(COUNTS, 8, "memory and threads counted (/proc)")

enum sandbox_holds {
#define SANDBOX_HOLDS_ENUMERATOR(name, bit, text) SANDBOX_HOLDS_##name = 1 << (bit),
    SANDBOX_HOLDS_LIST(SANDBOX_HOLDS_ENUMERATOR)
#undef SANDBOX_HOLDS_ENUMERATOR
};

/** What a grader whose points matter asks for: all but the second of two locks on signals. */
enum {
    SANDBOX_HOLDS_ISOLATION = SANDBOX_HOLDS_PRIVILEGES | SANDBOX_HOLDS_CALLS | SANDBOX_HOLDS_NAMES |
                              SANDBOX_HOLDS_READS | SANDBOX_HOLDS_WRITES | SANDBOX_HOLDS_MEMORY |
                              SANDBOX_HOLDS_ORPHANS | SANDBOX_HOLDS_COUNTS
};

struct sandbox_command {
    const char *const *argv;        /**< argv[0] is the program's path; ends with NULL */
    const char *const *environment; /**< "NAME=VALUE", ends with NULL; NULL: empty */
    const struct sandbox_descriptor *descriptors;
    size_t descriptor_count;
    const char *const *readable; /**< files and folders it may read beside itself and its libraries;
                                      ends with NULL; NULL: none */
    const char *const *writable; /**< folders in which it may make and remove files and folders,
                                    too; ends with NULL; NULL: none */
    const char *const *programs; /**< other programs that it may start; ends with NULL. NULL: it
                                      stays one process. Programs of the system, a compiler's, that
                                      work on what nobody trusts: see README.md */
    const char *loads;           /**< where argv[0] is the system's loader: what that runs, whose
                                      libraries are the program's; NULL: argv[0] is the program */
    const char *loads_by_name;   /**< a library that this loads while it runs, if the system has
                                      one of that name; NULL: none */
    const char *start_in;        /**< where it starts; NULL: in its own folder */
    const char *folder;          /**< its own folder is made in here; NULL: $TEST_TMPDIR, $TMPDIR or
                                      /tmp */
    bool gpu;                    /**< it uses NVIDIA's driver: see README.md for what that opens */
    struct sandbox_limits limits;
    unsigned required; /**< enum sandbox_holds: without these it is not started. Ask at least for
                            CALLS: with no filter a program may kill all that its user runs */
    unsigned without;  /**< enum sandbox_holds: leave these out, to see what the others do; without
                            READS there is no Landlock at all, PRIVILEGES, ORPHANS and COUNTS stay */
};

/** How the program ended. */
enum sandbox_end {
    SANDBOX_EXITED,       /**< with exit_code */
    SANDBOX_SIGNALLED,    /**< died of `signal` */
    SANDBOX_WALL_LIMIT,   /**< killed */
    SANDBOX_CPU_LIMIT,    /**< killed */
    SANDBOX_MEMORY_LIMIT, /**< killed; asked_bytes when it asked for too much at once */
    SANDBOX_THREAD_LIMIT, /**< killed: too many threads or processes */
    SANDBOX_FILE_LIMIT,   /**< killed: a file grew too large, or there was too much in its folder */
    SANDBOX_REFUSED_CALL, /**< killed: it called `call` */
    SANDBOX_STOPPED,      /**< killed by sandbox_stop() */
    SANDBOX_WENT_ON,      /**< killed: it ran between sandbox_pause() and its end */
    SANDBOX_FOREIGN_CODE, /**< killed: it had executable memory that is not from its files */
    SANDBOX_OUTPUT_LIMIT, /**< killed: it wrote too much to its standard output and error */
    SANDBOX_UNWATCHED,    /**< it ended with its supervisor, which somebody killed */
    SANDBOX_COULD_NOT_START /**< `reason` says why */
};

/** The beginning and the end of what was written. */
struct sandbox_output {
    uint64_t total;               /**< bytes written in all */
    uint64_t missed;              /**< bytes left out, where a line in brackets says so */
    size_t size;                  /**< bytes of text */
    char text[SANDBOX_KEPT + 96]; /**< as written, then a NUL; not to be trusted */
};

struct sandbox_result {
    enum sandbox_end end;
    int exit_code;  /**< -1 unless SANDBOX_EXITED */
    int signal;     /**< 0 unless it died of one */
    char call[40];  /**< name of the refused system call, "" when the kernel did not say */
    char code[200]; /**< file that the foreign code is from; "" for no file, or no such code */
    uint64_t asked_bytes; /**< of the one allocation that was too large, else 0 */
    char reason[256];     /**< why it could not start */
    double wall_s, user_s, system_s;
    uint64_t resident_bytes; /**< most at any time */
    unsigned left_behind;    /**< processes it left, all killed */
    unsigned unkillable;     /**< of these, not gone within five seconds */
    unsigned holds;          /**< enum sandbox_holds */
    pid_t pid;               /**< it had; 0 when it did not start */
    struct sandbox_output out, error;
};

struct sandbox;

/**
 * @brief Starts the program; sandbox_finish() must follow.
 *
 * The calling process becomes undumpable, for good: nobody of the same user
 * reads its memory. It should have no children that it waits for with
 * waitpid(-1). To talk with the program, hand it one end of a pipe or
 * socketpair, close that end after this call and use poll() on the other, with
 * SIGPIPE ignored: at the wall limit at the latest the other end is closed.
 *
 * @param sandbox receives what sandbox_finish() frees
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT for a limit of nothing, no program, a descriptor that
 *         is not open; STATUS_OUT_OF_MEMORY, STATUS_IO. That the program is not there or cannot be
 *         run is in the result.
 */
MUST_CHECK enum status sandbox_start(struct sandbox **sandbox,
                                     const struct sandbox_command *command, struct error *error);

/** Kills the program and all that it started; sandbox_finish() must still follow. */
void sandbox_stop(struct sandbox *sandbox);

/**
 * @brief Has the program stand still, or go on. Its limits of time go on counting.
 *
 * A program that finds a way to run all the same is killed: its CPU time tells.
 *
 * Comes back when that is so, or the program has ended; after half a second at the latest, where a
 * kernel does not say that it is so.
 */
void sandbox_pause(struct sandbox *sandbox, bool pause);

/**
 * @return seconds that the program could have run and was kept waiting for a processor, since it
 *         began: many on a machine that is busy with other things; 0 when the kernel does not say
 */
double sandbox_waited(const struct sandbox *sandbox);

/** @return seconds that all of the program's threads together, ended ones too, were on a processor
 *  since it began; 0 when the kernel does not say */
double sandbox_ran(const struct sandbox *sandbox);

/**
 * @brief Looks now whether the program has executable memory that is not from its own file and
 *        its libraries. The supervisor looks as well, twenty times a second.
 * @param what receives how it ends then, as sandbox_describe() says it
 * @return whether it has; false for one that has ended
 */
bool sandbox_has_foreign_code(const struct sandbox *sandbox, char *what, size_t size);

/** Waits for the program's end, at most so long. @return whether it came; sandbox_finish() must
 *  follow either way */
bool sandbox_wait(const struct sandbox *sandbox, double seconds);

/**
 * @brief Waits until the program has ended, by itself or at its limits, and frees.
 *
 * Comes back at most ten seconds after the wall limit, whatever the program does.
 */
void sandbox_finish(struct sandbox *sandbox, struct sandbox_result *result);

/** sandbox_start() and sandbox_finish(). */
MUST_CHECK enum status sandbox_run(const struct sandbox_command *command,
                                   struct sandbox_result *result, struct error *error);

/**
 * @brief Finds out what a sandbox holds on this machine, without a program.
 * @param without enum sandbox_holds, as in struct sandbox_command
 * @param holds receives enum sandbox_holds
 */
MUST_CHECK enum status sandbox_find_holds(unsigned without, unsigned *holds, struct error *error);

/**
 * @brief How it ended, in a few words without a subject: "called socket, which is not allowed
 *        here", "crashed (SIGSEGV: ...)", "did not end within 10 s".
 * @return @p text
 */
const char *sandbox_describe(const struct sandbox_result *result,
                             const struct sandbox_limits *limits, char *text, size_t size);

/**
 * @brief What of @p wanted (enum sandbox_holds) this kernel lacks, with commas; "" for nothing.
 * @return @p text
 */
const char *sandbox_lacks(const struct sandbox_result *result, unsigned wanted, char *text,
                          size_t size);

#ifdef __cplusplus
}
#endif

#endif
