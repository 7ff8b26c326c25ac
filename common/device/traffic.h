/**
 * @file traffic.h
 * @brief Counts copies over the bus and allocations; while tracing, measures their time.
 */
#ifndef WARPBOOK_COMMON_DEVICE_TRAFFIC_H_
#define WARPBOOK_COMMON_DEVICE_TRAFFIC_H_

#include <stdbool.h>
#include <stddef.h>

/** @return device_now() while tracing, else 0; pass it to one of the functions below. */
double traffic_begin(void);

/** Counts one copy, after it was done. */
void traffic_copied(bool to_device, size_t bytes, double begun);

/** Counts one allocation. */
void traffic_allocated(double begun);

/** Adds the time of a release to the time of allocations. */
void traffic_released(double begun);

#endif
