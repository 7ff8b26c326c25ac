/**
 * @file device_process.h
 * @brief Starts a device process: the library itself, run by the system's loader.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_DEVICE_PROCESS_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_DEVICE_PROCESS_H_

/**
 * @brief Starts one that ends with the connection.
 * @return the program's end of the connection, or -1
 */
int device_process_start(void);

/** Connects to the device process of that name, for all programs of this user; starts it where
 *  there is none. @return a socket, or -1 */
int device_process_share(const char *name);

#endif
