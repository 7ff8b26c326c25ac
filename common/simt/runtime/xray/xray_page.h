/**
 * @file xray_page.h
 * @brief Writes recorded launches as one HTML page: no network, no other file.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_XRAY_XRAY_PAGE_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_XRAY_XRAY_PAGE_H_

#include <stdio.h>

#include "common/base/status.h"
#include "common/simt/runtime/gpu/gpu.h"
#include "common/simt/runtime/xray/xray_record.h"

/** Prints the data of a page: one JSON object, which holds no '<'. README.md lists its fields. */
void xray_print_json(const struct xray *xray, const struct simt_gpu *gpu, FILE *stream);

/** Prints the "files" of the data: texts of the sources that recorded lines are in. */
void xray_print_sources(const struct xray *xray, FILE *stream);

/** Prints the whole page. */
void xray_print_page(const struct xray *xray, const struct simt_gpu *gpu, FILE *stream);

/** Writes the page to a file. @return STATUS_OK, STATUS_OUT_OF_MEMORY or what file_write() does */
MUST_CHECK enum status xray_write(const struct xray *xray, const struct simt_gpu *gpu,
                                  const char *path, struct error *error);

#endif
