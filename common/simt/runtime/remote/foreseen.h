/**
 * @file foreseen.h
 * @brief Calls whose answer a program can foresee: they need none, and travel with the next call.
 *
 * A copy to memory that the program has, in a stream that it has, on a device where nothing is left
 * that may fail, succeeds; so do a free, a set, and waiting for work that is done. What a program
 * has it learns from the answers of other calls. All else is asked.
 *
 * Somebody else may have freed the memory: a device's other side, where it has a controller. Then
 * such a call fails on the device, and the next call of CUDA's that is asked returns the error, as
 * with a driver.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_FORESEEN_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_FORESEEN_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/simt/runtime/remote/client.h"
#include "common/simt/runtime/remote/known.h"
#include "common/simt/runtime/remote/packet.h"

/** What a program knows of a device. */
struct foreseen {
    bool settled;         /**< as the last answer told: PACKET_SETTLED */
    struct known window;  /**< of all devices' memory: one range */
    struct known memory;  /**< of cudaMalloc() */
    struct known streams; /**< handles; none of a controller's, which the program may destroy */
    bool controls;        /**< this side is the controller */
    struct packet posts;  /**< calls that wait to be sent */
};

/** @param hello the device's first packet @param controls whether this side is the device's
 * controller
 *  @return NULL: nothing can be foreseen */
struct foreseen *foreseen_create(const struct packet *hello, bool controls);
void foreseen_free(struct foreseen *foreseen);

/** @return true: the call will succeed, and waits to be sent; false: it must be asked */
bool foreseen_take(struct foreseen *foreseen, struct call *call);

/** Learns from a call that was asked. @param reply as it came */
void foreseen_learn(struct foreseen *foreseen, const struct call *call, const struct packet *reply);

#endif
