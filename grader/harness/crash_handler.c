/* Only what POSIX allows in a signal handler: no printf(), no memory, no locks. */
#include "grader/harness/crash_handler.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    STACK_BYTES = 64 << 10,
    LINE_BYTES = 512,
    MOST_CALLS = 24,
    WORDS_SEARCHED = 8192,
    CLOSED_PAGES = 64
};

/* Neither constant nor handed in: a signal handler gets no context of ours. */
static struct {
    const char *volatile phase;
    pid_t process; /* that installed the handlers */
    unsigned char stack[STACK_BYTES];
} crash;

/* The linker's: the program's code lies between the two. */
extern const char __executable_start[], etext[];

struct line {
    char text[LINE_BYTES];
    size_t length;
};

static void add_text(struct line *line, const char *text) {
    size_t room = sizeof line->text - line->length, length = strlen(text);
    length = length < room ? length : room;
    memcpy(line->text + line->length, text, length);
    line->length += length;
}

static void add_number(struct line *line, uint64_t number, unsigned base) {
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        digits[--at] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number > 0);
    add_text(line, base == 16 ? "0x" : "");
    add_text(line, digits + at);
}

static void write_line(struct line *line) {
    size_t length = line->length < sizeof line->text ? line->length : sizeof line->text - 1;
    line->text[length] = '\n';
    ssize_t written = write(STDERR_FILENO, line->text, length + 1);
    (void)written; /* there is nobody else to tell */
    line->length = 0;
}

static const char *name_of(int number) {
    return number == SIGSEGV  ? "SIGSEGV"
           : number == SIGBUS ? "SIGBUS"
           : number == SIGILL ? "SIGILL"
                              : "SIGFPE";
}

static void say_what(struct line *line, int number, const siginfo_t *info) {
    add_text(line, getpid() == crash.process ? "the grader itself crashed ("
                                             : "a process that the grader started crashed (");
    add_text(line, name_of(number));
    if (info->si_code <= 0) {
        add_text(line, " sent by process ");
        add_number(line, (uint64_t)info->si_pid, 10);
    } else {
        add_text(line, " at address ");
        add_number(line, (uint64_t)(uintptr_t)info->si_addr, 16);
    }
    add_text(line, "), in: ");
    add_text(line, crash.phase != NULL ? crash.phase : "start");
    add_text(line, "; this is no fault of your code: grade it again, and report these lines");
    write_line(line);
}

/* trap: the CPU's number, 13 for an address that no memory can have, 14 for a page. */
struct registers {
    uintptr_t instruction, stack, trap, error;
};

static struct registers registers_of(const ucontext_t *context) {
#if defined(__x86_64__)
    return (struct registers){(uintptr_t)context->uc_mcontext.gregs[REG_RIP],
                              (uintptr_t)context->uc_mcontext.gregs[REG_RSP],
                              (uintptr_t)context->uc_mcontext.gregs[REG_TRAPNO],
                              (uintptr_t)context->uc_mcontext.gregs[REG_ERR]};
#elif defined(__aarch64__)
    return (struct registers){(uintptr_t)context->uc_mcontext.pc,
                              (uintptr_t)context->uc_mcontext.sp, 0, 0};
#else
    (void)context;
    return (struct registers){0};
#endif
}

static void say_registers(struct line *line, const siginfo_t *info, const struct registers *r) {
    add_text(line, "  code ");
    add_number(line, (uint64_t)(unsigned)info->si_code, 10);
    add_text(line, ", trap ");
    add_number(line, r->trap, 10);
    add_text(line, ", error ");
    add_number(line, r->error, 10);
    add_text(line, ", process ");
    add_number(line, (uint64_t)getpid(), 10);
    add_text(line, ", thread ");
    add_number(line, (uint64_t)syscall(SYS_gettid), 10);
    add_text(line, ", instruction ");
    add_number(line, r->instruction, 16);
    add_text(line, ", stack ");
    add_number(line, r->stack, 16);
    add_text(line, ", the program's code begins at ");
    add_number(line, (uintptr_t)__executable_start, 16);
    write_line(line);
}

/* Where a full stack begins to be readable. */
static uintptr_t next_page(uintptr_t address) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    return (address / page + 1) * page;
}

/* A pipe's write() checks the memory: the stack may end anywhere. */
static size_t copy_words(uintptr_t stack, uintptr_t *words, size_t count, const int ends[2]) {
    size_t copied = 0;
    while (copied < count) {
        const void *from = (const void *)(stack + copied * sizeof *words); /* NOLINT: an address */
        if (write(ends[1], from, sizeof *words) != (ssize_t)sizeof *words ||
            read(ends[0], words + copied, sizeof *words) != (ssize_t)sizeof *words) {
            break;
        }
        copied++;
    }
    return copied;
}

/* Return addresses among others: no frame is needed to find them, so a jump to nowhere is no
   obstacle. */
static void say_calls(struct line *line, const struct registers *r) {
    static uintptr_t words[WORDS_SEARCHED];
    const uintptr_t begin = (uintptr_t)__executable_start, end = (uintptr_t)etext;
    int ends[2], found = 0;
    if (pipe(ends) != 0) {
        return;
    }
    uintptr_t stack = r->stack;
    size_t count = copy_words(stack, words, WORDS_SEARCHED, ends);
    for (int page = 0; count == 0 && page < CLOSED_PAGES; page++) {
        stack = next_page(stack);
        count = copy_words(stack, words, WORDS_SEARCHED, ends);
    }
    close(ends[0]);
    close(ends[1]);
    add_text(line, "  addresses of code on the stack:");
    for (size_t i = 0; i < count && found < MOST_CALLS; i++) {
        if (words[i] > begin && words[i] < end) {
            add_text(line, " +");
            add_number(line, words[i] - begin, 16);
            found++;
        }
    }
    write_line(line);
}

/* What faults again when this returns ends the process. Handlers that are installed later, such as
   simt's, call this one. */
static void on_crash(int number, siginfo_t *info, void *context) {
    const struct registers r = registers_of(context);
    struct line line = {.length = 0};
    say_what(&line, number, info);
    say_registers(&line, info, &r);
    say_calls(&line, &r);
    signal(number, SIG_DFL);
    if (info->si_code <= 0) {
        raise(number);
    }
}

const char *crash_handler_phase(const char *phase) {
    const char *before = crash.phase;
    crash.phase = phase;
    return before;
}

void crash_handler_install(void) {
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    const stack_t stack = {.ss_sp = crash.stack, .ss_size = sizeof crash.stack};
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    crash.process = getpid();
    sigemptyset(&action.sa_mask);
    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        sigaction(numbers[i], &action, NULL);
    }
}
