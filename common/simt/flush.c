#include "common/simt/flush.h"

#include <dlfcn.h>
#include <stddef.h>

void simt_flush_calls(void) {
    void (*flush)(void) = NULL;
    *(void **)&flush = dlsym(RTLD_DEFAULT, "simt_flush");
    if (flush != NULL) {
        flush();
    }
}
