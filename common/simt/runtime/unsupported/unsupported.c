/**
 * @file unsupported.c
 * @brief Every other function of the library: says so once, returns cudaErrorNotSupported.
 *
 * Their declarations are not used: arguments are ignored, and the result comes
 * back in a register whatever they are. So this file includes no CUDA header.
 */
#include "common/simt/runtime/unsupported/unsupported_list.h"

#define UNSUPPORTED(name)                                   \
    int name(void);                                         \
    __attribute__((visibility("default"))) int name(void) { \
        static bool said;                                   \
        return unsupported_call(#name, &said);              \
    }

UNSUPPORTED_LIST(UNSUPPORTED)
