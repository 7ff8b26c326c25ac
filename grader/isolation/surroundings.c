#include "grader/isolation/surroundings.h"

#include <stdio.h>
#include <string.h>

#include "grader/harness/program_folder.h"
#include "grader/harness/starter.h"
#include "grader/isolation/message.h"

extern char **environ;

/*
 * Variables whose names begin with one of these are passed on: which GPU, where the driver is, how
 * many threads, and which mistake a self-test wants. How simt behaves is passed on to the device's
 * process. Nothing else of ours is.
 */
static const char *const passed_on[] = {
    "CUDA_VISIBLE_DEVICES=", "LD_LIBRARY_PATH=", "OMP_NUM_THREADS=", "WRONG_"};
static const char worker_device[] = "SIMT_DEVICE=" WORKER_DEVICE_TEXT;

static bool is_passed_on(const char *variable) {
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++) {
        if (strncmp(variable, passed_on[i], strlen(passed_on[i])) == 0) {
            return true;
        }
    }
    return false;
}

static void choose_environment(struct surroundings *s) {
    size_t count = 0, settings = 0;
    if (remote_program.device == REMOTE_GPU && !s->gpu) {
        s->environment[count++] = worker_device;
    }
    for (char **variable = environ; *variable != NULL; variable++) {
        if (is_passed_on(*variable) && count < SURROUNDINGS_VARIABLES) {
            s->environment[count++] = *variable;
        } else if (strncmp(*variable, "SIMT_", 5) == 0 && settings < SURROUNDINGS_VARIABLES) {
            s->device_environment[settings++] = *variable;
        }
    }
}

/* @return whether the device is simt: its runtime is a library, a GPU's is part of the program. */
static bool has_simt(void) {
    char line[4096];
    bool simt = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && !simt && fgets(line, sizeof line, maps) != NULL) {
        const char *slash = strrchr(line, '/');
        simt = slash != NULL && strncmp(slash, "/libcudart.so", 13) == 0;
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return simt;
}

enum status surroundings_find(struct surroundings *s, enum remote_side which, struct error *error) {
    const bool starter = which == REMOTE_SUBJECT && grader_grades_starter();
    const char *name = remote_program.workers[starter ? REMOTE_STARTER : (int)which];
    *s = (struct surroundings){0};
    if (name == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "this test has no worker for %s",
                         which == REMOTE_SUBJECT ? "the subject" : "the baseline");
    }
    TRY(program_folder_path(s->worker, sizeof s->worker, name, error));
    s->gpu = remote_program.device && !has_simt();
    choose_environment(s);
    return STATUS_OK;
}
