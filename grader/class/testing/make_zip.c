/* make_zip OUT NAME FILE [NAME FILE]...: a zip file for tests, as zip_testing.h makes them. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/file.h"
#include "common/base/terminal.h"
#include "grader/class/intake/zip_testing.h"

enum { MOST = 16, MOST_FILE = 512 << 20 };

static enum status write_zip(const char *out, char **words, size_t count, struct error *error) {
    struct zip_entry entries[MOST] = {{0}};
    unsigned char *data;
    size_t size;
    for (size_t i = 0; i < count; i++) {
        char *text;
        TRY(file_read(words[2 * i + 1], MOST_FILE, &text, &entries[i].size, error));
        entries[i].name = words[2 * i];
        entries[i].content = text;
        entries[i].packed = true;
    }
    zip_make(entries, count, &data, &size);
    enum status status = file_write(out, data, size, error);
    free(data);
    return status; /* the files' texts end with the program */
}

int main(int argc, char **argv) {
    struct error error = {0};
    if (argc < 2 || argc % 2 != 0 || argc > 2 + 2 * MOST) {
        fprintf(stderr, "usage: make_zip OUT [NAME FILE]...\n");
        return 2;
    }
    enum status status = write_zip(argv[1], argv + 2, (size_t)(argc - 2) / 2, &error);
    return status == STATUS_OK ? 0 : report_failure("make_zip", &error, status);
}
