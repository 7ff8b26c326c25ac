#include "common/train/program/train_program.h"

#include <signal.h>

#include "common/base/file.h"
#include "common/base/terminal.h"
#include "common/programs/interrupt.h"
#include "common/programs/program.h"
#include "common/train/program/train_run.h"

enum { SIGNALLED = 128 }; /* exit status after a signal: 128 + its number, as in shells */

static enum status run(int argc, char **argv, const struct train_places *places,
                       struct error *error) {
    struct train_options options;
    bool help = false;
    TRY(train_options_parse(&options, argc, argv, &help, error));
    if (!help) {
        TRY(train_run(&options, places, error));
    }
    return program_output_end(error);
}

int train_main(int argc, char **argv, const struct train_places *places) {
    struct error error = {0};
    file_enter_working_directory();
    signal(SIGXFSZ, SIG_IGN); /* a file at its size limit is then an error like a full disk */
    enum status status = run(argc, argv, places, &error);
    if (status == STATUS_OK) {
        return 0;
    }
    int failed = report_failure("train", &error, status);
    return status == STATUS_INTERRUPTED ? SIGNALLED + interrupt_seen() : failed;
}
