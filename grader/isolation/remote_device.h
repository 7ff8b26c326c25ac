/**
 * @file remote_device.h
 * @brief Opens the device of the worker in use.
 */
#ifndef WARPBOOK_GRADER_ISOLATION_REMOTE_DEVICE_H_
#define WARPBOOK_GRADER_ISOLATION_REMOTE_DEVICE_H_

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Has the worker in use open its device, and notes its properties. device_open() does so at
 *        the subject's; a case that uses the baseline's calls this after remote_use().
 * @return what device_open() says there
 */
MUST_CHECK enum status remote_open_device(struct error *error);

#ifdef __cplusplus
}
#endif

#endif
