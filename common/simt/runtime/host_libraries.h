/**
 * @file host_libraries.h
 * @brief NVIDIA's libraries that cannot run on simt: cuBLAS and others.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_HOST_LIBRARIES_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_HOST_LIBRARIES_H_

/** Says once, in one line, which of them the program has loaded and why their functions fail. */
void host_libraries_explain(void);

#endif
