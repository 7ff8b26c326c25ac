/* left_out SOURCE CAPABILITIES CODE STAMP: left_out.h; writes an empty file where nothing is
 * missed. */
#include <stdio.h>

#include "common/base/file.h"
#include "common/bazel/left_out/left_out.h"

int main(int argc, char **argv) {
    struct file_view code = {0};
    struct error error = {0};
    if (argc != 5) {
        fputs("usage: left_out SOURCE CAPABILITIES CODE STAMP\n", stderr);
        return 2;
    }
    enum status status = file_view_open(&code, argv[3], &error);
    if (status == STATUS_OK) {
        status = left_out_check(argv[2], code.data, code.size, &error);
    }
    file_view_close(&code);
    if (status == STATUS_OK) {
        status = file_write(argv[4], "", 0, &error);
    }
    if (status != STATUS_OK) {
        fprintf(stderr, "%s, which simt_code has under \"%s\": %s\n", argv[1], argv[2],
                error_text(&error, status));
    }
    return status == STATUS_OK ? 0 : 1;
}
