#include "grader/report/warmups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "grader/report/memory.h"
#include "grader/report/run_grader.h"

enum { PATH_SIZE = 1200, MOST_ANSWER = 1 << 20 };

static struct warmups_run read_answer(const char *log) {
    struct warmups_run answer = {0};
    char *text;
    size_t size;
    if (file_read(log, MOST_ANSWER, &text, &size, NULL) == STATUS_OK) {
        bool good = sscanf(text, "%d of %d", &answer.done, &answer.count) == 2 &&
                    answer.done >= 0 && answer.done <= answer.count;
        free(text);
        if (good) {
            return answer;
        }
    }
    return (struct warmups_run){0};
}

struct warmups_run warmups_try(const struct grade_options *options, const struct run *memory,
                               const char *folder) {
    char program[PATH_SIZE], log[PATH_SIZE], digest[SHA1_TEXT];
    struct grader_end end;
    snprintf(program, sizeof program, "%s/../%s/00_warmups/check", options->graders,
             options->subject);
    snprintf(log, sizeof log, "%s/report/00_warmups.log", folder);
    const char *const files[] = {program};
    if (access(program, X_OK) != 0 || lab_digest(files, 1, digest, NULL) != STATUS_OK) {
        return (struct warmups_run){0};
    }
    if (!options->again && memory->warmups.count > 0 &&
        strcmp(memory->warmups.digest, digest) == 0) {
        return memory->warmups;
    }
    char *const arguments[] = {program, "--count", NULL};
    const struct grader_command command = {.program = program,
                                           .arguments = arguments,
                                           .grades = "/dev/null",
                                           .log = log,
                                           .limit = options->limit};
    struct warmups_run answer = {0};
    if (run_grader(&command, &end, NULL) == STATUS_OK && end.how == GRADER_EXITED) {
        answer = read_answer(log);
        memcpy(answer.digest, digest, sizeof digest);
    }
    return answer;
}
