/**
 * @file kernel_name.h
 * @brief A kernel's name for people: as the source spells it, and short enough for tables.
 */
#ifndef WARPBOOK_COMMON_SIMT_KERNEL_NAME_H_
#define WARPBOOK_COMMON_SIMT_KERNEL_NAME_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Writes the name as the source spells it, if the program links the C++ library, which
 * knows; else as it is.
 * @param name receives at most @p room bytes with the NUL
 */
void kernel_name_readable(const char *mangled, char *name, size_t room);

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
