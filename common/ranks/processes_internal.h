/**
 * @file processes_internal.h
 * @brief Shared by the files of processes.h: what a rank has, and the thread that watches.
 */
#ifndef WARPBOOK_COMMON_RANKS_PROCESSES_INTERNAL_H_
#define WARPBOOK_COMMON_RANKS_PROCESSES_INTERNAL_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "common/ranks/processes.h"
#include "common/ranks/rendezvous.h"

enum { RANKS_HOST_BYTES = 1 << 20 };

/** Memory of all ranks of this host. */
struct ranks_board {
    char phases[RANKS_MOST][32]; /**< what each rank is doing */
    _Alignas(4096) char host[RANKS_MOST][RANKS_HOST_BYTES];
};

struct ranks {
    const char *program;
    int rank, count, local;
    char job[160];
    struct rendezvous_sockets sockets;
    struct ranks_board *board; /**< NULL: ranks that met over TCP share no memory */
    uint32_t calls;            /**< of ranks_all_gather() */

    bool supervised; /**< forked by a launcher of ours, which says who was killed */
    int token;       /**< supervised: a pipe with one byte; who reads it may report */

    pthread_t watcher;
    bool watching;
    int wake[2];            /**< a pipe: its end ends the watcher */
    pthread_mutex_t holds;  /**< taken while this rank must not be ended */
    _Atomic bool ending;    /**< another rank has died or failed: this process ends soon */
    _Atomic bool may_leave; /**< rank 0 has said goodbye */

    bool launches; /**< this process is the launcher */
    pid_t pids[RANKS_MOST];
    int statuses[RANKS_MOST];
    bool ended[RANKS_MOST];
};

/** What ranks say to each other on the watched connections, a byte each. */
enum ranks_word {
    RANKS_DONE = 'D',   /**< to rank 0: this rank has done its work and leaves */
    RANKS_FAILED = 'F', /**< to rank 0: this rank has failed, and has said why */
    RANKS_STOP = 'E',   /**< of rank 0: end, everything has been said */
    RANKS_BYE = 'B',    /**< of rank 0: all have done their work */
};

/** Says a word on every watched connection; ignores those that are gone. */
void ranks_say(struct ranks *ranks, enum ranks_word word);

/** @return whether this process is the one that prints the job's line. */
bool ranks_claim(struct ranks *ranks);

/** Memory for all ranks. @param file a descriptor to hand on, or -1: inherited by fork() */
struct ranks_board *ranks_board_map(int file);

/** Starts and ends the thread that watches the other ranks. */
MUST_CHECK enum status ranks_watch(struct ranks *ranks, struct error *error);
void ranks_watch_end(struct ranks *ranks);

/** Forks the ranks. @param ranks count is set; in the launcher `launches` becomes true */
MUST_CHECK enum status ranks_fork(struct ranks *ranks, struct error *error);

/** Closes and frees. */
void ranks_free(struct ranks *ranks);

#endif
