/* Files that are no programs, and programs cut short or damaged at random. */
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/simt/runtime/program/program.h"
#include "common/testing/testing.h"

C_TEST(program, takes_what_is_no_cuda_program) {
    char path[512];
    struct error error = {0};
    EXPECT_OK(program_check("/proc/self/exe", &error));
    test_temporary_path("script", path, sizeof path);
    ASSERT_OK(file_write(path, "#!/bin/sh\n", 10, &error));
    EXPECT_OK(program_check(path, &error));
    ASSERT_OK(file_write(path, "", 0, &error));
    EXPECT_OK(program_check(path, &error));
}

C_TEST(program, names_files_that_are_not_there) {
    struct error error = {0};
    EXPECT_STATUS(STATUS_NOT_FOUND, program_check("no_such_file", &error));
    EXPECT_TRUE(strstr(error.message, "no_such_file") != NULL);
}

/** Reads this program, or as much of it as one test wants. */
static unsigned char *own_program(size_t *size) {
    struct file_view view = {0};
    unsigned char *copy = NULL;
    if (file_view_open(&view, "/proc/self/exe", NULL) == STATUS_OK) {
        copy = malloc(view.size);
        if (copy != NULL) {
            memcpy(copy, view.data, view.size);
        }
        *size = view.size;
        file_view_close(&view);
    }
    return copy;
}

C_TEST(program, survives_damage) {
    enum { ROUNDS = 300, HEADER = 64 };
    char path[512];
    size_t size = 0;
    unsigned char *bytes = own_program(&size);
    ASSERT_TRUE(bytes != NULL);
    struct rng rng = rng_create(1);
    test_temporary_path("damaged", path, sizeof path);
    size_t answered = 0;
    for (int round = 0; round < ROUNDS; round++) {
        size_t length = round % 2 == 0 ? rng_below(&rng, size) : size;
        size_t at = 16 + rng_below(&rng, HEADER - 16); /* behind the magic */
        unsigned char before = bytes[at];
        bytes[at] = (unsigned char)rng_u64(&rng);
        if (length > 4096 && round % 10 != 0) {
            length = 4096; /* the sections lie at the end: all of them are gone */
        }
        ASSERT_OK(file_write(path, bytes, length, NULL));
        enum status status = program_check(path, NULL);
        answered += status == STATUS_OK || status == STATUS_UNSUPPORTED ||
                    status == STATUS_BAD_FORMAT || status == STATUS_TRUNCATED;
        bytes[at] = before;
    }
    EXPECT_INT_EQ(ROUNDS, answered);
    free(bytes);
}
