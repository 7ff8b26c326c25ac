#include "common/simt/runtime/program/program.h"

#include "common/base/file.h"
#include "common/simt/fatbin/elf.h"
#include "common/simt/fatbin/fatbin.h"
#include "common/simt/runtime/program/contents.h"

/**
 * @brief Goes through the fat binaries: one at least must hold PTX.
 *
 * The toolkit's own start-up files add empty ones. A unit without PTX beside
 * others is found when its kernel is launched.
 */
static enum status check_kernels(const struct program_contents *contents, struct error *error) {
    size_t at = 0;
    enum status status = STATUS_OK;
    struct program_fatbin fatbin;
    while (program_next_fatbin(contents, &at, &fatbin)) {
        struct fatbin_ptx ptx;
        struct fatbin_packed packed;
        status = fatbin_find_ptx(fatbin.data, fatbin.left, FATBIN_ANY_GPU, &ptx, error);
        if (status == STATUS_UNSUPPORTED && fatbin_can_unpack() &&
            fatbin_find_packed(fatbin.data, fatbin.left, FATBIN_ANY_GPU, &packed)) {
            status = STATUS_OK;
        }
        if (status == STATUS_OK || !fatbin.whole) {
            break;
        }
    }
    return status;
}

static enum status judge(const struct program_contents *contents, struct error *error) {
    if (!contents->dynamic_runtime && contents->other[0] != '\0') {
        return error_set(error, STATUS_UNSUPPORTED,
                         "it uses %s; the emulator stands in for libcudart.so.13: build it with "
                         "CUDA 13",
                         contents->other);
    }
    if (!contents->dynamic_runtime && contents->kernels != NULL) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "it has the CUDA runtime linked in (no libcudart.so.13 in its dynamic "
                         "section): link it with nvcc -cudart shared");
    }
    return check_kernels(contents, error);
}

enum status program_check(const char *path, struct error *error) {
    struct file_view file = {0};
    enum status status = file_view_open(&file, path, error);
    if (status != STATUS_OK) {
        return status;
    }
    struct program_contents contents;
    const struct elf_file elf = {.data = file.data, .size = file.size};
    if (elf_is_file(&elf)) {
        program_contents_read(&elf, &contents);
        status = judge(&contents, error);
        if (status != STATUS_OK) {
            status = error_prefix(error, status, path);
        }
    }
    file_view_close(&file);
    return status;
}
