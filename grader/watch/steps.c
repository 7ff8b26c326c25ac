#include "grader/watch/steps.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *watch_step_name(enum watch_step step) {
    static const char *const names[WATCH_STEPS] = {"build", "parity", "bench", "bench", "speedup"};
    return names[step];
}

/* Benches of whole models, and lab 01's, which measures for a minute, would only hold up others. */
bool watch_has_bench(const struct lab *lab) {
    static const char *const labs[] = {"02_gpu_matmul", "04_sgemm", "05_layernorm_softmax",
                                       "06_fused_epilogues", "07_attention"};
    for (size_t i = 0; i < sizeof labs / sizeof *labs; i++) {
        if (strcmp(lab->name, labs[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* A command line while it grows. */
struct line {
    struct watch_command *command;
    size_t count, used;
    bool whole; /* everything found room */
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...) {
    char *text = line->command->text + line->used;
    size_t room = sizeof line->command->text - line->used;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, room, format, args);
    va_end(args);
    line->whole =
        line->whole && length >= 0 && (size_t)length < room && line->count + 1 < WATCH_ARGUMENTS;
    if (line->whole) {
        line->command->arguments[line->count++] = text;
        line->used += (size_t)length + 1;
    }
}

/* Words with spaces between them: "bazel --output_base=/tmp/b". */
static void add_words(struct line *line, const char *words) {
    words += strspn(words, " ");
    while (*words != '\0') {
        size_t length = strcspn(words, " ");
        add(line, "%.*s", (int)length, words);
        words += length;
        words += strspn(words, " ");
    }
}

/* --curses and --color: what it prints is read by us. Deleting an action's sandbox while the next
   one runs saves half a second of three. */
static void add_bazel(struct line *line, const struct watch_setup *setup) {
    add_words(line, setup->bazel);
    add(line, "build");
    add(line, "--curses=no");
    add(line, "--color=no");
    add(line, "--noshow_progress");
    add(line, "--experimental_sandbox_async_tree_delete_idle_threads=2");
    if (strcmp(setup->subject, "solutions") == 0) {
        add(line, "--config=solutions");
    }
    if (setup->config != NULL) {
        add(line, "--config=%s", setup->config);
    }
}

bool watch_command(struct watch_command *command, const struct watch_setup *setup,
                   const struct lab *lab, enum watch_step step) {
    struct line line = {.command = command, .whole = true};
    const char *name = watch_step_name(step);
    *command = (struct watch_command){.grades = ""};
    switch (step) {
    case WATCH_BUILD:
        add_bazel(&line, setup);
        add(&line, "//grader:%s_parity", lab->name);
        add(&line, "//grader:%s_speedup", lab->name);
        break;
    case WATCH_LINK:
        name = "bench_build";
        add_bazel(&line, setup);
        add(&line, "//%s/%s:bench", setup->subject, lab->name);
        break;
    case WATCH_BENCH:
        add(&line, "%s/bazel-bin/%s/%s/bench", setup->workspace, setup->subject, lab->name);
        add(&line, "--first");
        add(&line, "--quick");
        add(&line, "--why");
        break;
    default:
        add(&line, "%s/bazel-bin/grader/%s_%s", setup->workspace, lab->name, name);
        line.whole = line.whole && snprintf(command->grades, sizeof command->grades, "%s/%s.jsonl",
                                            setup->folder, name) < WATCH_PATH;
    }
    return snprintf(command->log, sizeof command->log, "%s/%s.log", setup->folder, name) <
               WATCH_PATH &&
           line.whole;
}
