#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "grader/sandbox/code_files.h"
#include "grader/sandbox/sandbox.h"

/* What a signal means to somebody who wrote the program. */
static const struct {
    int number;
    const char *text;
} signals[] = {
    {SIGSEGV, "crashed (SIGSEGV: it touched memory that is not there, or its stack was full)"},
    {SIGBUS, "crashed (SIGBUS: it touched memory that is not there)"},
    {SIGFPE, "crashed (SIGFPE: a division of integers by zero)"},
    {SIGILL, "crashed (SIGILL: an instruction that this CPU does not have)"},
    {SIGABRT, "was stopped (SIGABRT: by abort(), an assertion or damaged heap memory)"},
};

static const char *describe_signal(int number, char *text, size_t size) {
    const char *name = sigabbrev_np(number);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        if (signals[i].number == number) {
            snprintf(text, size, "%s", signals[i].text);
            return text;
        }
    }
    if (name == NULL) {
        snprintf(text, size, "was ended by signal %d", number);
    } else {
        snprintf(text, size, "was ended by SIG%s", name);
    }
    return text;
}

/* A name comes from the kernel, but a program chooses how its files are called. */
const char *describe_code(const char *name, char *text, size_t size) {
    if (name[0] != '/') {
        snprintf(text, size,
                 "made memory executable, which is not allowed here: what runs must be "
                 "compiled from your file");
        return text;
    }
    size_t length = (size_t)snprintf(text, size, "has executable memory from ");
    for (; *name != '\0' && length + 1 < size; name++) {
        text[length++] = *name > ' ' && *name < 127 ? *name : '?';
    }
    snprintf(text + length, size - length,
             ", which is not allowed here: what runs must be compiled from your file");
    return text;
}

static const char *describe_memory(const struct sandbox_result *result,
                                   const struct sandbox_limits *limits, char *text, size_t size) {
    double mib = 1024.0 * 1024.0;
    if (result->asked_bytes > 0) {
        snprintf(text, size, "asked for %.0f MiB of memory at once, of %.0f MiB in all",
                 (double)result->asked_bytes / mib, (double)limits->memory_bytes / mib);
    } else {
        snprintf(text, size, "used more than %.0f MiB of memory",
                 (double)limits->memory_bytes / mib);
    }
    return text;
}

const char *sandbox_describe(const struct sandbox_result *result,
                             const struct sandbox_limits *limits, char *text, size_t size) {
    switch (result->end) {
    case SANDBOX_EXITED:
        snprintf(text, size, "ended with exit status %d", result->exit_code);
        break;
    case SANDBOX_SIGNALLED:
        return describe_signal(result->signal, text, size);
    case SANDBOX_WALL_LIMIT:
        snprintf(text, size, "did not end within %g s", limits->wall_s);
        break;
    case SANDBOX_CPU_LIMIT:
        snprintf(text, size, "used more than %g s of CPU time", limits->cpu_s);
        break;
    case SANDBOX_MEMORY_LIMIT:
        return describe_memory(result, limits, text, size);
    case SANDBOX_THREAD_LIMIT:
        snprintf(text, size, "had more than %u threads", limits->threads);
        break;
    case SANDBOX_FILE_LIMIT:
        snprintf(text, size, "wrote more than %zu bytes of files, or 1000 files",
                 limits->file_bytes);
        break;
    case SANDBOX_REFUSED_CALL:
        snprintf(text, size, "called %s, which is not allowed here",
                 result->call[0] == '\0' ? "the system" : result->call);
        break;
    case SANDBOX_WENT_ON:
        snprintf(text, size, "went on running while it was to stand still");
        break;
    case SANDBOX_FOREIGN_CODE:
        return describe_code(result->code, text, size);
    case SANDBOX_OUTPUT_LIMIT:
        snprintf(text, size, "wrote more than %zu bytes of text", limits->output_bytes);
        break;
    case SANDBOX_STOPPED:
        snprintf(text, size, "was stopped from outside");
        break;
    case SANDBOX_UNWATCHED:
        snprintf(text, size, "was ended with the process that watched it, which was killed");
        break;
    case SANDBOX_COULD_NOT_START:
        snprintf(text, size, "could not be started: %s", result->reason);
        break;
    }
    return text;
}

const char *sandbox_lacks(const struct sandbox_result *result, unsigned wanted, char *text,
                          size_t size) {
    static const struct {
        unsigned bit;
        const char *text;
    } all[] = {
#define SANDBOX_HOLDS_TEXT(name, bit, words) {SANDBOX_HOLDS_##name, words},
        SANDBOX_HOLDS_LIST(SANDBOX_HOLDS_TEXT)
#undef SANDBOX_HOLDS_TEXT
    };
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if ((wanted & ~result->holds & all[i].bit) != 0 && length < size) {
            length += (size_t)snprintf(text + length, size - length, "%s%s",
                                       length == 0 ? "" : ", ", all[i].text);
        }
    }
    return text;
}
