#include "common/simt/control.h"

#include <dlfcn.h>
#include <stddef.h>
#include <sys/socket.h>

bool simt_control_find(struct simt_control *control) {
    *control = (struct simt_control){.library = NULL};
    void *library = dlsym(RTLD_DEFAULT, "simt_control_library");
    void *attach = dlsym(RTLD_DEFAULT, "simt_control_attach");
    void *forget = dlsym(RTLD_DEFAULT, "simt_control_forget");
    void *read_state = dlsym(RTLD_DEFAULT, "simt_control_read_state");
    void *program_calls = dlsym(RTLD_DEFAULT, "simt_control_program_calls");
    if (library == NULL || attach == NULL || forget == NULL || read_state == NULL ||
        program_calls == NULL) {
        return false;
    }
    *(void **)&control->library = library;
    *(void **)&control->attach = attach;
    *(void **)&control->forget = forget;
    *(void **)&control->read_state = read_state;
    *(void **)&control->program_calls = program_calls;
    return true;
}

void simt_control_widen(int socket) {
    const int bytes = 1 << 20; /* the system takes as much as it allows */
    (void)setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}
