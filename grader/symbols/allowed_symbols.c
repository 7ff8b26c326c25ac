/* Compiled into each parity test: BUILD says which list is the submission's. */
#include "common/testing/testing.h"
#include "grader/harness/program_folder.h"
#include "grader/symbols/symbols.h"

static void refuse(const char *line) {
    TEST_FAIL("%s", line);
}

C_TEST(parity, allowed_symbols) {
    struct error error = {0};
    char path[4096];
    if (program_folder_path(path, sizeof path, GRADER_SYMBOLS, &error) != STATUS_OK ||
        symbols_check(path, GRADER_SYMBOLS_LAB, refuse, &error) != STATUS_OK) {
        TEST_FAIL("cannot see what your code refers to: %s", error.message);
    }
}
