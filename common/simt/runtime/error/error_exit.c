#include "common/simt/runtime/error/error_exit.h"

#include <stdio.h>
#include <unistd.h>

#include "common/simt/runtime/settings.h"

int error_exit_status(int otherwise) {
    int code = 0;
    return simt_error_exitcode(&code, NULL) == STATUS_OK && code != 0 ? code : otherwise;
}

void error_exit(void) {
    int status = error_exit_status(0);
    if (status != 0) {
        fflush(NULL);
        _exit(status);
    }
}
