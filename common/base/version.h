/**
 * @file version.h
 * @brief The version that `--version` prints.
 */
#ifndef WARPBOOK_COMMON_BASE_VERSION_H_
#define WARPBOOK_COMMON_BASE_VERSION_H_

/** Goes up when programs' flags, outputs or file formats change: the first number when older calls
 * or files no longer work. */
#define WARPBOOK_VERSION "1.0"

#endif
