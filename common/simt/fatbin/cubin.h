/**
 * @file cubin.h
 * @brief What ptxas says of a kernel in the machine code it made: an ELF file ("cubin").
 *
 * Each kernel has a section .text.NAME; the upper byte of its sh_info is the
 * number of registers a thread has, as `cuobjdump -res-usage` prints it.
 */
#ifndef WARPBOOK_COMMON_SIMT_FATBIN_CUBIN_H_
#define WARPBOOK_COMMON_SIMT_FATBIN_CUBIN_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @param cubin @p size bytes that may be anything
 * @return 32-bit registers a thread of the kernel has; 0 when it is not in there
 */
uint32_t cubin_registers(const void *cubin, size_t size, const char *kernel);

#ifdef __cplusplus
}
#endif

#endif
