/**
 * @file host_fault.h
 * @brief Explains the crash of host code that dereferences a device pointer.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_SPACE_HOST_FAULT_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_SPACE_HOST_FAULT_H_

#include <stdbool.h>

#include "common/base/status.h"
#include "common/simt/memory/space/memory.h"

/**
 * @brief Watches for host access to the device window: prints one line and ends the program with
 *        status 1. Other faults go to the handler that was there before.
 * @param memory must stay until simt_host_fault_remove()
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT when one is watched already; STATUS_IO when the
 *         system refuses the handler
 */
MUST_CHECK enum status simt_host_fault_install(const struct simt_memory *memory);

/** Of a program that has used protected memory. @param writes whether it wrote; else it read
 *  @return true: the program may go on */
typedef bool simt_host_fault_repairer(void *context, const void *address, bool writes);

/** Calls @p repair at another fault on protected memory. NULL: nobody repairs. */
void simt_host_fault_repair(simt_host_fault_repairer *repair, void *context);

/** @return whether the access that a SIGSEGV's handler is told of was a write.
 *  @param context the handler's third argument */
bool simt_host_fault_writes(const void *context);

/** Asks @p status with which status, rather than 1, the program ends. NULL: with 1. */
void simt_host_fault_status(int (*status)(int otherwise));

/** Puts back the handlers that were there before; allowed when nothing is installed. */
void simt_host_fault_remove(void);

#endif
