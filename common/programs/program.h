/**
 * @file program.h
 * @brief What the project's programs have in common: the device they run on, lists of stages in
 *        messages, interruption by a signal, and the end of their output.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_PROGRAM_H_
#define WARPBOOK_COMMON_PROGRAMS_PROGRAM_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/nn/dtype.h"

/** The GPU that a program runs on, or simt. */
struct program_device {
    char name[300]; /**< as records show it: "NVIDIA H200", or "simt:h200" */
    bool modelled;  /**< simt: times are modelled, not measured */
};

/**
 * @brief Opens the GPU or simt; needs a build with nvcc, and the library program_device_open.
 * @return STATUS_OK or the failure of device_open()
 */
MUST_CHECK enum status program_device_open(struct program_device *device, struct error *error);

/**
 * @brief Describes where a program computes: "stage 04_sgemm on NVIDIA H200", "... on simt:h200
 *        (times are modelled)", "... on the CPU"; "stage 08_bert_classifier in bf16 on ...".
 * @param dtype NN_F32 is not mentioned
 * @return @p text, of at most @p size bytes
 */
const char *program_where(const char *stage, enum nn_dtype dtype,
                          const struct program_device *device, char *text, size_t size);

/** Appends a stage's name to a list "01_a, 02_b". @param list text of @p room bytes, "" at first */
void stage_list_add(char *list, size_t room, const char *name);

/**
 * @brief Finds a stage by name ("08_bert_classifier"), by the beginning of its name ("08_b") or by
 *        its number ("8", "08").
 * @param table  array of structs whose first member is the stage's name
 * @param stride bytes of one struct
 * @return index; @p count if there is none, or if several names begin so
 */
size_t stage_find(const void *table, size_t count, size_t stride, const char *name);

/**
 * @brief stage_find() for the value of --stage.
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT, with a message that lists the stages
 */
MUST_CHECK enum status stage_flag_find(const void *table, size_t count, size_t stride,
                                       const char *value, size_t *found, struct error *error);

/**
 * @brief Watches for SIGINT, SIGTERM and SIGHUP, and ignores SIGPIPE, so that writing to a closed
 *        pipe returns an error. A program calls it before interrupt_seen(), which it calls between
 *        two steps of its work to stop cleanly after a first signal; a second one kills it, except
 *        a second SIGHUP: when a terminal closes, both the kernel and the shell send one.
 *
 * A signal that the parent process ignores stays ignored. A waiting read() ends with EINTR.
 */
void interrupt_watch(void);

/** @return the signal that came; 0: none. */
int interrupt_seen(void);

/**
 * @brief The exit status of a program, after its work.
 *
 * Prints the error, if the work failed. After a signal it prints only a recorded message.
 *
 * @return 0; 1 after a failure; 128 + the signal, as in shells, for STATUS_INTERRUPTED
 */
int program_exit_status(const char *program, const struct error *error, enum status status);

/** Flushes standard output. @return STATUS_OK; STATUS_IO when any output could not be written */
MUST_CHECK enum status program_output_end(struct error *error);

#endif
