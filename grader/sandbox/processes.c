#include "grader/sandbox/processes.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct process {
    pid_t pid, parent;
    bool below;
};

struct list {
    struct process *items;
    size_t count, room;
};

/* Fields of /proc/PID/stat that count here. */
struct stat_line {
    pid_t parent;
    unsigned threads;
    uint64_t address_bytes, resident_bytes;
    double cpu_s;
};

/* Reads a small file, relative to a folder. @return "" where there is none */
static const char *read_text(int folder, const char *path, char *text, size_t size) {
    int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0) {
        close(fd);
    }
    text[length > 0 ? length : 0] = '\0';
    return text;
}

/* Reads the line; the program's name, which stands in it in brackets, may hold anything. */
static bool read_stat(pid_t pid, struct stat_line *line) {
    char path[48], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    const char *rest = strrchr(read_text(AT_FDCWD, path, text, sizeof text), ')');
    int parent;
    unsigned long user, system, address;
    long threads, resident;
    if (rest == NULL || sscanf(rest + 1,
                               " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d "
                               "%*d %ld %*d %*u %lu %ld",
                               &parent, &user, &system, &threads, &address, &resident) != 6) {
        return false;
    }
    *line = (struct stat_line){.parent = parent,
                               .threads = threads > 0 ? (unsigned)threads : 0,
                               .address_bytes = address,
                               .resident_bytes = (uint64_t)resident * (uint64_t)getpagesize(),
                               .cpu_s = (double)(user + system) / (double)sysconf(_SC_CLK_TCK)};
    return true;
}

static void add(struct processes_use *use, const struct stat_line *line) {
    use->processes++;
    use->threads += line->threads;
    use->address_bytes += line->address_bytes;
    use->resident_bytes += line->resident_bytes;
    use->cpu_s += line->cpu_s;
}

bool processes_use_of(pid_t pid, struct processes_use *use) {
    struct stat_line line;
    if (!read_stat(pid, &line)) {
        return false;
    }
    add(use, &line);
    return true;
}

/* A thread's time on a processor, its time in line for one, both in nanoseconds, and a count. */
static double thread_waited(int folder, const char *name) {
    char path[288], text[96];
    unsigned long long waited = 0;
    snprintf(path, sizeof path, "%s/schedstat", name);
    read_text(folder, path, text, sizeof text);
    return sscanf(text, "%*u %llu", &waited) == 1 ? 1e-9 * (double)waited : 0.0;
}

/* Whether SIGKILL is on its way to a thread, or it is on its way out: the kernel's PF_EXITING. */
static double thread_dying(int folder, const char *name) {
    const unsigned exiting = 4;
    const unsigned long killed = 1ul << (SIGKILL - 1);
    char path[288], text[1024], state = 'X';
    unsigned flags = 0;
    unsigned long pending = 0;
    snprintf(path, sizeof path, "%s/stat", name);
    const char *rest = strrchr(read_text(folder, path, text, sizeof text), ')');
    if (rest != NULL) {
        sscanf(rest + 1,
               " %c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %*u "
               "%*u %*d %*u %*u %*u %*u %*u %*u %lu",
               &state, &flags, &pending);
    }
    return state == 'Z' || state == 'X' || (flags & exiting) != 0 || (pending & killed) != 0;
}

/* The least and the most that is said of a process's threads; `least` is infinite without one. */
static void ask_threads(pid_t pid, double (*ask)(int folder, const char *name), double *least,
                        double *most) {
    char path[48];
    const struct dirent *entry;
    *least = INFINITY;
    *most = 0.0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0])) {
            double said = ask(dirfd(folder), entry->d_name);
            *least = fmin(*least, said);
            *most = fmax(*most, said);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

double processes_waited(pid_t pid) {
    double shortest, longest;
    ask_threads(pid, thread_waited, &shortest, &longest);
    return longest;
}

bool processes_dying(pid_t pid) {
    double all, any;
    ask_threads(pid, thread_dying, &all, &any);
    return all > 0.0;
}

static bool append(struct list *list, struct process process) {
    if (list->count == list->room) {
        size_t room = list->room == 0 ? 256 : 2 * list->room;
        struct process *items = realloc(list->items, room * sizeof *items);
        if (items == NULL) {
            return false;
        }
        list->items = items;
        list->room = room;
    }
    list->items[list->count++] = process;
    return true;
}

/* All processes there are, as (pid, parent). */
static bool list_all(struct list *list) {
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    bool done = proc != NULL;
    while (done && (entry = readdir(proc)) != NULL) {
        struct stat_line line;
        pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)atol(entry->d_name) : 0;
        if (pid > 0 && read_stat(pid, &line)) {
            done = append(list, (struct process){.pid = pid, .parent = line.parent});
        }
    }
    if (proc != NULL) {
        closedir(proc);
    }
    return done;
}

static bool is_below(const struct list *list, pid_t pid) {
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].below && list->items[i].pid == pid) {
            return true;
        }
    }
    return false;
}

/* Marks the descendants of `ancestor`: each round finds one generation more. */
static void mark_below(struct list *list, pid_t ancestor) {
    bool found = true;
    while (found) {
        found = false;
        for (size_t i = 0; i < list->count; i++) {
            struct process *process = &list->items[i];
            if (!process->below &&
                (process->parent == ancestor || is_below(list, process->parent))) {
                process->below = true;
                found = true;
            }
        }
    }
}

bool processes_use_below(pid_t ancestor, struct processes_use *use) {
    struct list list = {0};
    bool done = list_all(&list);
    mark_below(&list, ancestor);
    for (size_t i = 0; i < list.count; i++) {
        if (list.items[i].below) {
            processes_use_of(list.items[i].pid, use);
        }
    }
    free(list.items);
    return done;
}

unsigned processes_kill_below(pid_t ancestor) {
    struct list list = {0};
    unsigned killed = 0;
    list_all(&list);
    mark_below(&list, ancestor);
    for (size_t i = 0; i < list.count; i++) {
        if (list.items[i].below) {
            kill(list.items[i].pid, SIGKILL);
            killed++;
        }
    }
    free(list.items);
    return killed;
}

unsigned processes_tasks_of_user(void) {
    struct processes_use use = {0};
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        struct stat status;
        if (isdigit((unsigned char)entry->d_name[0]) &&
            fstatat(dirfd(proc), entry->d_name, &status, 0) == 0 && status.st_uid == getuid()) {
            processes_use_of((pid_t)atol(entry->d_name), &use);
        }
    }
    if (proc != NULL) {
        closedir(proc);
    }
    return use.threads;
}
