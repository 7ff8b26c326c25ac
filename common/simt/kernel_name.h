/**
 * @file kernel_name.h
 * @brief Shortens a kernel's name for tables: without parameters, casts and the return type.
 */
#ifndef WARPBOOK_COMMON_SIMT_KERNEL_NAME_H_
#define WARPBOOK_COMMON_SIMT_KERNEL_NAME_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Shortens "void tile<(int)128, true>(float*, int)" to "tile<128, true>".
 * @param name receives at most @p room bytes with the NUL; room is at least 1
 * @return @p name
 */
const char *kernel_name_shorten(const char *readable, char *name, size_t room);

#ifdef __cplusplus
}
#endif

#endif
