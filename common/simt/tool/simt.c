/* The program of the emulator's package. */
#include <stdio.h>
#include <string.h>

#include "common/base/version.h"
#include "common/simt/nsight/xray.h"
#include "common/simt/runtime/runner.h"
#include "common/simt/tool/commands.h"

#define FINDINGS_EXIT "99"

static const char HELP[] =
    "usage: simt COMMAND [FLAGS] ...\n"
    "Runs CUDA programs on the CPU, checks every access, and counts what a GPU would do.\n"
    "\n"
    "  simt run PROGRAM [ARGUMENTS]      run a program\n"
    "  simt report PROGRAM [ARGUMENTS]   run it, and report counts (text, json) or findings "
    "(sarif)\n"
    "  simt doctor PROGRAM               what a program needs, and what would be refused\n"
    "  simt gpus                         the GPUs that simt can present itself as\n"
    "  simt xray --from FILE             an x-ray page from what Nsight Compute recorded\n"
    "\n"
    "simt COMMAND --help has the flags; simt --version says which this is. `man simt` has more.\n"
    "\n"
    "Exit status of run and report: the program's own; " FINDINGS_EXIT
    " where simt found something\n"
    "(--error-exitcode N changes that, 0 leaves the program's own); 125 where the program was not\n"
    "started. Of doctor: 0 it will run, 1 something would be refused, 2 bad input.\n";

static int run_command(const char *program, int argc, char **argv) {
    const struct runner run = {.program = program,
                               .summary = "Runs a CUDA program on the CPU, checked and counted.",
                               .failed = SIMT_EXIT_FAILED,
                               .error_exit = FINDINGS_EXIT};
    return runner_main(&run, argc, argv);
}

static int report_command(const char *program, int argc, char **argv) {
    const struct runner report = {
        .program = program,
        .summary = "Runs a CUDA program on the CPU and reports on it: text, json or sarif.",
        .report = "text",
        .failed = SIMT_EXIT_FAILED,
        .error_exit = FINDINGS_EXIT};
    return runner_main(&report, argc, argv);
}

static const struct {
    const char *name, *program;
    int (*run)(const char *program, int argc, char **argv);
} commands[] = {{"run", "simt run", run_command},
                {"report", "simt report", report_command},
                {"doctor", "simt doctor", doctor_command},
                {"gpus", "simt gpus", gpus_command},
                {"xray", "simt xray", xray_command}};

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    for (size_t n = 0; n < sizeof commands / sizeof *commands; n++) {
        if (strcmp(name, commands[n].name) == 0) {
            return commands[n].run(commands[n].program, argc - 1, argv + 1);
        }
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        fputs(HELP, stdout);
        return 0;
    }
    if (strcmp(name, "--version") == 0) {
        printf("simt %s\n", WARPBOOK_VERSION);
        return 0;
    }
    fprintf(stderr, "simt: %s%s%s: simt --help lists the commands\n",
            argc > 1 ? "no command '" : "which command?", name, argc > 1 ? "'" : "");
    return SIMT_EXIT_BAD_INPUT;
}
