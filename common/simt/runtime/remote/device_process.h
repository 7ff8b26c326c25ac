/**
 * @file device_process.h
 * @brief Starts a device process: the library itself, run by the system's loader.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_DEVICE_PROCESS_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_DEVICE_PROCESS_H_

/** Descriptors that a device process begins with; CONTROLLER may be closed. */
enum { DEVICE_PROGRAM = 3, DEVICE_CONTROLLER = 4 };

/** What runs the library. */
#define DEVICE_LOADER "/lib64/ld-linux-x86-64.so.2"

/**
 * @brief Starts one that ends with the connection.
 * @return the program's end of the connection, or -1
 */
int device_process_start(void);

#endif
