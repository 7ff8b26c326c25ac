#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/testing/testing.h"

enum { PATH_SIZE = 512 };

static void expect_content(const char *path, const char *want) {
    struct file_view view;
    ASSERT_OK(file_view_open(&view, path, NULL));
    EXPECT_INT_EQ(strlen(want), view.size);
    EXPECT_TRUE(view.size == 0 || memcmp(view.data, want, view.size) == 0);
    file_view_close(&view);
}

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
