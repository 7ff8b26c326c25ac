#include "common/train/program/train_program.h"

#include <signal.h>
#include <stdio.h>

#include "common/base/file.h"
#include "common/base/terminal.h"
#include "common/programs/interrupt.h"
#include "common/train/program/train_run.h"

enum { SIGNALLED = 128 }; /* what shells add to a signal's number */

int train_main(int argc, char **argv, const struct train_places *places) {
    struct train_options options;
    struct error error = {0};
    bool help = false;
    file_enter_working_directory();
    signal(SIGXFSZ, SIG_IGN); /* a file that may grow no more is an error like a full disk */
    enum status status = train_options_parse(&options, argc, argv, &help, &error);
    if (status == STATUS_OK && !help) {
        status = train_run(&options, places, &error);
    }
    if (status == STATUS_OK && (fflush(stdout) != 0 || ferror(stdout))) {
        status = error_set(&error, STATUS_IO, "cannot write to standard output");
    }
    if (status == STATUS_OK) {
        return 0;
    }
    int failed = report_failure("train", &error, status);
    return status == STATUS_INTERRUPTED ? SIGNALLED + interrupt_seen() : failed;
}
