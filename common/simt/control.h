/**
 * @file control.h
 * @brief For who has started a device process and hands it to a program: asks the device itself.
 *
 * A device process begins with two sockets (SOCK_SEQPACKET), DEVICE_PROGRAM (3) for the program and
 * DEVICE_CONTROLLER (4) for the controller. It takes its settings from its own environment, serves
 * both, and ends with the controller. The program gets the other end of its socket and
 * SIMT_DEVICE=N, N being its descriptor there.
 *
 * The controller attaches its end: then CUDA's functions and those of simt.h in its own process are
 * calls to that device, which may read and write only the host memory that a copy names. Found at
 * run time, as in simt.h; there is nothing of this on a GPU.
 */
#ifndef WARPBOOK_COMMON_SIMT_CONTROL_H_
#define WARPBOOK_COMMON_SIMT_CONTROL_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/simt/simt.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Descriptors that a device process begins with. */
enum { SIMT_DEVICE_PROGRAM = 3, SIMT_DEVICE_CONTROLLER = 4 };

/** Bytes of a launch's arguments that do not count as data. */
enum { SIMT_PLAIN_ARGUMENTS = 256 };

/** What a controller asks a device beside what simt.h has. */
struct simt_device_state {
    double nanoseconds; /**< MODELLED, of the programs' work alone */
    uint64_t calls;     /**< that programs have made */
    uint64_t faults;    /**< of kernels */
    /** Bytes that programs sent to the device: by copies, as host memory that kernels use (its
     *  lines of zeros left out), and as arguments of launches beyond SIMT_PLAIN_ARGUMENTS of each
     */
    uint64_t sent;
    /** Bytes that programs fetched: by copies, as managed memory, and again as host memory that
     *  kernels use, which may have written it */
    uint64_t fetched;
    uint64_t unfinished;       /**< launches and other work that have not ended */
    struct simt_totals totals; /**< of all the work of the device, the controller's too */
};

struct simt_control {
    /** @return the library's file: DEVICE_LOADER LIBRARY is the command of a device process. */
    const char *(*library)(void);
    /**
     * @brief Sends this process's calls to the device behind a socket; another one may be attached
     *        in its place at any time, and attached again.
     * @param socket  -1: none; calls work on a device in this process
     * @param seconds after which a call that is not answered counts as lost
     * @return false when there is no device
     */
    bool (*attach)(int socket, double seconds);
    /** Forgets a socket, which the caller closes. */
    void (*forget)(int socket);
    /** @return false when the device is gone, or does not answer in time. */
    bool (*read_state)(struct simt_device_state *state);
    /** The calls that programs had made when the attached device answered last; asks it nothing.
     *  @return false when the device is gone */
    bool (*program_calls)(uint64_t *calls);
};

/** What runs the library as a program. */
#define SIMT_DEVICE_LOADER "/lib64/ld-linux-x86-64.so.2"

/** What it loads, where there is such a library, to unpack compressed PTX. */
#define SIMT_DEVICE_UNPACKS "libzstd.so.1"

/** @return true when this process has simt's library; @p control is zeros else. */
bool simt_control_find(struct simt_control *control);

/** Has the system keep more of what is on its way to the other end of such a socket, so that who
 * sends much need not wait for each piece to be taken. */
void simt_control_widen(int socket);

#ifdef __cplusplus
}
#endif

#endif
