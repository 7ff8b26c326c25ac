/**
 * @file commands.h
 * @brief The commands of `simt`. Each takes its own name and arguments and returns the exit status.
 */
#ifndef WARPBOOK_COMMON_SIMT_TOOL_COMMANDS_H_
#define WARPBOOK_COMMON_SIMT_TOOL_COMMANDS_H_

/** Exit statuses of `simt`; its man page has them. */
enum {
    SIMT_EXIT_REFUSED = 1,   /**< doctor: something would be refused */
    SIMT_EXIT_BAD_INPUT = 2, /**< no such file, no program, a wrong flag */
    SIMT_EXIT_FAILED = 125,  /**< run, report: the program was not started */
};

/** @param program what messages and --help call the command: "simt doctor" */
int doctor_command(const char *program, int argc, char **argv);
int gpus_command(const char *program, int argc, char **argv);

#endif
