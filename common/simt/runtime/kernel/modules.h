/**
 * @file modules.h
 * @brief The program's kernels and device variables, from registration to a finished launch.
 *
 * nvcc's host code registers them before main(). Nothing is parsed until a
 * kernel or a variable of the module is used, so a program that never launches
 * starts at once.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_KERNEL_MODULES_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_KERNEL_MODULES_H_

#include <stdbool.h>
#include <stddef.h>

#include <cuda_runtime_api.h>

#include "common/simt/core/launch/launch.h"
#include "common/simt/fatbin/fatbin.h"
#include "common/simt/runtime/gpu/gpu.h"
#include "common/simt/runtime/remote/calls.h"
#include "common/simt/runtime/stream/work.h"
#include "common/simt/runtime/xray/xray_record.h"

struct simt_cost;
struct simt_explanation;

struct runtime;

struct kernel {
    struct module *module;
    const void *host;    /**< the function the host calls, or its address in cudaLaunchKernel() */
    char *name;          /**< in the PTX */
    char *readable;      /**< as the source spells it */
    bool known;          /**< `info` is filled in */
    cudaError_t refused; /**< why it cannot run, which was said; or cudaSuccess */
    struct simt_kernel_info info;
    size_t dynamic_limit; /**< most dynamic shared memory a launch may ask for; 0: the default */
    int carveout;         /**< preferred share of shared memory, percent; -1: none */
    bool larger_clusters; /**< of more than 8 blocks are allowed */
    struct kernel *next;
};

struct variable {
    struct module *module;
    const void *host; /**< address of the host's shadow: the symbol in API calls */
    void **managed;   /**< managed variables: the program's pointer to set; else NULL */
    void *memory;     /**< what it is set to; NULL until the module is loaded */
    char *name;
    size_t bytes;
    struct variable *next;
};

/** Files of a program that nvcc -rdc=true linked. */
enum { MODULE_MOST_FILES = 4096 };

struct module {
    const struct fatbin_wrapper *wrapper;
    struct fatbin_wrapper copied; /**< of a program in another process: behind `wrapper` */
    const void *theirs;           /**< its data, in that program */
    size_t their_bytes;           /**< of these */
    void *copy;                   /**< the data of `copied`, from module_fetch() on; owned */
    void **file_copies;           /**< its files, with -rdc=true, and NULL; owned */
    size_t file_count;
    struct module *remote;    /**< handle of the device process that has it, too; or NULL */
    struct simt_module *core; /**< of the selected device; NULL until loaded */
    struct simt_module *cores[SIMT_MOST_DEVICES]; /**< of the other devices */
    cudaError_t failure;                          /**< of an attempt to load it */
    unsigned architecture;                        /**< of the PTX in use */
    size_t without_ptx;                           /**< -rdc=true: files that had none */
    struct fatbin_code code; /**< machine code for about this GPU; bytes NULL: none */
    struct kernel *kernels;
    struct variable *variables;
    struct module *next;
};

/** @return a module without kernels, or NULL without memory. */
struct module *module_add(struct runtime *runtime, const struct fatbin_wrapper *wrapper);

/** The same for a program in another process. @param data the fat binary of @p bytes bytes there */
struct module *module_add_copy(struct runtime *runtime, const struct fatbin_wrapper *wrapper,
                               const void *data, size_t bytes);

/** Adds a copy of one more file of such a program that nvcc -rdc=true linked. */
bool module_add_file(struct runtime *runtime, struct module *module, const void *data,
                     size_t bytes);

/** Fetches the fat binary from such a program, once. @return false: it is not there */
bool module_fetch(struct runtime *runtime, struct module *module);

/** Adds a kernel or a variable; names are copied. Without memory they are not found later.
 *  @param spelt the kernel's name as the source spells it; NULL: this program can tell */
void module_add_kernel(struct module *module, const void *host, const char *name,
                       const char *spelt);
void module_add_variable(struct module *module, const void *host, void **managed, const char *name,
                         size_t bytes);

/** Forgets a module and all that belongs to it. */
void module_remove(struct runtime *runtime, struct module *module);

/** @return the module of that handle, or NULL. */
struct module *module_find(struct runtime *runtime, const void *handle);

/** @return the kernel that a host function or a cudaKernel_t stands for, or NULL. */
struct kernel *kernel_find(struct runtime *runtime, const void *function);

/**
 * @brief Loads the kernel's module and fills in kernel->info, once.
 *
 * What fails is explained on stderr, once a module.
 */
cudaError_t kernel_prepare(struct runtime *runtime, struct kernel *kernel);

/** @return cudaErrorInvalidSymbol, or the variable's address and size. */
cudaError_t variable_find(struct runtime *runtime, const void *symbol, uint64_t *address,
                          size_t *bytes);

/** Loads a module whose managed variables the host is about to use. */
cudaError_t module_prepare(struct runtime *runtime, struct module *module);

/** Another device is selected: its modules take the place of those of the first. */
void modules_select(struct runtime *runtime, int before, int device);

/** Unloads all modules from the selected device; they load again when used. */
void modules_unload(struct runtime *runtime);

/* From a kernel and its arguments to a finished launch. */

/** @return cudaErrorInvalidValue when grid, block or shared memory are more than the GPU has. */
cudaError_t launch_check(struct runtime *runtime, const struct kernel_work *launch);

/**
 * @brief Fills in what x-ray says of a launch before it runs; its time stays zeros.
 * @return false when no x-ray is asked for
 */
bool launch_facts(const struct runtime *runtime, const struct kernel_work *launch,
                  struct xray_facts *facts);

/** Runs a checked launch; a fault is printed and becomes the pending error. */
cudaError_t launch_run(struct runtime *runtime, const struct kernel_work *launch, bool graph);

/**
 * @brief Makes work of a launch: loads the kernel, copies its arguments.
 * @param arguments one pointer a parameter; may be NULL for a kernel without parameters
 * @param work      receives the work; work_free() it
 */
cudaError_t launch_make(struct runtime *runtime, const void *function,
                        const struct kernel_work *shape, void **arguments, struct work *work);

/* Clusters. */

/** @return the launch's cluster, the kernel's own where the launch says none; x = 0: no clusters.
 */
dim3 cluster_of(const struct kernel_work *launch);

/** @return cudaErrorInvalidClusterSize, or cudaErrorNotSupported before compute capability 9.0,
 * when the GPU does not take the launch's clusters; that is explained. */
cudaError_t cluster_check(const struct runtime *runtime, const struct kernel_work *launch);

/** Takes cudaLaunchAttributeClusterDimension. @return cudaErrorInvalidValue: an extent is 0 */
cudaError_t cluster_take(const cudaLaunchAttributeValue *value, struct kernel_work *shape);

/*
 * How many blocks of a kernel fit on a multiprocessor at the same time.
 *
 * The least of: blocks that the hardware takes; its threads over the block's,
 * in whole warps; its shared memory over the block's (static + dynamic +
 * reserved, rounded up to the unit); its registers over the block's (each
 * warp's registers rounded up to 256, a quarter of the file a scheduler).
 * Registers are those of the machine code, where the program has some, or an estimate.
 */

/** How many blocks each of a multiprocessor's resources has room for; SIZE_MAX: it is not used. */
struct occupancy {
    size_t blocks, threads, shared, registers;
};

/** Fills in the limits, of a kernel with its info filled in. */
void occupancy_limits(struct occupancy *limits, const struct simt_gpu *gpu,
                      const struct kernel *kernel, int threads, size_t dynamic);

/**
 * @param kernel  with its info filled in
 * @param threads a block, at least 1
 * @param dynamic bytes of dynamic shared memory
 * @return blocks; 0 when not even one fits
 */
int occupancy_blocks(const struct simt_gpu *gpu, const struct kernel *kernel, int threads,
                     size_t dynamic);

/**
 * @brief Keeps a launch's profile if it is the longest so far, of its kernel or since
 *        simt_take_longest(). Follows report_launch().
 * @param time of the launch, as the model explains it
 */
void profile_note(struct runtime *runtime, const struct kernel_work *launch,
                  const struct simt_cost *cost, const struct simt_explanation *time);

/** Registers of a multiprocessor. */
enum { OCCUPANCY_REGISTERS = 65536 };

#endif
