#include "common/simt/runtime/program/program.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/base/file.h"
#include "common/simt/fatbin/elf.h"
#include "common/simt/fatbin/fatbin.h"

enum { NEWEST_ARCHITECTURE = 999, FATBIN_HEADER = 16, FATBIN_ALIGNMENT = 8 };
static const uint32_t FATBIN_MAGIC = 0xba55ed50;

/** What is looked for in a program. */
struct findings {
    bool dynamic_runtime; /**< needs libcudart.so.13 */
    char other[64];       /**< needs a libcudart of another version: its name */
    const unsigned char *kernels;
    size_t kernel_bytes;
};

static void read_needed(const struct elf_file *file, const Elf64_Shdr *dynamic,
                        struct findings *findings) {
    Elf64_Shdr strings;
    const char *entries = elf_section_bytes(file, dynamic);
    if (entries == NULL || !elf_section(file, dynamic->sh_link, &strings)) {
        return;
    }
    for (size_t i = 0; i < dynamic->sh_size / sizeof(Elf64_Dyn); i++) {
        Elf64_Dyn entry;
        memcpy(&entry, entries + i * sizeof entry, sizeof entry);
        const char *name =
            entry.d_tag == DT_NEEDED ? elf_string(file, &strings, entry.d_un.d_val) : NULL;
        if (name == NULL || strncmp(name, "libcudart.so", 12) != 0) {
            continue;
        }
        if (strcmp(name, "libcudart.so.13") == 0) {
            findings->dynamic_runtime = true;
        } else {
            strncpy(findings->other, name, sizeof findings->other - 1);
        }
    }
}

/** Where the fat binaries of a program's files are with -rdc=true; .nv_fatbin has what the device's
 *  linker made of them. */
static const char RELOCATABLE[] = "__nv_relfatbin";

static void read_sections(const struct elf_file *file, struct findings *findings) {
    Elf64_Shdr names, section;
    bool relocatable = false;
    if (!elf_section_names(file, &names)) {
        return;
    }
    for (size_t i = 0; elf_section(file, i, &section); i++) {
        const char *name = elf_string(file, &names, section.sh_name);
        if (section.sh_type == SHT_DYNAMIC) {
            read_needed(file, &section, findings);
        } else if (name != NULL && (strcmp(name, RELOCATABLE) == 0 ||
                                    (strcmp(name, ".nv_fatbin") == 0 && !relocatable))) {
            relocatable = strcmp(name, RELOCATABLE) == 0;
            findings->kernels = elf_section_bytes(file, &section);
            findings->kernel_bytes = findings->kernels != NULL ? section.sh_size : 0;
        }
    }
}

/**
 * @brief Goes through the fat binaries, one a translation unit: one at least must hold PTX.
 *
 * The toolkit's own start-up files add empty ones. A unit without PTX beside
 * others is found when its kernel is launched.
 */
static enum status check_kernels(const struct findings *findings, struct error *error) {
    size_t at = 0;
    enum status status = STATUS_OK;
    while (at + FATBIN_HEADER <= findings->kernel_bytes) {
        const unsigned char *fatbin = findings->kernels + at;
        size_t left = findings->kernel_bytes - at;
        uint32_t magic;
        uint64_t bytes;
        memcpy(&magic, fatbin, sizeof magic);
        memcpy(&bytes, fatbin + 8, sizeof bytes);
        if (magic != FATBIN_MAGIC || bytes == 0) {
            at += FATBIN_ALIGNMENT; /* between two of them, or nothing in it */
            continue;
        }
        struct fatbin_ptx ptx;
        struct fatbin_packed packed;
        status = fatbin_find_ptx(fatbin, left, NEWEST_ARCHITECTURE, &ptx, error);
        if (status == STATUS_UNSUPPORTED && fatbin_can_unpack() &&
            fatbin_find_packed(fatbin, left, NEWEST_ARCHITECTURE, &packed)) {
            status = STATUS_OK;
        }
        if (status == STATUS_OK || bytes > left - FATBIN_HEADER) {
            break;
        }
        at += FATBIN_HEADER + (bytes + FATBIN_ALIGNMENT - 1) / FATBIN_ALIGNMENT * FATBIN_ALIGNMENT;
    }
    return status;
}

static enum status judge(const struct findings *findings, struct error *error) {
    if (!findings->dynamic_runtime && findings->other[0] != '\0') {
        return error_set(error, STATUS_UNSUPPORTED,
                         "it uses %s; the emulator stands in for libcudart.so.13: build it with "
                         "CUDA 13",
                         findings->other);
    }
    if (!findings->dynamic_runtime && findings->kernels != NULL) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "it has the CUDA runtime linked in (no libcudart.so.13 in its dynamic "
                         "section): link it with nvcc -cudart shared");
    }
    return check_kernels(findings, error);
}

enum status program_check(const char *path, struct error *error) {
    struct file_view file = {0};
    enum status status = file_view_open(&file, path, error);
    if (status != STATUS_OK) {
        return status;
    }
    struct findings findings = {0};
    const struct elf_file elf = {.data = file.data, .size = file.size};
    if (elf_is_file(&elf)) {
        read_sections(&elf, &findings);
        status = judge(&findings, error);
        if (status != STATUS_OK) {
            status = error_prefix(error, status, path);
        }
    }
    file_view_close(&file);
    return status;
}
