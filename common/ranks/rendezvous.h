/**
 * @file rendezvous.h
 * @brief How ranks that somebody else has started find each other: rank 0 listens, the others
 *        connect. processes.h says where.
 */
#ifndef WARPBOOK_COMMON_RANKS_RENDEZVOUS_H_
#define WARPBOOK_COMMON_RANKS_RENDEZVOUS_H_

#include <stdbool.h>

#include "common/base/status.h"
#include "common/ranks/processes.h"

/** Each rank has two connections to rank 0. */
enum rendezvous_channel { RENDEZVOUS_TALK, RENDEZVOUS_WATCH, RENDEZVOUS_CHANNELS };

/** The descriptors: of rank 0 one a rank, its own -1; of the others [0] alone. */
struct rendezvous_sockets {
    int of[RENDEZVOUS_CHANNELS][RANKS_MOST];
};

/** All -1. */
void rendezvous_none(struct rendezvous_sockets *sockets);
void rendezvous_close(struct rendezvous_sockets *sockets);

/**
 * @brief Connects this rank with the others.
 * @param job names the job, if WARPBOOK_RENDEZVOUS does not
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT for an address that is none, or ranks of different
 *         jobs; STATUS_IO with the ranks that did not come in time
 */
MUST_CHECK enum status rendezvous_meet(struct rendezvous_sockets *sockets, int rank, int count,
                                       const char *job, struct error *error);

/** @return whether this process is the first of the job's on this host that claims to report. */
bool rendezvous_claim(const char *job);

/** Sends or receives all of it. @return false: the other side has gone */
bool rendezvous_send(int socket, const void *data, size_t bytes);
bool rendezvous_receive(int socket, void *data, size_t bytes);

#endif
