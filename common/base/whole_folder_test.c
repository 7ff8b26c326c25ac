#include "common/base/whole_folder.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/testing/testing.h"

static char *in_root(const char *name, char path[FOLDER_PATH_BYTES]) {
    char root[1024];
    test_temporary_path("root", root, sizeof root);
    snprintf(path, FOLDER_PATH_BYTES, "%s/%s", root, name);
    return path;
}

static void put(const char *name, const char *content) {
    char path[FOLDER_PATH_BYTES];
    EXPECT_OK(file_write(in_root(name, path), content, strlen(content), NULL));
}

static bool there(const char *name) {
    char path[FOLDER_PATH_BYTES];
    return path_exists(in_root(name, path));
}

static void make(const char *name) {
    char path[FOLDER_PATH_BYTES];
    EXPECT_OK(whole_folder_make(in_root(name, path), NULL));
}

static bool is_best(const char *name) {
    return strcmp(name, "best") == 0;
}

static enum status recover(struct error *error) {
    char root[FOLDER_PATH_BYTES];
    in_root("", root);
    return whole_folder_recover(root, is_best, error);
}

C_TEST(whole_folder, appears_when_it_is_finished_and_replaces_the_one_before) {
    char path[FOLDER_PATH_BYTES], partial[FOLDER_PATH_BYTES];
    make("a/b");
    in_root("a/b/best", path);
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(whole_folder_begin(path, partial, NULL));
        put(i == 0 ? "a/b/best.partial/first" : "a/b/best.partial/second", "x");
        EXPECT_TRUE(there("a/b/best") == (i == 1));
        ASSERT_OK(whole_folder_finish(path, NULL));
        EXPECT_TRUE(!there("a/b/best.partial") && !there("a/b/best.old"));
    }
    EXPECT_TRUE(there("a/b/best/second") && !there("a/b/best/first"));
    EXPECT_OK(whole_folder_begin(path, partial, NULL));
    put("a/b/best.partial/third", "x");
    whole_folder_abandon(path);
    EXPECT_TRUE(!there("a/b/best.partial") && there("a/b/best/second"));
    EXPECT_OK(whole_folder_remove(path, NULL));
    EXPECT_TRUE(!there("a/b/best"));
    EXPECT_OK(whole_folder_remove(path, NULL));
}

C_TEST(whole_folder, recovers_from_every_moment_of_a_kill) {
    make("best"); /* while the new one is written */
    put("best/weights", "old");
    make("best.partial");
    put("best.partial/weights", "new");
    make("other.partial");
    put("file.partial", "somebody's");
    EXPECT_OK(recover(NULL));
    EXPECT_TRUE(there("best/weights") && !there("best.partial"));
    EXPECT_TRUE(there("other.partial") && there("file.partial"));

    char from[FOLDER_PATH_BYTES], to[FOLDER_PATH_BYTES]; /* between the renames */
    EXPECT_INT_EQ(0, rename(in_root("best", from), in_root("best.old", to)));
    make("best.partial");
    EXPECT_OK(recover(NULL));
    EXPECT_TRUE(there("best/weights") && !there("best.partial") && !there("best.old"));

    make("best.old"); /* while the one before is removed */
    EXPECT_OK(recover(NULL));
    EXPECT_TRUE(there("best/weights") && !there("best.old"));
}

C_TEST(whole_folder, says_what_cannot_be_done) {
    char path[FOLDER_PATH_BYTES], partial[FOLDER_PATH_BYTES];
    make("");
    put("file", "x");
    EXPECT_ERROR_CONTAINS(STATUS_IO, "cannot make the folder: Not a directory",
                          whole_folder_make(in_root("file/below", path), &error));
    EXPECT_ERROR_CONTAINS(STATUS_IO, "best.partial: cannot make the folder",
                          whole_folder_begin(in_root("absent/best", path), partial, &error));
    make("best.partial/inner"); /* not a folder of files: somebody's, which stays */
    EXPECT_ERROR_CONTAINS(STATUS_IO, "inner: cannot remove", recover(&error));
    EXPECT_TRUE(there("best.partial/inner"));
    EXPECT_INT_EQ(0, rmdir(in_root("best.partial/inner", path)));
}
