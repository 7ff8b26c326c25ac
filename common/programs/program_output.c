#include "common/programs/program_output.h"

#include <stdio.h>

enum status program_output_end(struct error *error) {
    return fflush(stdout) == 0 && !ferror(stdout)
               ? STATUS_OK
               : error_set(error, STATUS_IO, "cannot write to standard output");
}
