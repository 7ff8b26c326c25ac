/* What is taken of a submission, and the line for one that is refused. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/testing/testing.h"
#include "grader/class/intake/intake.h"
#include "grader/class/intake/zip_testing.h"
#include "grader/sandbox/temporary_folder.h"

enum { LAB_04 = 3, PATH_SIZE = 1000 };

static const char source[] = "// a kernel\n";
static const bool chosen[LAB_COUNT] = {[LAB_04] = true};

/* A folder of submissions, and an output folder beside it. */
struct place {
    char folder[PATH_SIZE], output[PATH_SIZE];
};

static void make_folder(const char *folder, const char *name) {
    char path[2 * PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    ASSERT_TRUE(mkdir(path, 0777) == 0);
}

static void open_place(struct place *p) {
    char root[PATH_SIZE];
    const char *folder = getenv("TEST_TMPDIR");
    snprintf(root, sizeof root, "%.900s/intake.XXXXXX", folder != NULL ? folder : "/tmp");
    ASSERT_TRUE(mkdtemp(root) != NULL);
    make_folder(root, "in");
    make_folder(root, "out");
    snprintf(p->folder, sizeof p->folder, "%.990s/in", root);
    snprintf(p->output, sizeof p->output, "%.990s/out", root);
    make_folder(p->output, "tasks");
}

static void close_place(struct place *p) {
    *strrchr(p->folder, '/') = '\0';
    EXPECT_TRUE(folder_remove(p->folder));
}

static void put(const struct place *p, const char *name, const void *data, size_t size) {
    char path[2 * PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", p->folder, name);
    ASSERT_OK(file_write(path, data, size, NULL));
}

static void put_zip(const struct place *p, const char *name, const struct zip_entry *entries,
                    size_t count) {
    unsigned char *data;
    size_t size;
    zip_make(entries, count, &data, &size);
    put(p, name, data, size);
    free(data);
}

/* Takes the folder's first entry in. */
static void take(const struct place *p, struct task *task) {
    struct submissions all;
    *task = (struct task){.id = 1};
    ASSERT_OK(submissions_list(&all, p->folder, chosen, NULL));
    ASSERT_OK(intake_take(task, &all.all[0], p->folder, p->output, chosen, NULL));
    submissions_free(&all);
}

/* @param line part of why it is refused, or NULL: its file is taken as it is */
static void expect(const struct place *p, const char *line) {
    struct task task;
    take(p, &task);
    if (line != NULL) {
        EXPECT_STR_CONTAINS(line, task.refused);
        EXPECT_TRUE(!task.has[LAB_04] && strpbrk(task.refused, "\n\x1b") == NULL);
        return;
    }
    char path[2 * PATH_SIZE], *text = NULL;
    size_t size = 0;
    EXPECT_STR_EQ("", task.refused);
    snprintf(path, sizeof path, "%s/tasks/000001/files/labs/04_sgemm/sgemm.cu", p->output);
    ASSERT_OK(file_read(path, MOST_SOURCE, &text, &size, NULL));
    EXPECT_STR_EQ(source, text);
    free(text);
}

/* One zip file of these entries. */
static void expect_zip(const struct zip_entry *entries, size_t count, const char *line) {
    struct place p;
    open_place(&p);
    put_zip(&p, "anna.zip", entries, count);
    expect(&p, line);
    close_place(&p);
}

static struct zip_entry entry(const char *name) {
    return (struct zip_entry){.name = name, .content = source, .size = sizeof source - 1};
}

#ifndef WARPBOOK_NO_MINIZIP

C_TEST(zip, files_that_count_are_taken) {
    struct zip_entry stored = entry("sgemm.cu"), packed = entry("work/labs/04_sgemm/sgemm.cu");
    packed.packed = true;
    packed.mode = S_IFREG | 0644;
    struct zip_entry windows[] = {entry("labs\\04_sgemm\\sgemm.cu"), entry("old/sgemm.cu")};
    expect_zip(&stored, 1, NULL);
    expect_zip(&packed, 1, NULL);
    expect_zip(windows, 2, NULL);
}

C_TEST(zip, paths_that_leave_are_refused) {
    static const char *const names[] = {"/sgemm.cu", "../sgemm.cu", "a/../../sgemm.cu",
                                        "C:/sgemm.cu", "a/.."};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct zip_entry leaving = entry(names[i]);
        expect_zip(&leaving, 1, "leaves its folder");
    }
}

C_TEST(zip, what_is_no_file_is_refused) {
    struct zip_entry link = entry("sgemm.cu"), secret = link, device = link;
    link.mode = S_IFLNK | 0777;
    secret.flags = 1;
    device.mode = S_IFCHR | 0666;
    expect_zip(&link, 1, "sgemm.cu is a link");
    expect_zip(&secret, 1, "sgemm.cu is encrypted");
    expect_zip(&device, 1, "sgemm.cu is no plain file");
}

C_TEST(zip, bombs_are_refused_whatever_they_say) {
    char *zeros = calloc(1, 64 << 20);
    ASSERT_TRUE(zeros != NULL);
    struct zip_entry honest = {
        .name = "sgemm.cu", .content = zeros, .size = 64 << 20, .packed = true};
    struct zip_entry liar = honest;
    liar.told = 100;
    expect_zip(&honest, 1, "sgemm.cu has 67108864 bytes, at most 1048576 count");
    expect_zip(&liar, 1, "the zip file is damaged"); /* minizip unpacks what was told */
    free(zeros);
}

C_TEST(zip, without_a_file_what_is_there_is_named) {
    struct zip_entry inner = entry("homework.zip"), upper = entry("a/SGEMM.CU"),
                     twice[] = {entry("sgemm.cu"), entry("sgemm.cu")},
                     escape[] = {entry("a\x1b[31m/x.zip"), entry("b\nsgemm.cu")};
    expect_zip(&inner, 1, "sgemm.cu is wanted; homework.zip is not unpacked");
    expect_zip(&upper, 1, "sgemm.cu is wanted; a/SGEMM.CU differs in case");
    expect_zip(twice, 2, "two files may be meant: sgemm.cu and sgemm.cu");
    expect_zip(escape, 2, "no file of a lab is in it");
    expect_zip(NULL, 0, "the zip file cannot be read, or is none");
}

#endif

C_TEST(zip, what_is_none_is_refused) {
    struct place p;
    open_place(&p);
    put(&p, "anna.zip", "", 0);
    expect(&p, "the zip file cannot be read, or is none");
    close_place(&p);
}

C_TEST(file, alone_counts_by_its_name_or_ending) {
    static const struct {
        const char *name, *line;
    } cases[] = {
        {"anna_sgemm.cu", NULL},
        {"anna.cu", NULL},
        {"anna.tar.gz", "sgemm.cu is wanted; anna.tar.gz is not unpacked"},
        {"anna.txt", "no file of a lab is in it: sgemm.cu is wanted"},
        {"an\nna.cu", "its name has control characters: rename it"},
        {"an\x1b]0;x\x07na.cu", "its name has control characters: rename it"},
        {"an\xffna.cu", "its name is not UTF-8: rename it"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct place p;
        open_place(&p);
        put(&p, cases[i].name, source, sizeof source - 1);
        expect(&p, cases[i].line);
        close_place(&p);
    }
}

C_TEST(file, that_is_no_file_is_refused) {
    struct place p;
    char path[2 * PATH_SIZE];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    open_place(&p);
    snprintf(path, sizeof path, "%s/anna.cu", p.folder);
    ASSERT_TRUE(mkfifo(path, 0666) == 0);
    expect(&p, "it is a link or a device");
    unlink(path);
    /* By its folder, as a socket's path is short. */
    ASSERT_TRUE(chdir(p.folder) == 0);
    snprintf(address.sun_path, sizeof address.sun_path, "anna.cu");
    int file = socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_TRUE(bind(file, (struct sockaddr *)&address, sizeof address) == 0);
    expect(&p, "it is a link or a device");
    close(file);
    unlink(path);
    ASSERT_TRUE(symlink("/etc", path) == 0);
    expect(&p, "it is a link or a device");
    ASSERT_TRUE(chdir("/") == 0);
    close_place(&p);
}

C_TEST(folder, names_in_capitals_and_archives_are_named) {
    struct place p;
    open_place(&p);
    make_folder(p.folder, "anna");
    put(&p, "anna/Sgemm.cu", source, sizeof source - 1);
    expect(&p, "sgemm.cu is wanted; Sgemm.cu differs in case");
    put(&p, "anna/sgemm.cu", source, sizeof source - 1);
    expect(&p, NULL);
    make_folder(p.folder, "anna/old");
    put(&p, "anna/old/sgemm.cu", source, sizeof source - 1);
    expect(&p, "two files may be meant");
    close_place(&p);
}

C_TEST(folder, that_vanishes_is_refused) {
    struct place p;
    struct submissions all;
    struct task task = {.id = 1};
    char path[2 * PATH_SIZE];
    open_place(&p);
    make_folder(p.folder, "anna");
    ASSERT_OK(submissions_list(&all, p.folder, chosen, NULL));
    snprintf(path, sizeof path, "%s/anna", p.folder);
    ASSERT_TRUE(rmdir(path) == 0);
    ASSERT_OK(intake_take(&task, &all.all[0], p.folder, p.output, chosen, NULL));
    EXPECT_STR_CONTAINS("cannot read: No such file or directory", task.refused);
    submissions_free(&all);
    close_place(&p);
}

/* .git that leads to another student's repository: a link, and a file as worktrees have. */
C_TEST(git, a_repository_elsewhere_is_refused) {
    struct place p;
    char path[2 * PATH_SIZE];
    open_place(&p);
    make_folder(p.folder, "anna");
    snprintf(path, sizeof path, "%s/anna/.git", p.folder);
    ASSERT_TRUE(symlink(p.output, path) == 0);
    expect(&p, ".git is no folder, but leads to one elsewhere");
    unlink(path);
    put(&p, "anna/.git", "gitdir: ../bert/.git\n", 21);
    expect(&p, ".git is no folder, but leads to one elsewhere");
    close_place(&p);
}

C_TEST(submissions, one_student_is_known_by_the_composed_name_without_case) {
    static const char *const pairs[][2] = {
        {"zo\xc3\xab.cu", "zoe\xcc\x88"}, {"ANNA", "anna.zip"}, {"anna_sgemm.cu", "Anna.git"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct place p;
        struct submissions all;
        open_place(&p);
        put(&p, pairs[i][0], "", 0);
        put(&p, pairs[i][1], "", 0);
        ASSERT_OK(submissions_list(&all, p.folder, chosen, NULL));
        ASSERT_TRUE(all.count == 2);
        EXPECT_STR_CONTAINS("two submissions of one student", all.all[0].refused);
        EXPECT_STR_CONTAINS("two submissions of one student", all.all[1].refused);
        submissions_free(&all);
        close_place(&p);
    }
}
