/**
 * @file mistakes.h
 * @brief Kernels that use what runs beside the threads (wgmma, bulk copies, clusters, dependent
 *        launches): some with a mistake, some right that look like it. mistakes.c has the table.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_MISTAKES_MISTAKES_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_MISTAKES_MISTAKES_H_

#ifdef __cplusplus
extern "C" {
#endif

/** Kernels by what they do; each has ways, which mistakes.cu explains. */
enum kernel {
    KERNEL_PRODUCT,   /**< wgmma by one warpgroup */
    KERNEL_RING,      /**< a producer's bulk loads through two stages, and consumers */
    KERNEL_STORE,     /**< bulk stores of what threads wrote */
    KERNEL_BOX,       /**< boxes of tensors, and wgmma on them */
    KERNEL_CLUSTER,   /**< two blocks that reach each other's shared memory */
    KERNEL_REGISTERS, /**< setmaxnreg */
    KERNEL_DEPENDENT  /**< two kernels, the second one launched early */
};

/**
 * @brief Runs a kernel.
 * @return NULL when it ran and its results are those that the host computes, else what is wrong
 */
const char *mistakes_run(enum kernel kernel, int way);

#ifdef __cplusplus
}
#endif

#endif
