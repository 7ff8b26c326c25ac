#include "common/base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/testing/testing.h"

enum { PATH_SIZE = 512 };

/* Makes an empty folder for one test. */
static void make_folder(const char *name, char *path, size_t size) {
    test_temporary_path(name, path, size);
    EXPECT_INT_EQ(0, mkdir(path, 0777));
}

static size_t count_entries(const char *folder) {
    DIR *stream = opendir(folder);
    EXPECT_TRUE(stream != NULL);
    size_t count = 0;
    while (stream != NULL && readdir(stream) != NULL) {
        count++;
    }
    if (stream != NULL) {
        closedir(stream);
    }
    return count - 2; /* . and .. */
}

static void expect_content(const char *path, const char *want) {
    char *text = NULL;
    size_t size = 0;
    ASSERT_OK(file_read(path, 1 << 20, &text, &size, NULL));
    EXPECT_INT_EQ(strlen(want), size);
    EXPECT_STR_EQ(want, text);
    free(text);
}

C_TEST(file, what_is_written_is_read_back) {
    char path[512];
    test_temporary_path("round_trip", path, sizeof path);
    ASSERT_OK(file_write(path, "a\0b", 3, NULL));

    struct file_view view;
    ASSERT_OK(file_view_open(&view, path, NULL));
    EXPECT_INT_EQ(3, view.size);
    EXPECT_INT_EQ(0, memcmp(view.data, "a\0b", 3));
    file_view_close(&view);
    file_view_close(&view);
    EXPECT_TRUE(view.data == NULL);

    char *text = NULL;
    size_t size = 0;
    ASSERT_OK(file_read(path, 3, &text, &size, NULL));
    EXPECT_INT_EQ(3, size);
    EXPECT_INT_EQ(0, memcmp(text, "a\0b", 4)); /* with the NUL after it */
    free(text);
}

C_TEST(file, a_missing_file_is_not_found_by_name) {
    struct error error = {0};
    struct file_view view;
    EXPECT_STATUS(STATUS_NOT_FOUND, file_view_open(&view, "no/such.bin", &error));
    EXPECT_STR_EQ("no/such.bin: cannot open: No such file or directory", error.message);
    EXPECT_TRUE(view.data == NULL && view.size == 0);

    char *text = NULL;
    size_t size = 0;
    error = (struct error){0};
    EXPECT_ERROR(STATUS_NOT_FOUND, "no/such.bin: cannot open: No such file or directory",
                 file_read("no/such.bin", 10, &text, &size, &error));
    EXPECT_TRUE(text == NULL && size == 0);
}

C_TEST(file, a_folder_or_device_is_refused) {
    char folder[512];
    make_folder("a_folder", folder, sizeof folder);
    struct error error = {0};
    struct file_view view;
    EXPECT_ERROR_CONTAINS(STATUS_IO, "a_folder: not a regular file",
                          file_view_open(&view, folder, &error));
    EXPECT_ERROR(STATUS_IO, "/dev/zero: not a regular file",
                 file_view_open(&view, "/dev/zero", &error));

    char *text = NULL;
    size_t size = 0;
    EXPECT_STATUS(STATUS_IO, file_read(folder, 10, &text, &size, &error));
    EXPECT_TRUE(text == NULL);
}

C_TEST(file, an_empty_file_is_fine) {
    char path[512];
    test_temporary_path("empty", path, sizeof path);
    ASSERT_OK(file_write(path, "", 0, NULL));
    struct file_view view;
    ASSERT_OK(file_view_open(&view, path, NULL));
    EXPECT_TRUE(view.data == NULL && view.size == 0);
    file_view_close(&view);
    expect_content(path, "");
}

C_TEST(file, a_limit_is_kept_to_the_byte) {
    char path[512];
    struct error error = {0};
    char *text = NULL;
    size_t size = 0;
    test_temporary_path("limit", path, sizeof path);
    ASSERT_OK(file_write(path, "12345", 5, &error));
    EXPECT_ERROR_CONTAINS(STATUS_TOO_LONG, "limit: longer than 4 bytes",
                          file_read(path, 4, &text, &size, &error));
    EXPECT_TRUE(text == NULL && size == 0);
    EXPECT_STATUS(STATUS_OK, file_read("/dev/null", 4, &text, &size, &error));
    free(text);
    EXPECT_ERROR(STATUS_TOO_LONG, "/dev/zero: never ends; give a file",
                 file_read("/dev/zero", (size_t)1 << 40, &text, &size, &error));
    EXPECT_TRUE(text == NULL && size == 0);
}

C_TEST(file, a_new_file_replaces_the_old_one_and_leaves_nothing_beside_it) {
    char folder[480];
    char path[512];
    make_folder("replace", folder, sizeof folder);
    snprintf(path, sizeof path, "%s/file", folder);
    ASSERT_OK(file_write(path, "old content", 11, NULL));
    ASSERT_OK(file_write(path, "new", 3, NULL));
    expect_content(path, "new");
    EXPECT_INT_EQ(1, count_entries(folder));
}

/* Simulates a full disk: writes 100 kB while no file may grow past 4 kB. */
static enum status write_on_a_full_disk(const char *path, struct error *error) {
    struct rlimit old;
    EXPECT_INT_EQ(0, getrlimit(RLIMIT_FSIZE, &old));
    struct rlimit small = {.rlim_cur = 4096, .rlim_max = old.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    EXPECT_INT_EQ(0, setrlimit(RLIMIT_FSIZE, &small));
    static const char data[100000];
    enum status status = file_write(path, data, sizeof data, error);
    EXPECT_INT_EQ(0, setrlimit(RLIMIT_FSIZE, &old));
    signal(SIGXFSZ, handler);
    return status;
}

C_TEST(file, a_write_that_fails_leaves_the_old_file_and_nothing_beside_it) {
    char folder[480];
    char path[512];
    make_folder("full", folder, sizeof folder);
    snprintf(path, sizeof path, "%s/file", folder);
    ASSERT_OK(file_write(path, "old content", 11, NULL));
    EXPECT_ERROR_CONTAINS(STATUS_IO, "full/file: cannot write: File too large",
                          write_on_a_full_disk(path, &error));
    expect_content(path, "old content");
    EXPECT_INT_EQ(1, count_entries(folder));
}

C_TEST(file, a_write_into_nowhere_or_over_a_folder_fails) {
    char folder[480];
    char path[512];
    make_folder("nowhere", folder, sizeof folder);
    snprintf(path, sizeof path, "%s/missing/file", folder);
    EXPECT_ERROR_CONTAINS(STATUS_NOT_FOUND, "nowhere/missing/file: cannot create: ",
                          file_write(path, "x", 1, &error));

    snprintf(path, sizeof path, "%s/inner", folder);
    ASSERT_TRUE(mkdir(path, 0777) == 0);
    EXPECT_ERROR_CONTAINS(STATUS_IO, "nowhere/inner: cannot write: Is a directory",
                          file_write(path, "x", 1, &error));
    EXPECT_INT_EQ(1, count_entries(folder));
}

C_TEST(file, a_minus_reads_standard_input) {
    int ends[2];
    ASSERT_TRUE(pipe(ends) == 0);
    int saved = dup(STDIN_FILENO);
    dup2(ends[0], STDIN_FILENO);
    EXPECT_INT_EQ(5, write(ends[1], "hello", 5));
    close(ends[1]);
    char *text = NULL;
    size_t size = 0;
    EXPECT_OK(file_read("-", 100, &text, &size, NULL));
    EXPECT_STR_EQ("hello", text);
    free(text);
    close(ends[0]);
    if (saved >= 0) {
        dup2(saved, STDIN_FILENO);
        close(saved);
    }
}

/* ---- What file_write() writes to ---- */

static mode_t mode_of(const char *path) {
    struct stat found;
    EXPECT_INT_EQ(0, lstat(path, &found));
    return found.st_mode;
}

C_TEST(file_write, a_new_file_follows_the_umask) {
    char path[PATH_SIZE];
    mode_t old = umask(0027);
    EXPECT_OK(file_write(test_temporary_path("masked", path, sizeof path), "x", 1, NULL));
    umask(old);
    EXPECT_INT_EQ(0640, mode_of(path) & 07777);
}

C_TEST(file_write, an_old_file_keeps_its_permissions) {
    char path[PATH_SIZE];
    test_temporary_path("private", path, sizeof path);
    ASSERT_OK(file_write(path, "old", 3, NULL));
    ASSERT_TRUE(chmod(path, 0600) == 0);
    EXPECT_OK(file_write(path, "new", 3, NULL));
    EXPECT_INT_EQ(0600, mode_of(path) & 07777);
    expect_content(path, "new");
}

C_TEST(file_write, a_link_stays_and_what_it_names_is_written) {
    char file[PATH_SIZE], link[PATH_SIZE], second[PATH_SIZE];
    test_temporary_path("linked", file, sizeof file);
    test_temporary_path("link", link, sizeof link);
    test_temporary_path("second_link", second, sizeof second);
    ASSERT_OK(file_write(file, "old", 3, NULL));
    ASSERT_TRUE(symlink("linked", link) == 0 && symlink(link, second) == 0);
    EXPECT_OK(file_check_writable(second, NULL));
    EXPECT_OK(file_write(second, "new", 3, NULL));
    EXPECT_TRUE(S_ISLNK(mode_of(link)) && S_ISLNK(mode_of(second)));
    expect_content(file, "new");
}

C_TEST(file_write, a_link_to_nothing_yet_makes_the_file) {
    char file[PATH_SIZE], link[PATH_SIZE];
    test_temporary_path("not_yet", file, sizeof file);
    test_temporary_path("early_link", link, sizeof link);
    ASSERT_TRUE(symlink("not_yet", link) == 0);
    EXPECT_OK(file_write(link, "new", 3, NULL));
    EXPECT_TRUE(S_ISLNK(mode_of(link)) && S_ISREG(mode_of(file)));
    expect_content(file, "new");
}

C_TEST(file_write, links_in_a_ring_are_refused) {
    char link[PATH_SIZE];
    struct error error = {0};
    test_temporary_path("ring", link, sizeof link);
    ASSERT_TRUE(symlink("ring", link) == 0);
    EXPECT_STATUS(STATUS_IO, file_write(link, "x", 1, &error));
    EXPECT_TRUE(strstr(error.message, "Too many levels of symbolic links") != NULL);
    EXPECT_STATUS(STATUS_IO, file_check_writable(link, NULL));
}

C_TEST(file_write, a_device_stays_one) {
    EXPECT_OK(file_check_writable("/dev/null", NULL));
    EXPECT_OK(file_write("/dev/null", "gone", 4, NULL));
    EXPECT_TRUE(S_ISCHR(mode_of("/dev/null")));
    struct error error = {0};
    EXPECT_STATUS(STATUS_IO, file_write("/dev/full", "too much", 8, &error));
    EXPECT_STR_EQ("/dev/full: cannot write: No space left on device", error.message);
    EXPECT_TRUE(S_ISCHR(mode_of("/dev/full")));
}

/* The other end of a pipe. */
static void *read_pipe(void *path) {
    static char text[16];
    FILE *file = fopen(path, "r");
    size_t count = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    text[count] = '\0';
    if (file != NULL) {
        fclose(file);
    }
    return text;
}

C_TEST(file_write, a_named_pipe_is_written_into) {
    char path[PATH_SIZE];
    pthread_t reader;
    void *text = NULL;
    test_temporary_path("pipe", path, sizeof path);
    ASSERT_TRUE(mkfifo(path, 0600) == 0);
    ASSERT_TRUE(pthread_create(&reader, NULL, read_pipe, path) == 0);
    EXPECT_OK(file_write(path, "through", 7, NULL));
    pthread_join(reader, &text);
    EXPECT_STR_EQ("through", text);
    EXPECT_TRUE(S_ISFIFO(mode_of(path)));
}

C_TEST(file_write, a_descriptor_is_written_to_by_its_number) {
    char file[PATH_SIZE], path[64];
    test_temporary_path("descriptor", file, sizeof file);
    int descriptor = open(file, O_WRONLY | O_CREAT, 0600);
    ASSERT_TRUE(descriptor >= 0);
    snprintf(path, sizeof path, "/dev/fd/%d", descriptor);
    EXPECT_OK(file_check_writable(path, NULL));
    EXPECT_OK(file_write(path, "one ", 4, NULL));
    EXPECT_OK(file_write(path, "two", 3, NULL)); /* behind it, as it is one open file */
    close(descriptor);
    expect_content(file, "one two");
    EXPECT_STATUS(STATUS_IO, file_write(path, "x", 1, NULL));
    EXPECT_STATUS(STATUS_IO, file_check_writable(path, NULL));
}

C_TEST(file_write, what_cannot_be_written_is_known_before) {
    char folder[PATH_SIZE], path[PATH_SIZE + 16];
    struct error error = {0};
    test_temporary_path("folder", folder, sizeof folder);
    ASSERT_TRUE(mkdir(folder, 0777) == 0);
    EXPECT_STATUS(STATUS_IO, file_check_writable(folder, &error));
    EXPECT_TRUE(strstr(error.message, "folder: cannot write: Is a directory") != NULL);
    EXPECT_STATUS(STATUS_NOT_FOUND, file_check_writable("", NULL));
    snprintf(path, sizeof path, "%s/missing/file", folder);
    EXPECT_STATUS(STATUS_NOT_FOUND, file_check_writable(path, NULL));
    snprintf(path, sizeof path, "%s/file", folder);
    EXPECT_OK(file_check_writable(path, NULL));
    EXPECT_TRUE(access(path, F_OK) != 0);
    EXPECT_OK(file_write(path, "x", 1, NULL));
    EXPECT_OK(file_check_writable(path, NULL));
}

/* ---- Appending ---- */

static enum status append(const char *path, const char *text, struct error *error) {
    int descriptor;
    TRY(file_open_append(path, &descriptor, error));
    EXPECT_INT_EQ(strlen(text), write(descriptor, text, strlen(text)));
    close(descriptor);
    return STATUS_OK;
}

C_TEST(file_open_append, appends_to_a_file_and_through_a_link) {
    char file[PATH_SIZE], link[PATH_SIZE];
    test_temporary_path("appended", file, sizeof file);
    test_temporary_path("appended_link", link, sizeof link);
    ASSERT_TRUE(symlink("appended", link) == 0);
    mode_t old = umask(0027);
    EXPECT_OK(append(link, "one ", NULL));
    umask(old);
    EXPECT_INT_EQ(0640, mode_of(file) & 07777);
    EXPECT_OK(append(file, "two", NULL));
    EXPECT_TRUE(S_ISLNK(mode_of(link)) && file_is_regular(link));
    expect_content(file, "one two");
}

C_TEST(file_open_append, a_device_or_descriptor_is_written_to) {
    char file[PATH_SIZE], path[32];
    EXPECT_OK(append("/dev/null", "gone", NULL));
    EXPECT_TRUE(S_ISCHR(mode_of("/dev/null")) && !file_is_regular("/dev/null"));
    test_temporary_path("by_number", file, sizeof file);
    ASSERT_OK(file_write(file, "0 ", 2, NULL));
    int descriptor = open(file, O_WRONLY | O_APPEND);
    snprintf(path, sizeof path, "/dev/fd/%d", descriptor);
    EXPECT_TRUE(!file_is_regular(path));
    EXPECT_OK(append(path, "1 ", NULL));
    EXPECT_OK(append(path, "2", NULL));
    close(descriptor);
    expect_content(file, "0 1 2");
}

C_TEST(file_open_append, what_cannot_be_written_is_refused) {
    char path[PATH_SIZE];
    int descriptor = open("/dev/null", O_RDONLY);
    snprintf(path, sizeof path, "/dev/fd/%d", descriptor);
    EXPECT_STATUS(STATUS_IO, file_check_writable(path, NULL)); /* open, but for reading */
    EXPECT_STATUS(STATUS_IO, append(path, "x", NULL));
    close(descriptor);
    test_temporary_path("no_such/file", path, sizeof path);
    EXPECT_ERROR_CONTAINS(STATUS_NOT_FOUND, "no_such/file: cannot append: No such file",
                          append(path, "x", &error));
}
