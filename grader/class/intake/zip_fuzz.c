/* Fuzzes the intake of a zip file: what is taken of it is as long as it may be, has a lab's name,
   and a path that stays inside. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/testing/fuzz.h"
#include "grader/class/intake/intake.h"
#include "grader/class/intake/zip_testing.h"

/* A file in memory with these bytes. @param path receives its name */
static int open_file(const uint8_t *data, size_t size, char path[40]) {
    int file = memfd_create("fuzz.zip", MFD_CLOEXEC);
    fuzz_require(file >= 0);
    for (size_t done = 0; done < size;) {
        ssize_t wrote = write(file, data + done, size - done);
        fuzz_require(wrote > 0);
        done += (size_t)wrote;
    }
    snprintf(path, 40, "/proc/self/fd/%d", file);
    return file;
}

static void check_path(const char *path, const char *file) {
    size_t length = strlen(path), tail = strlen(file);
    fuzz_require(length < sizeof((struct found *)0)->labs[0].path && path[0] != '/');
    fuzz_require(strncmp(path, "../", 3) != 0 && strstr(path, "/../") == NULL);
    fuzz_require(length >= sizeof((struct found *)0)->labs[0].path - 1 ||
                 (length >= tail && strcmp(path + length - tail, file) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const bool chosen[LAB_COUNT] = {[0] = true, [1] = true, [3] = true};
    struct found found = {.chosen = chosen};
    struct error error = {0};
    char path[40];
    int file = open_file(data, size, path);
    (void)fuzz_accepted(intake_zip(&found, path, &error), &error);
    for (size_t i = 0; i < LAB_COUNT; i++) {
        if (found.labs[i].text != NULL) {
            fuzz_require(chosen[i] && found.labs[i].size <= MOST_SOURCE);
            check_path(found.labs[i].path, lab_at(i)->file);
        }
    }
    found_free(&found);
    close(file);
    return 0;
}

/* Each is a whole zip file: what is handed in, and what is refused. */
bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    static const char text[] = "int main(void) { return 0; }\n";
    static const char zeros[3000] = "";
    const struct zip_entry plain[] = {
        {.name = "anna/", .content = "", .mode = S_IFDIR | 0755},
        {.name = "anna/sgemm.cu", .content = text, .size = sizeof text, .packed = true},
        {.name = "anna/read me", .content = text, .size = sizeof text, .mode = S_IFREG | 0644},
    };
    const struct zip_entry placed[] = {
        {.name = "w\\labs\\04_sgemm\\sgemm.cu", .content = text, .size = sizeof text},
        {.name = "w/solutions/04_sgemm/sgemm.cu", .content = text, .size = sizeof text},
        {.name = "matmul.c", .content = zeros, .size = sizeof zeros, .packed = true},
    };
    const struct zip_entry bomb = {
        .name = "sgemm.cu", .content = zeros, .size = sizeof zeros, .packed = true, .told = 9};
    const struct zip_entry link = {
        .name = "sgemm.cu", .content = "/etc/passwd", .size = 11, .mode = S_IFLNK | 0777};
    const struct zip_entry leaves = {.name = "../sgemm.cu", .content = text, .size = sizeof text};
    const struct zip_entry secret = {
        .name = "sgemm.cu", .content = text, .size = sizeof text, .flags = 1};
    const struct {
        const struct zip_entry *entries;
        size_t count;
    } seeds[] = {{plain, 3},   {placed, 3},  {&bomb, 1}, {&link, 1},
                 {&leaves, 1}, {&secret, 1}, {plain, 0}};
    if (index >= sizeof seeds / sizeof *seeds) {
        return false;
    }
    zip_make(seeds[index].entries, seeds[index].count, seed, size);
    return true;
}
