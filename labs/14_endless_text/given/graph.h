/**
 * @file graph.h
 * @brief Work recorded once in a CUDA graph, and launched many times.
 */
#ifndef WARPBOOK_LABS_14_ENDLESS_TEXT_GIVEN_GRAPH_H_
#define WARPBOOK_LABS_14_ENDLESS_TEXT_GIVEN_GRAPH_H_

#include "common/base/status.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Starts work on the stream, as endless_attention() does. */
typedef enum status endless_graph_work(const void *work, device_stream stream, struct error *error);

/** Records what @p start starts; nothing runs. @param graph receives it; not the default stream */
MUST_CHECK enum status endless_graph_record(void **graph, endless_graph_work *start,
                                            const void *work, device_stream stream,
                                            struct error *error);

/** Starts the recorded work; does not wait. */
MUST_CHECK enum status endless_graph_launch(void *graph, device_stream stream, struct error *error);

/** NULL is allowed. */
void endless_graph_free(void *graph);

#ifdef __cplusplus
}
#endif

#endif
