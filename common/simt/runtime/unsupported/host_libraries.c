/**
 * @file host_libraries.c
 * @brief Says of a program that uses cuBLAS and the like why these cannot run here.
 *
 * They bring their own copy of the runtime and their kernels as machine code, and speak to the
 * driver. Their own errors only say that there is no driver.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/simt/runtime/unsupported/host_library_list.h"

/** What a library's file is called, and what the library is. */
static const struct {
    const char *file, *name;
} libraries[] = {
#define HOST_LIBRARY(file, name) {file, name},
    HOST_LIBRARY_LIST(HOST_LIBRARY)
#undef HOST_LIBRARY
};

/** Writes the names that are found one after the other. */
struct found {
    char names[256];
    size_t used;
};

static void note(struct found *found, const char *name) {
    int length = snprintf(found->names + found->used, sizeof found->names - found->used, "%s%s",
                          found->used > 0 ? ", " : "", name);
    found->used +=
        length > 0 && (size_t)length < sizeof found->names - found->used ? (size_t)length : 0;
}

/** simt has an NCCL of its own. */
static bool is_ours(const char *file) {
    return strncmp(file, "libnccl.so", 10) == 0 && dlsym(RTLD_DEFAULT, "ncclEmulated") != NULL;
}

static int look(struct dl_phdr_info *info, size_t size, void *argument) {
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *file = slash != NULL ? slash + 1 : info->dlpi_name;
    (void)size;
    for (size_t n = 0; n < sizeof libraries / sizeof *libraries; n++) {
        if (strncmp(file, libraries[n].file, strlen(libraries[n].file)) == 0 && !is_ours(file)) {
            note(argument, libraries[n].name);
        }
    }
    return 0;
}

/** When the program starts, all libraries that it was linked with are there. */
__attribute__((constructor)) static void say_host_libraries(void) {
    struct found found = {.used = 0};
    dl_iterate_phdr(look, &found);
    if (found.used > 0) {
        fprintf(stderr,
                "simt: the program was linked with %s: NVIDIA's host libraries hold machine code "
                "and need the driver of a real GPU, so their calls fail here; kernels that "
                "include device code (curand_kernel.h, CUB, Thrust, CUTLASS) do run\n",
                found.names);
    }
}
