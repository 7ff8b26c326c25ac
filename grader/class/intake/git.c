/*
 * A git repository: the files of its HEAD. git sees a folder of ours, which has the repository's
 * objects and references and a configuration of our own: nothing that the repository configures
 * is read, so that no hook, filter, alternate or transport of its choice comes in.
 */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/folder.h"
#include "grader/class/copy_file.h"
#include "grader/class/intake/intake.h"
#include "grader/sandbox/temporary_folder.h"

enum { GIT_SECONDS = 60, GIT_MEMORY = 2 << 20 /* KiB */, GIT_PATH = 3000, MOST_OBJECTS = 200000 };

/* What stands before a command of git. */
struct git {
    const char *folder; /* ours */
    char *listing;
    const char *object; /* that read_object() reads */
};

static void become_git(const char *const *arguments, int out) {
    static char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin",
                                        "LC_ALL=C",
                                        "HOME=/nonexistent",
                                        "GIT_CONFIG_NOSYSTEM=1",
                                        "GIT_CONFIG_GLOBAL=/dev/null",
                                        "GIT_ALLOW_PROTOCOL=none",
                                        "GIT_NO_LAZY_FETCH=1",
                                        "GIT_NO_REPLACE_OBJECTS=1",
                                        "GIT_TERMINAL_PROMPT=0",
                                        NULL};
    struct rlimit memory = {(rlim_t)GIT_MEMORY << 10, (rlim_t)GIT_MEMORY << 10};
    struct rlimit time = {GIT_SECONDS, GIT_SECONDS};
    int nothing = open("/dev/null", O_RDWR);
    setpgid(0, 0);
    setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_CPU, &time);
    if (nothing >= 0 && dup2(nothing, 0) == 0 && dup2(out, 1) == 1 && dup2(nothing, 2) == 2) {
        execvpe("git", (char *const *)arguments, environment);
    }
    _exit(127);
}

/* Reads until the end, `most` bytes or the time is over. @return bytes, or -1 */
static ssize_t read_pipe(int in, char *text, size_t most) {
    time_t end = time(NULL) + GIT_SECONDS;
    size_t size = 0;
    while (time(NULL) < end) {
        struct pollfd look = {.fd = in, .events = POLLIN};
        if (poll(&look, 1, 1000) <= 0) {
            continue;
        }
        ssize_t got = read(in, text + size, most + 1 - size);
        size += got > 0 ? (size_t)got : 0;
        if (got <= 0 || size > most) {
            return got < 0 || size > most ? -1 : (ssize_t)size;
        }
    }
    return -1;
}

/* Runs git on our folder; what it writes is in memory that the caller frees, with a NUL. */
static enum status ask_git(const struct git *git, const char *const *words, size_t most,
                           char **text, size_t *size, struct error *error) {
    const char *arguments[16] = {"git", "--git-dir", git->folder};
    int ends[2], state = -1;
    for (size_t i = 0; words[i] != NULL && i < 12; i++) {
        arguments[3 + i] = words[i];
    }
    *text = malloc(most + 2);
    if (*text == NULL || pipe2(ends, O_CLOEXEC) != 0) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    pid_t child = fork();
    if (child == 0) {
        become_git(arguments, ends[1]);
    }
    close(ends[1]);
    ssize_t got = child > 0 ? read_pipe(ends[0], *text, most) : -1;
    close(ends[0]);
    if (child > 0) {
        setpgid(child, child);
        if (got < 0) {
            kill(child, SIGKILL);
        }
        waitpid(child, &state, 0);
    }
    if (got < 0 || !WIFEXITED(state) || WEXITSTATUS(state) != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         state != -1 && WIFEXITED(state) && WEXITSTATUS(state) == 127
                             ? "it is a git repository, and there is no git here"
                             : "git cannot read the repository's last commit, or it is too large");
    }
    *size = (size_t)got;
    (*text)[got] = '\0';
    return STATUS_OK;
}

static enum status read_object(void *source, char **text, size_t *size, struct error *error) {
    const struct git *git = source;
    const char *const words[] = {"cat-file", "blob", git->object, NULL};
    return ask_git(git, words, MOST_SOURCE, text, size, error);
}

/* "100644 blob HASH    SIZE\tPATH" */
static enum status look_at(struct found *found, struct git *git, char *line, struct error *error) {
    char hash[80] = "", type[20] = "", mode[20] = "";
    unsigned long long bytes = 0;
    const char *tab = strchr(line, '\t');
    if (tab == NULL || sscanf(line, "%19s %19s %79s %llu", mode, type, hash, &bytes) < 3) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "git's list of files is not understood");
    }
    git->object = hash;
    enum found_kind kind = strcmp(mode, "120000") == 0 ? FOUND_LINK
                           : strcmp(type, "blob") == 0 ? FOUND_PLAIN
                                                       : FOUND_OTHER;
    return found_add(found, tab + 1, kind, bytes, read_object, git, error);
}

static enum status look_at_all(struct found *found, struct git *git, struct error *error) {
    static const char *const words[] = {"ls-tree", "-r", "-l", "-z", "HEAD", NULL};
    size_t size, seen = 0;
    TRY(ask_git(git, words, MOST_LISTING, &git->listing, &size, error));
    for (char *line = git->listing; line < git->listing + size; line += strlen(line) + 1) {
        if (++seen > MOST_FILES) {
            return error_set(error, STATUS_INVALID_ARGUMENT, "it has more than %d files",
                             MOST_FILES);
        }
        TRY(look_at(found, git, line, error));
    }
    return STATUS_OK;
}

/* Nothing in the folder may be a link. */
static enum status check_links(const char *repository, const char *name, struct error *error) {
    char path[GIT_PATH + 100], *paths[] = {path, NULL};
    enum status status = STATUS_OK;
    size_t seen = 0;
    snprintf(path, sizeof path, "%s/%s", repository, name);
    FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (walk == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    for (FTSENT *entry; status == STATUS_OK && (entry = fts_read(walk)) != NULL;) {
        bool inside =
            entry->fts_info == FTS_D || entry->fts_info == FTS_DP || entry->fts_info == FTS_F;
        if (!inside || ++seen > MOST_OBJECTS || entry->fts_level > MOST_DEPTH) {
            status = error_set(error, STATUS_INVALID_ARGUMENT,
                               inside ? "the git repository has too many files in %s"
                                      : "%s of the git repository has a link, or what cannot be "
                                        "read",
                               name);
        }
    }
    fts_close(walk);
    return status;
}

/* What would lead out of the repository: links, objects of others, a folder elsewhere. */
static enum status check_inside(const char *repository, struct error *error) {
    static const char *const outside[] = {"objects/info/alternates", "commondir", "gitdir"};
    char path[GIT_PATH + 100];
    struct stat seen;
    if (lstat(repository, &seen) != 0 || !S_ISDIR(seen.st_mode)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         ".git is no folder, but leads to one elsewhere: a clone is wanted");
    }
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        snprintf(path, sizeof path, "%s/%s", repository, outside[i]);
        if (lstat(path, &seen) == 0) {
            return error_set(error, STATUS_INVALID_ARGUMENT,
                             "the git repository has parts elsewhere (%s)", outside[i]);
        }
    }
    TRY(check_links(repository, "objects", error));
    return check_links(repository, "refs", error);
}

static enum status link_part(const char *repository, const char *scratch, const char *name,
                             struct error *error) {
    char from[GIT_PATH + 100], to[GIT_PATH + 100];
    snprintf(from, sizeof from, "%s/%s", repository, name);
    snprintf(to, sizeof to, "%s/%s", scratch, name);
    return symlink(from, to) == 0 ? STATUS_OK
                                  : error_set(error, STATUS_IO, "%.400s: %s", to, strerror(errno));
}

static enum status copy_part(const char *repository, const char *scratch, const char *name,
                             struct error *error) {
    char from[GIT_PATH + 100], to[GIT_PATH + 100];
    struct stat seen;
    snprintf(from, sizeof from, "%s/%s", repository, name);
    snprintf(to, sizeof to, "%s/%s", scratch, name);
    if (lstat(from, &seen) != 0) {
        return STATUS_OK; /* it may have none */
    }
    if (!S_ISREG(seen.st_mode) || seen.st_size > MOST_LISTING) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "%s of the git repository is no plain file, or is too large", name);
    }
    return copy_file(from, to, error);
}

static enum status make_view(const char *repository, const char *scratch, struct error *error) {
    static const char config[] = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n";
    char path[GIT_PATH + 100];
    if (mkdir(scratch, 0700) != 0) {
        return error_set(error, STATUS_IO, "%.400s: %s", scratch, strerror(errno));
    }
    snprintf(path, sizeof path, "%s/config", scratch);
    TRY(file_write(path, config, strlen(config), error));
    TRY(copy_part(repository, scratch, "HEAD", error));
    TRY(copy_part(repository, scratch, "packed-refs", error));
    TRY(link_part(repository, scratch, "refs", error));
    return link_part(repository, scratch, "objects", error);
}

enum status intake_git(struct found *found, const char *repository, const char *scratch,
                       struct error *error) {
    struct git git = {.folder = scratch};
    if (strlen(repository) > GIT_PATH || strlen(scratch) > GIT_PATH) {
        return error_set(error, STATUS_TOO_LONG, "the repository's path is too long");
    }
    TRY(check_inside(repository, error));
    folder_remove(scratch);
    enum status status = make_view(repository, scratch, error);
    if (status == STATUS_OK) {
        status = look_at_all(found, &git, error);
    }
    free(git.listing);
    folder_remove(scratch);
    return status;
}

static bool is_folder(const char *folder, const char *name) {
    char path[TASK_PATH];
    struct stat seen;
    snprintf(path, sizeof path, "%.3900s/%s", folder, name);
    return lstat(path, &seen) == 0 && S_ISDIR(seen.st_mode);
}

bool intake_is_git(const char *path, char *git, size_t size) {
    char inner[TASK_PATH], head[TASK_PATH];
    struct stat seen;
    snprintf(inner, sizeof inner, "%.3900s/.git", path);
    if (lstat(inner, &seen) == 0) {
        snprintf(git, size, "%s", inner);
        return true;
    }
    snprintf(git, size, "%s", path);
    snprintf(head, sizeof head, "%.3900s/HEAD", path);
    return is_folder(path, "objects") && is_folder(path, "refs") && path_exists(head);
}
