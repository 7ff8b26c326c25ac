/**
 * @file leaks.h
 * @brief Says which allocations nobody freed.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_MEMORY_LEAKS_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_MEMORY_LEAKS_H_

struct runtime;

/**
 * @brief Lists live allocations of cudaMalloc() and its kin on stderr.
 *
 * With SIMT_CHECK=full only. Silent after a fault: a program that stops early
 * frees nothing, and the fault is what its author needs to read.
 */
void leaks_report(struct runtime *runtime);

#endif
