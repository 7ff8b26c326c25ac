#include "grader/sandbox/supervisor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "grader/sandbox/child.h"
#include "grader/sandbox/output.h"
#include "grader/sandbox/processes.h"
#include "grader/sandbox/seccomp_filter.h"
#include "grader/sandbox/temporary_folder.h"

/* Seconds of CPU time that a program that stands still may seem to use, and after which it should
   stand still where the kernel does not say that it does. */
static const double MOST_STANDING_S = 0.002, STANDS_AFTER_S = 0.2;

enum {
    TICK_MS = 10,       /* between two looks at what the program uses */
    SLOW_LOOKS = 5,     /* ticks between two looks at the folder, or at what is mapped */
    SLOWER_LOOKS = 20,  /* ticks between two looks at all of /proc */
    PATIENCE_S = 5,     /* with processes that do not die */
    PIPE_BYTES = 65536, /* read at once */
    LAST_READS = 64,    /* of what is left in a pipe when all are dead */
    AT_ONCE = 1000,     /* dead that are taken in before anything else is looked at */
    MOST_ENTRIES = 1000 /* of the program's folder */
};

/* What the supervisor waits on; -1 where there is nothing more to come. */
enum source { OUT, ERROR, LISTENER, CHANNEL, LIFELINE, CHILDREN, SOURCES };

struct supervisor {
    const struct supervisor_plan *plan;
    struct sandbox_result *result;
    struct pollfd sources[SOURCES];
    pid_t child;
    bool runs;      /* the program was started */
    bool condemned; /* SIGKILL is under way, for the reason in result->end */
    bool reported;  /* for what the listener reported, which nothing undoes */
    bool ending;    /* condemned, or seen dead */
    bool dead;      /* the child was reaped */
    int status;     /* then */
    int told;       /* to stand still (1), or to go on (0) */
    double stood;   /* CPU seconds used when it stood still; negative: not yet known */
    unsigned ticks;
    struct timespec start, killed, paused;
};

static double seconds_since(const struct timespec *start) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + 1e-9 * (double)(now.tv_nsec - start->tv_nsec);
}

static void close_source(struct supervisor *w, enum source source) {
    if (w->sources[source].fd >= 0) {
        close(w->sources[source].fd);
    }
    w->sources[source].fd = -1;
}

/* Kills the program, for this reason unless there already is one. */
static void condemn(struct supervisor *w, enum sandbox_end end) {
    if (!w->condemned && !w->dead && w->child > 0) {
        w->condemned = true;
        w->ending = true;
        w->result->end = end;
        clock_gettime(CLOCK_MONOTONIC, &w->killed);
        kill(-w->child, SIGKILL);
        kill(w->child, SIGKILL); /* while it is not yet in its own group */
    }
}

/* @return whether there was something */
static bool read_output(struct supervisor *w, enum source source, struct sandbox_output *output) {
    char bytes[PIPE_BYTES];
    if (w->sources[source].fd < 0) {
        return false;
    }
    ssize_t got = read(w->sources[source].fd, bytes, sizeof bytes);
    if (got > 0) {
        output_add(output, bytes, (size_t)got);
    } else if (got == 0) {
        close_source(w, source);
    }
    return got > 0;
}

/* When memory runs out in the machine, it is the program that goes. */
static void offer_to_oom_killer(pid_t child) {
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/oom_score_adj", (int)child);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (write(fd, "1000", 4) < 0) {
            errno = 0; /* it is a kindness, no defence */
        }
        close(fd);
    }
}

/* The child's channel has closed: it is the program now, unless it said otherwise. */
static void begin(struct supervisor *w) {
    close_source(w, CHANNEL);
    if (w->result->reason[0] != '\0') {
        return;
    }
    w->runs = true;
    w->result->pid = w->child;
    if (!w->ending) {
        clock_gettime(CLOCK_MONOTONIC, &w->start);
        offer_to_oom_killer(w->child);
    }
}

static void read_channel(struct supervisor *w) {
    struct child_note note;
    int got = 1;
    while (w->sources[CHANNEL].fd >= 0 && got > 0) {
        got = child_read_note(w->sources[CHANNEL].fd, &note, &w->sources[LISTENER].fd);
        if (got > 0) {
            w->result->holds |= note.holds;
            snprintf(w->result->reason, sizeof w->result->reason, "%s", note.failure);
        } else if (got == 0) {
            begin(w);
        }
    }
}

/* Ends the program for a call; what it may not map as code is named where that is a file. */
static void refuse(struct supervisor *w, const struct filter_report *report) {
    w->result->asked_bytes = report->asked_bytes;
    w->reported = true;
    if (report->code) {
        condemn(w, SANDBOX_FOREIGN_CODE);
    } else if (report->mapping) {
        condemn(w, SANDBOX_MEMORY_LIMIT);
    } else {
        memcpy(w->result->call, report->call, sizeof report->call);
        condemn(w, SANDBOX_REFUSED_CALL);
    }
}

/* The loader maps the program's libraries; the call goes on when the file is one of them. */
static bool may_go_on(struct supervisor *w, const struct filter_report *report) {
    return report->code && report->fd >= 0 &&
           !code_descriptor_is_foreign(report->pid, report->fd, w->plan->code, w->result->code) &&
           filter_go_on(w->sources[LISTENER].fd, report);
}

/* Of who was killed meanwhile no file can be looked up, and the call does not happen. */
static bool is_gone(const struct supervisor *w, const struct filter_report *report) {
    return report->code && report->fd >= 0 && !filter_waits(w->sources[LISTENER].fd, report);
}

static void read_listener(struct supervisor *w) {
    struct filter_report report;
    if ((w->sources[LISTENER].revents & POLLIN) && filter_read(w->sources[LISTENER].fd, &report) &&
        !w->condemned && !may_go_on(w, &report) && !is_gone(w, &report)) {
        refuse(w, &report);
    }
    if (w->sources[LISTENER].revents & POLLHUP) {
        close_source(w, LISTENER);
    }
}

/* @return whether /proc could say */
static bool look(const struct supervisor *w, struct processes_use *use) {
    if ((w->result->holds & SANDBOX_HOLDS_CALLS) && w->plan->command->programs == NULL) {
        return processes_use_of(w->child, use); /* it cannot have started others */
    }
    return w->ticks % SLOWER_LOOKS != 0 || processes_use_below(getpid(), use);
}

static void check_use(struct supervisor *w) {
    const struct sandbox_limits *limits = &w->plan->command->limits;
    struct processes_use use = {0};
    w->ticks++;
    if (!look(w, &use)) {
        return;
    }
    uint64_t bytes = limits->resident ? use.resident_bytes : use.address_bytes;
    if (use.threads > limits->threads) {
        condemn(w, SANDBOX_THREAD_LIMIT);
    } else if (bytes > limits->memory_bytes) {
        condemn(w, SANDBOX_MEMORY_LIMIT);
    } else if (use.cpu_s >= limits->cpu_s) {
        condemn(w, SANDBOX_CPU_LIMIT);
    }
}

/* Many small files are as bad as a large one. */
static void check_folder(struct supervisor *w) {
    struct folder_use use;
    if (w->ticks % SLOW_LOOKS == 0 && folder_use(w->plan->shared->folder, MOST_ENTRIES, &use) &&
        (use.entries >= MOST_ENTRIES || use.bytes > w->plan->command->limits.file_bytes)) {
        condemn(w, SANDBOX_FILE_LIMIT);
    }
}

/* A program that brings code from elsewhere has to have it mapped for as long as it runs there. */
static void check_code(struct supervisor *w) {
    const struct sandbox_command *command = w->plan->command;
    if (w->ticks % SLOW_LOOKS == 0 && command->programs == NULL &&
        code_is_foreign(w->child, w->plan->code, command->gpu, w->result->code)) {
        condemn(w, SANDBOX_FOREIGN_CODE);
    }
}

static void check_output(struct supervisor *w) {
    size_t most = w->plan->command->limits.output_bytes;
    if (most > 0 && w->result->out.total + w->result->error.total > most) {
        condemn(w, SANDBOX_OUTPUT_LIMIT);
    }
}

static void check_limits(struct supervisor *w) {
    if (w->runs) {
        check_use(w);
        check_folder(w);
        check_code(w);
        check_output(w);
    }
    if (seconds_since(&w->start) >= w->plan->command->limits.wall_s) {
        condemn(w, SANDBOX_WALL_LIMIT);
    }
}

static void add_times(struct sandbox_result *result, const struct rusage *use) {
    uint64_t resident = (uint64_t)use->ru_maxrss * 1024;
    result->user_s += (double)use->ru_utime.tv_sec + 1e-6 * (double)use->ru_utime.tv_usec;
    result->system_s += (double)use->ru_stime.tv_sec + 1e-6 * (double)use->ru_stime.tv_usec;
    result->resident_bytes = resident > result->resident_bytes ? resident : result->resident_bytes;
}

/* The child is dead, and its number still its own. */
static void note_death(struct supervisor *w) {
    w->ending = true;
    kill(-w->child, SIGKILL); /* the rest of its group */
    read_channel(w);
    if (w->runs) {
        w->result->wall_s = seconds_since(&w->start);
    }
}

/*
 * Takes in who has died; looks first, so that the program's death is noted
 * before its number is free. @return whether there is anybody left to wait for
 */
static bool reap(struct supervisor *w) {
    siginfo_t info = {0};
    for (int i = 0; i < AT_ONCE; i++) {
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
            return false;
        }
        struct rusage use;
        int status = 0;
        if (info.si_pid == 0) {
            return true;
        }
        if (info.si_pid == w->child) {
            note_death(w);
        }
        if (wait4(info.si_pid, &status, 0, &use) > 0) {
            add_times(w->result, &use);
        }
        if (info.si_pid == w->child) {
            w->dead = true;
            w->status = status;
        } else if (w->ending) {
            w->result->left_behind++;
        }
        info.si_pid = 0;
    }
    return true;
}

static void drain_signals(struct supervisor *w) {
    struct signalfd_siginfo info[8];
    if (read(w->sources[CHILDREN].fd, info, sizeof info) < 0) {
        return; /* nothing to drain */
    }
}

/* @return whether all its threads stand still since the last SIGSTOP; said once */
static bool has_stopped(const struct supervisor *w) {
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)w->child, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid == w->child;
}

/* CPU seconds of all its threads so far; negative: not known. */
static double cpu_seconds(pid_t child) {
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(child, &clock) != 0 || clock_gettime(clock, &used) != 0) {
        return -1.0;
    }
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

/* Ends a program that does not stand still: a signal continues it, once or all the time. */
static void check_pause(struct supervisor *w) {
    if (w->told != 1) {
        return;
    }
    double used = cpu_seconds(w->child);
    if (w->stood < 0.0) {
        bool stands = atomic_load(&w->plan->shared->paused) == 1 ||
                      seconds_since(&w->paused) > STANDS_AFTER_S;
        w->stood = stands ? used : -1.0;
    } else if (used > w->stood + MOST_STANDING_S && !processes_dying(w->child)) {
        condemn(w, SANDBOX_WENT_ON);
    }
}

/* Has the program stand still, or go on, as the caller wants it. */
static void obey(struct supervisor *w) {
    struct supervisor_shared *shared = w->plan->shared;
    int pause = atomic_load(&shared->pause);
    if (!w->runs || w->dead) {
        return;
    }
    check_pause(w);
    if (pause != w->told) {
        kill(-w->child, pause ? SIGSTOP : SIGCONT);
        w->told = pause;
        w->stood = -1.0;
        clock_gettime(CLOCK_MONOTONIC, &w->paused);
    }
    if (pause != atomic_load(&shared->paused) && (!pause || has_stopped(w))) {
        atomic_store(&shared->paused, pause);
    }
}

/* One round: whatever has happened, at most one tick of waiting. */
static void step(struct supervisor *w) {
    if (poll(w->sources, SOURCES, TICK_MS) < 0) {
        return;
    }
    read_channel(w);
    if (w->sources[LISTENER].revents != 0) {
        read_listener(w);
    }
    read_output(w, OUT, &w->result->out);
    read_output(w, ERROR, &w->result->error);
    if (w->sources[LIFELINE].revents != 0) {
        condemn(w, SANDBOX_STOPPED);
        close_source(w, LIFELINE);
    }
    drain_signals(w);
    reap(w);
    obey(w);
    if (!w->dead) {
        check_limits(w);
    }
}

/* Ends all that the program left; nothing of it survives the supervisor. */
static void kill_the_rest(struct supervisor *w) {
    struct timespec start;
    unsigned found = 0;
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (reap(w)) {
        if (seconds_since(&start) > PATIENCE_S) {
            w->result->unkillable = found;
            w->result->left_behind += found;
            return;
        }
        found = processes_kill_below(getpid());
        poll(NULL, 0, 1);
    }
}

/* How the program ended, when nobody killed it. */
static void judge(struct supervisor *w) {
    struct sandbox_result *result = w->result;
    result->exit_code = -1;
    if (!w->runs) {
        result->end = SANDBOX_COULD_NOT_START;
        return;
    }
    if (w->reported || (w->condemned && !(w->dead && WIFEXITED(w->status)))) {
        return;
    }
    if (WIFEXITED(w->status)) {
        result->end = SANDBOX_EXITED;
        result->exit_code = WEXITSTATUS(w->status);
        return;
    }
    result->signal = WTERMSIG(w->status);
    switch (result->signal) {
    case SIGSYS:
        result->end = SANDBOX_REFUSED_CALL;
        break;
    case SIGXCPU:
        result->end = SANDBOX_CPU_LIMIT;
        break;
    case SIGXFSZ:
        result->end = SANDBOX_FILE_LIMIT;
        break;
    default:
        result->end = SANDBOX_SIGNALLED;
    }
}

/* The caller's descriptors are closed here: whoever waits for their end must not wait for us. */
static void close_others(const int *keep, size_t count) {
    DIR *open_ones = opendir("/proc/self/fd");
    const struct dirent *entry;
    while (open_ones != NULL && (entry = readdir(open_ones)) != NULL) {
        int fd = atoi(entry->d_name);
        bool kept = entry->d_name[0] == '.' || fd == dirfd(open_ones);
        for (size_t i = 0; i < count; i++) {
            kept |= fd == keep[i];
        }
        if (!kept) {
            close(fd);
        }
    }
    if (open_ones != NULL) {
        closedir(open_ones);
    }
}

static void finish(struct supervisor *w) __attribute__((noreturn));

static void finish(struct supervisor *w) {
    struct supervisor_shared *shared = w->plan->shared;
    for (int i = 0; i < LAST_READS && read_output(w, OUT, &w->result->out); i++) {
    }
    for (int i = 0; i < LAST_READS && read_output(w, ERROR, &w->result->error); i++) {
    }
    output_end(&w->result->out);
    output_end(&w->result->error);
    judge(w);
    if (shared->folder[0] != '\0') {
        folder_remove(shared->folder);
    }
    atomic_store(&shared->done, 1);
    _exit(0);
}

/* Nothing but SIGKILL disturbs the supervisor; deaths come as reads. @return the descriptor */
static int settle_signals(void) {
    sigset_t all, deaths;
    signal(SIGCHLD, SIG_DFL); /* a caller that ignores it would take the statuses away */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&deaths);
    sigaddset(&deaths, SIGCHLD);
    return signalfd(-1, &deaths, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Pipes for the output and the child's channel. The first of each pair is the supervisor's. */
struct pipes {
    int out[2], error[2], channel[2];
};

static bool open_pipes(struct pipes *pipes) {
    return pipe2(pipes->out, O_CLOEXEC) == 0 && pipe2(pipes->error, O_CLOEXEC) == 0 &&
           fcntl(pipes->out[0], F_SETFL, O_NONBLOCK) == 0 &&
           fcntl(pipes->error[0], F_SETFL, O_NONBLOCK) == 0 &&
           socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pipes->channel) == 0;
}

static void start_child(struct supervisor *w, const struct pipes *pipes) {
    pid_t supervisor = getpid();
    unsigned tasks = processes_tasks_of_user();
    struct processes_use use = {0};
    if (processes_use_of(supervisor, &use)) {
        w->result->holds |= SANDBOX_HOLDS_COUNTS;
    }
    w->child = fork();
    if (w->child == 0) {
        struct child child = {.command = w->plan->command,
                              .program = w->plan->program,
                              .code = w->plan->code,
                              .folder = w->plan->shared->folder,
                              .supervisor = supervisor,
                              .tasks = tasks,
                              .holds = w->result->holds,
                              .out = pipes->out[1],
                              .error = pipes->error[1],
                              .channel = pipes->channel[1]};
        child_become_program(&child);
    }
    w->sources[OUT].fd = pipes->out[0];
    w->sources[ERROR].fd = pipes->error[0];
    w->sources[CHANNEL].fd = pipes->channel[0];
}

/* Made by who removes it: whoever else is killed, it does not stay. */
static void make_folder(struct supervisor *w) {
    struct error error = {0};
    char *path = w->plan->shared->folder;
    enum status status =
        folder_create(w->plan->command->folder, path, sizeof w->plan->shared->folder, &error);
    if (status != STATUS_OK) {
        path[0] = '\0';
        snprintf(w->result->reason, sizeof w->result->reason, "%s", error_text(&error, status));
        finish(w);
    }
}

static void set_up(struct supervisor *w) {
    struct pipes pipes;
    setsid(); /* a terminal's signals are for the caller */
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0) {
        w->result->holds |= SANDBOX_HOLDS_ORPHANS;
    }
    make_folder(w);
    w->sources[CHILDREN].fd = settle_signals();
    if (w->sources[CHILDREN].fd < 0 || !open_pipes(&pipes)) {
        snprintf(w->result->reason, sizeof w->result->reason, "no pipes: %s", strerror(errno));
        finish(w);
    }
    start_child(w, &pipes);
    if (w->child < 0) {
        snprintf(w->result->reason, sizeof w->result->reason, "no process: %s", strerror(errno));
        finish(w);
    }
    int keep[] = {pipes.out[0],      pipes.error[0], pipes.channel[0], w->sources[CHILDREN].fd,
                  w->plan->lifeline, w->plan->done};
    close_others(keep, sizeof keep / sizeof *keep);
}

void supervisor_run(const struct supervisor_plan *plan) {
    struct supervisor w = {.plan = plan, .result = &plan->shared->result};
    for (int i = 0; i < SOURCES; i++) {
        w.sources[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    }
    w.sources[LIFELINE].fd = plan->lifeline;
    w.result->holds = plan->holds;
    clock_gettime(CLOCK_MONOTONIC, &w.start);
    set_up(&w);
    while (!w.dead && !(w.condemned && seconds_since(&w.killed) > PATIENCE_S)) {
        step(&w);
    }
    kill_the_rest(&w);
    finish(&w);
}
