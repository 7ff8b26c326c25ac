/**
 * @file library.h
 * @brief What the files of libnccl.so.2 share: communicators of this process, the calls to the
 *        emulated devices, and errors.
 */
#ifndef WARPBOOK_COMMON_SIMT_NCCL_LIBRARY_H_
#define WARPBOOK_COMMON_SIMT_NCCL_LIBRARY_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/simt/nccl/collective.h"
#include "common/simt/nccl/nccl.h"

/** Functions that programs call. */
#define EXPORTED __attribute__((visibility("default")))

enum { MOST_OWN_OPERATIONS = 64 };

/** One of ncclRedOpCreatePreMulSum(). */
struct own_operation {
    bool used, on_device;
    ncclDataType_t type;
    uint64_t scalar; /**< bits, or an address */
};

struct ncclComm {
    uint64_t number; /**< the devices' */
    uint32_t ranks, rank;
    int device;
    bool joined;
    struct own_operation own[MOST_OWN_OPERATIONS];
};

/** The emulator's calls, which its libcudart.so.13 exports. */
struct calls {
    cudaError_t (*join)(struct collective_join *);
    cudaError_t (*split)(struct collective_split *);
    cudaError_t (*status)(struct collective_status *);
    cudaError_t (*submit)(const struct collective *, cudaStream_t);
    cudaError_t (*exchange)(const struct collective_exchange *, cudaStream_t);
};

/** @return the calls; NULL, and a line on stderr, when the program does not run on simt. */
const struct calls *library_calls(void);

/** Keeps a line for ncclGetLastError(), and prints it. @return @p result */
ncclResult_t library_fail(ncclResult_t result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** @return what a refused call comes to. */
ncclResult_t library_result_of(cudaError_t error, const char *call);
ncclResult_t library_result_of_state(uint32_t state);

/** @return seconds that a rank waits for others to come: three times SIMT_WAIT_SECONDS. */
double library_patience(void);

/** A communicator that its ranks have not all joined yet. */
struct joining {
    ncclComm_t *slot, made;
    bool splits; /**< the split comes first */
    struct collective_split split;
    struct collective_join join;
    struct joining *next;
};

/** Begins to join; waits unless a group is open. Takes @p joining. */
ncclResult_t group_join(struct joining *joining);

/** Asks for the next step. @return ncclInProgress: others have not come */
ncclResult_t joining_go(struct joining *joining);

/** Gives up. */
void joining_end(struct joining *joining);

#endif
