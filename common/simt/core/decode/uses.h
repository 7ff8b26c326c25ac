/**
 * @file uses.h
 * @brief Finds which PTX registers every instruction reads and writes: simt_code.uses.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_DECODE_USES_H_
#define WARPBOOK_COMMON_SIMT_CORE_DECODE_USES_H_

#include "common/base/status.h"
#include "common/simt/core/code.h"

/** Sets code->uses. @return STATUS_OK or STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status simt_uses_find(struct simt_code *code);

void simt_uses_free(struct simt_code *code);

#endif
