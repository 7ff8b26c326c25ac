#include "common/simt/runtime/unsupported/unsupported.h"

#include "common/simt/runtime/state.h"

int unsupported_call(const char *name, bool *said) {
    struct runtime *runtime = runtime_enter();
    if (!*said) {
        *said = true;
        fflush(stdout);
        fprintf(stderr, "simt: %s is not supported by the emulator\n", name);
    }
    return (int)runtime_leave(runtime, cudaErrorNotSupported);
}
