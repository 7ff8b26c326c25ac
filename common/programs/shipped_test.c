/**
 * @file shipped_test.c
 * @brief The order in which shipped_find() searches folders; the test makes its own.
 */
#include "common/programs/shipped.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/testing/testing.h"

enum { ROOM = 1024 };

/* Makes the test's folder NAME, with datasets/a_model in it. */
static void make_root(const char *name, bool with_model, char root[ROOM]) {
    char path[2 * ROOM];
    mkdir(test_temporary_path(name, root, ROOM), 0755);
    if (with_model) {
        snprintf(path, sizeof path, "%s/datasets", root);
        mkdir(path, 0755);
        snprintf(path, sizeof path, "%s/datasets/a_model", root);
        EXPECT_INT_EQ(0, mkdir(path, 0755));
    }
}

static void clear_environment(void) {
    unsetenv("BUILD_WORKSPACE_DIRECTORY");
    unsetenv("RUNFILES_DIR");
}

static void expect_found(const char *root) {
    char path[FOLDER_PATH_BYTES], want[2 * ROOM];
    snprintf(want, sizeof want, "%s/datasets/a_model", root);
    EXPECT_OK(shipped_find("a_model", "--checkpoint", "do this", path, NULL));
    EXPECT_STR_EQ(want, path);
}

static void expect_absent(const char *name) {
    char path[FOLDER_PATH_BYTES];
    struct error error = {0};
    EXPECT_STATUS(STATUS_NOT_FOUND, shipped_find(name, "CHECKPOINT", "do this", path, &error));
    EXPECT_TRUE(strncmp(error.message, "no CHECKPOINT given, and datasets/", 34) == 0);
    EXPECT_TRUE(strstr(error.message, " is not there: do this") != NULL);
    EXPECT_STR_EQ("", path);
}

C_TEST(shipped, the_workspace_is_before_the_runfiles) {
    char workspace[ROOM], runfiles[ROOM], inner[2 * ROOM], other[ROOM];
    make_root("workspace", true, workspace);
    make_root("runfiles", false, runfiles);
    snprintf(inner, sizeof inner, "runfiles/warpbook");
    make_root(inner, true, other);
    clear_environment();
    expect_absent("a_model");
    setenv("RUNFILES_DIR", runfiles, 1);
    expect_found(other);
    setenv("BUILD_WORKSPACE_DIRECTORY", workspace, 1);
    expect_found(workspace);
    expect_absent("another_model");
    setenv("BUILD_WORKSPACE_DIRECTORY", "workspace", 1); /* not an absolute path: not used */
    expect_found(other);
    clear_environment();
}

C_TEST(shipped, folders_above_count_within_a_workspace) {
    char root[ROOM], below[ROOM], file[2 * ROOM], before[ROOM];
    clear_environment();
    ASSERT_TRUE(getcwd(before, sizeof before) != NULL);
    make_root("course", true, root);
    make_root("course/labs", false, below);
    ASSERT_TRUE(chdir(root) == 0);
    expect_found(root);
    ASSERT_TRUE(chdir(below) == 0);
    expect_absent("a_model"); /* without a file WORKSPACE, folders above are not searched */
    snprintf(file, sizeof file, "%s/WORKSPACE", root);
    ASSERT_OK(file_write(file, "", 0, NULL));
    expect_found(root);
    expect_absent("another_model");
    ASSERT_TRUE(chdir(before) == 0);
}

C_TEST(shipped, a_file_is_found_as_a_folder_is) {
    char root[ROOM], file[2 * ROOM], path[FOLDER_PATH_BYTES];
    make_root("files", true, root);
    snprintf(file, sizeof file, "%s/datasets/a_file", root);
    ASSERT_OK(file_write(file, "x", 1, NULL));
    setenv("BUILD_WORKSPACE_DIRECTORY", root, 1);
    EXPECT_OK(shipped_find("a_file", "--data", "do this", path, NULL));
    EXPECT_STR_EQ(file, path);
    clear_environment();
}
