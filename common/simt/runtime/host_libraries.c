#include "common/simt/runtime/host_libraries.h"

#include <link.h>
#include <stddef.h>
#include <string.h>

#include "common/simt/runtime/state.h"

/* @return the file's name where it is one of the libraries, without its folder; or NULL */
static const char *library_of(const char *path) {
    static const char *const names[] = {"libcublas", "libcublasLt", "libcurand",   "libcufft",
                                        "libcudnn",  "libcusolver", "libcusparse", "libnccl"};
    const char *file = strrchr(path, '/');
    file = file != NULL ? file + 1 : path;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        size_t length = strlen(names[n]);
        if (strncmp(file, names[n], length) == 0 && strncmp(file + length, ".so", 3) == 0) {
            return file;
        }
    }
    return NULL;
}

static int visit(struct dl_phdr_info *library, size_t size, void *found) {
    const char *name = library_of(library->dlpi_name);
    (void)size;
    if (name != NULL) {
        *(const char **)found = name;
    }
    return name != NULL;
}

void host_libraries_explain(void) {
    const char *name = NULL;
    if (dl_iterate_phdr(visit, &name) != 0) {
        runtime_say("note: the program loads %s, which has machine code for GPUs alone and reaches "
                    "them through NVIDIA's driver: its functions fail on simt",
                    name);
    }
}
