/**
 * @file numbers.h
 * @brief The numbers of the rows of calls.h, in packets.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_NUMBERS_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_NUMBERS_H_

#include "common/simt/runtime/remote/calls.h"

enum call_number {
#define CALL_NUMBER(name, ...) CALL_##name,
    DEVICE_CALLS(CALL_NUMBER)
#undef CALL_NUMBER
        CALL_COUNT
};

#endif
