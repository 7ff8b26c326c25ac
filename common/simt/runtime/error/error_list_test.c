/* Every enumerator of the installed driver_types.h has its name here, and no other. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "common/base/file.h"
#include "common/simt/runtime/error/error_list.h"
#include "common/testing/testing.h"

struct entry {
    const char *name, *text;
    int value;
};

#define ENTRY(name, text) {#name, text, name},
static const struct entry LIST[] = {ERROR_LIST(ENTRY)};
enum { LENGTH = sizeof LIST / sizeof *LIST };

static const struct entry *find(const char *name, size_t length) {
    for (size_t i = 0; i < LENGTH; i++) {
        if (strlen(LIST[i].name) == length && strncmp(LIST[i].name, name, length) == 0) {
            return &LIST[i];
        }
    }
    return NULL;
}

/** Checks "NAME = 12" on one line of the enumeration. @return true when it is one */
static bool check_line(const char *line) {
    while (isspace((unsigned char)*line) || *line == ',') {
        line++;
    }
    size_t length = strcspn(line, " =");
    const char *equals = line + length + strspn(line + length, " ");
    if (strncmp(line, "cuda", 4) != 0 || *equals != '=') {
        return false;
    }
    const struct entry *entry = find(line, length);
    if (entry == NULL) {
        TEST_FAIL("%.*s is missing", (int)length, line);
        return true;
    }
    EXPECT_INT_EQ(atoi(equals + 1), entry->value);
    return true;
}

C_TEST(error_list, is_that_of_the_header) {
    const char *header = getenv("DRIVER_TYPES");
    char *text = NULL;
    size_t size = 0;
    ASSERT_TRUE(header != NULL);
    ASSERT_OK(file_read(header, (size_t)1 << 24, &text, &size, NULL));
    char *line = strstr(text, "enum __device_builtin__ cudaError");
    ASSERT_TRUE(line != NULL);
    size_t found = 0;
    for (line = strtok(line, "\n"); line != NULL && strncmp(line, "};", 2) != 0;
         line = strtok(NULL, "\n")) {
        found += check_line(line);
    }
    EXPECT_INT_EQ(LENGTH, found);
    free(text);
}

C_TEST(error_list, has_words_for_each) {
    for (size_t i = 0; i < LENGTH; i++) {
        EXPECT_TRUE(strlen(LIST[i].text) >= 7);
    }
}
