#include "grader/class/copy_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status fail(const char *path, struct error *error) {
    return error_set(error, STATUS_IO, "%.400s: %s", path, strerror(errno));
}

static enum status copy_bytes(int in, int out, off_t size, const char *to, struct error *error) {
    while (size > 0) {
        ssize_t moved = sendfile(out, in, NULL, (size_t)size);
        if (moved <= 0) {
            errno = moved == 0 ? EIO : errno;
            return fail(to, error);
        }
        size -= moved;
    }
    return STATUS_OK;
}

enum status copy_file(const char *from, const char *to, struct error *error) {
    struct stat seen;
    int in = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (in < 0 || fstat(in, &seen) != 0) {
        enum status status = fail(from, error);
        if (in >= 0) {
            close(in);
        }
        return status;
    }
    unlink(to);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, seen.st_mode & 0777);
    enum status status = out < 0 ? fail(to, error) : copy_bytes(in, out, seen.st_size, to, error);
    close(in);
    if (out >= 0 && close(out) != 0 && status == STATUS_OK) {
        status = fail(to, error);
    }
    return status;
}
