#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/testing/testing.h"
#include "grader/sandbox/output.h"
#include "grader/sandbox/processes.h"
#include "grader/sandbox/temporary_folder.h"

/* Adds `count` bytes, each the low byte of its place, in pieces of `piece`. */
static struct sandbox_output *fill(size_t count, size_t piece) {
    struct sandbox_output *output = calloc(1, sizeof *output);
    char *bytes = malloc(count + 1);
    if (output == NULL || bytes == NULL) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (char)(i % 251);
    }
    for (size_t done = 0; done < count; done += piece) {
        output_add(output, bytes + done, piece < count - done ? piece : count - done);
    }
    output_end(output);
    free(bytes);
    return output;
}

/* Both ends must be what was written, whatever the pieces. */
static void check(size_t count, size_t piece) {
    struct sandbox_output *output = fill(count, piece);
    size_t kept = count < SANDBOX_KEPT ? count : SANDBOX_KEPT;
    size_t half = count <= SANDBOX_KEPT ? kept : SANDBOX_KEPT / 2;
    EXPECT_INT_EQ(count, output->total);
    EXPECT_INT_EQ(count - kept, output->missed);
    EXPECT_TRUE(output->size < sizeof output->text && output->text[output->size] == '\0');
    size_t wrong = 0;
    for (size_t i = 0; i < half; i++) {
        size_t from_end = count - 1 - i;
        wrong += output->text[i] != (char)(i % 251);
        wrong += output->text[output->size - 1 - i] != (char)(from_end % 251);
    }
    EXPECT_INT_EQ(0, wrong);
    free(output);
}

C_TEST(output, keeps_both_ends) {
    static const size_t counts[] = {0,
                                    1,
                                    SANDBOX_KEPT / 2 - 1,
                                    SANDBOX_KEPT / 2,
                                    SANDBOX_KEPT / 2 + 1,
                                    SANDBOX_KEPT - 1,
                                    SANDBOX_KEPT,
                                    SANDBOX_KEPT + 1,
                                    3 * SANDBOX_KEPT / 2,
                                    5 * SANDBOX_KEPT + 77};
    static const size_t pieces[] = {1, 7, 4096, 65536, 1000000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (size_t j = 0; j < sizeof pieces / sizeof *pieces; j++) {
            check(counts[i], pieces[j]);
        }
    }
}

C_TEST(output, says_what_is_left_out) {
    struct sandbox_output *output = fill(SANDBOX_KEPT + 5, 100);
    EXPECT_TRUE(strncmp(output->text + SANDBOX_KEPT / 2, "\n[5 bytes left out]\n", 20) == 0);
    free(output);
}

static void write_file(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    EXPECT_TRUE(fd >= 0 && write(fd, "abc", 3) == 3);
    close(fd);
}

C_TEST(folder, is_removed_without_following_links) {
    char path[4096], outside[4096], file[4200], link[4200];
    struct error error = {0};
    struct stat status;
    mkdir(test_temporary_path("outside", outside, sizeof outside), 0700);
    snprintf(file, sizeof file, "%s/kept", outside);
    write_file(file);
    ASSERT_OK(folder_create(NULL, path, sizeof path, &error));
    EXPECT_TRUE(stat(path, &status) == 0 && (status.st_mode & 0777) == 0700);
    snprintf(link, sizeof link, "%s/link", path);
    EXPECT_INT_EQ(0, symlink(outside, link));
    snprintf(link, sizeof link, "%s/closed", path);
    EXPECT_INT_EQ(0, mkdir(link, 0));
    EXPECT_TRUE(folder_remove(path));
    EXPECT_TRUE(stat(path, &status) != 0);
    EXPECT_TRUE(stat(file, &status) == 0 && status.st_size == 3);
    EXPECT_TRUE(!folder_remove(path));
}

C_TEST(folder, is_counted) {
    char path[4096], file[4200];
    struct folder_use use;
    struct error error = {0};
    ASSERT_OK(folder_create(NULL, path, sizeof path, &error));
    EXPECT_TRUE(folder_use(path, 10, &use) && use.entries == 0 && use.bytes == 0);
    for (int i = 0; i < 5; i++) {
        snprintf(file, sizeof file, "%s/%d", path, i);
        write_file(file);
    }
    EXPECT_TRUE(folder_use(path, 10, &use));
    EXPECT_INT_EQ(5, use.entries);
    EXPECT_TRUE(folder_use(path, 3, &use));
    EXPECT_INT_EQ(3, use.entries);
    EXPECT_TRUE(folder_remove(path));
    EXPECT_TRUE(!folder_use(path, 3, &use));
}

C_TEST(folder, says_where_it_cannot_be) {
    char path[4096];
    struct error error = {0};
    EXPECT_STATUS(STATUS_IO, folder_create("/proc/nowhere/at/all", path, sizeof path, &error));
    EXPECT_STR_EQ("/proc/nowhere/at/all: No such file or directory", error.message);
    EXPECT_STATUS(STATUS_TOO_LONG, folder_create("/tmp", path, 8, &error));
}

/* A stopped process is told from one that was killed, whether that has run since or not. */
C_TEST(processes, tells_who_is_dying) {
    EXPECT_TRUE(!processes_dying(getpid()));
    pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        _exit(0);
    }
    EXPECT_TRUE(child > 0 && waitpid(child, NULL, WUNTRACED) == child);
    EXPECT_TRUE(!processes_dying(child));
    kill(child, SIGKILL);
    EXPECT_TRUE(processes_dying(child));
    siginfo_t info;
    EXPECT_TRUE(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) == 0);
    EXPECT_TRUE(processes_dying(child));
    EXPECT_TRUE(waitpid(child, NULL, 0) == child);
    EXPECT_TRUE(processes_dying(child));
}

C_TEST(processes, counts_itself_and_what_it_started) {
    struct processes_use own = {0}, below = {0};
    EXPECT_TRUE(processes_use_of(getpid(), &own));
    EXPECT_TRUE(own.processes == 1 && own.threads >= 1);
    EXPECT_TRUE(own.resident_bytes > 100000 && own.address_bytes > own.resident_bytes);
    EXPECT_TRUE(processes_tasks_of_user() >= own.threads);
    pid_t child = fork();
    if (child == 0) {
        if (fork() >= 0) {
            pause();
        }
        _exit(1);
    }
    do {
        usleep(1000);
        below = (struct processes_use){0};
    } while (processes_use_below(getpid(), &below) && below.processes < 2);
    EXPECT_INT_EQ(2, below.processes);
    EXPECT_INT_EQ(2, below.threads);
    EXPECT_INT_EQ(2, processes_kill_below(getpid()));
    EXPECT_TRUE(waitpid(child, NULL, 0) == child);
}
