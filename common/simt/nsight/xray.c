/* Makes the x-ray page of what Nsight Compute has exported. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/file.h"
#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "common/simt/nsight/nsight.h"
#include "common/simt/nsight/xray.h"

struct options {
    const char *from, *output;
};

static const char epilogue[] =
    "FILE is a report (.ncu-rep), which needs `ncu` on PATH, or the text of one:\n"
    "\n"
    "  ncu --import report.ncu-rep --page raw --csv --print-units base >export.csv\n"
    "  ncu --import report.ncu-rep --page source --csv --print-source cuda,sass >>export.csv\n"
    "\n"
    "common/simt/README.md says what to profile with. A bench's own flag --xray does it all.\n";

static enum status parse(struct options *o, const char *program, int argc, char **argv, bool *help,
                         struct error *error) {
    struct arguments arguments = {0};
    const struct flag table[] = {
        {"from", 'f', FLAG_STRING, &o->from, "FILE", "what Nsight Compute recorded"},
        {"output", 'o', FLAG_STRING, &o->output, "FILE", "the page to write"},
    };
    const struct flags flags = {.program = program,
                                .positional = "",
                                .summary = "Makes an x-ray page of a report by Nsight Compute.",
                                .table = table,
                                .count = sizeof table / sizeof *table,
                                .epilogue = epilogue};
    enum status status = flags_read(&flags, argc, argv, &arguments, error);
    *help = arguments.help;
    bool bare = status == STATUS_OK && !*help && arguments.count == 0;
    free(arguments.values);
    if (status == STATUS_OK && !*help && (!bare || o->from == NULL)) {
        status = error_set(error, STATUS_INVALID_ARGUMENT,
                           "--from names what Nsight Compute recorded; --help helps");
    }
    return status;
}

int xray_command(const char *program, int argc, char **argv) {
    struct options o = {.output = "xray.html"};
    struct error error = {0};
    bool help = false;
    enum status status = parse(&o, program, argc, argv, &help, &error);
    if (status == STATUS_OK && !help) {
        status = file_check_writable(o.output, &error);
    }
    if (status == STATUS_OK && !help) {
        status = nsight_convert(o.from, o.output, &error);
    }
    if (status != STATUS_OK) {
        return report_failure(program, &error, status);
    }
    if (!help) {
        printf("%s\n", o.output);
    }
    return 0;
}
