#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/core/launch/launch.h"
#include "common/simt/doctor/doctor_internal.h"
#include "common/simt/fatbin/fatbin.h"
#include "common/simt/memory/space/memory.h"
#include "common/simt/ptx/ptx.h"
#include "common/simt/runtime/report/report.h"

enum { MOST_ARCHITECTURES = 24, MOST_FILES = 4096, MOST_LISTED = 20 };

/** Architectures in order, each once: number << 8, and the letter behind it or 0. */
struct architectures {
    unsigned list[MOST_ARCHITECTURES];
    size_t count;
};

/** What is seen on the way through the fat binaries. */
struct visit {
    struct doctor *doctor;
    struct simt_memory *memory; /**< of the GPU, for the variables of modules */
    struct architectures ptx, code;
    size_t units, with_ptx, packed; /**< fat binaries; with PTX; with PTX that is compressed */
    size_t without;                 /**< fat binaries with machine code but no PTX for this GPU */
    size_t kernels, refused;
    bool told_of_version, lines;
    struct ptx_module **files; /**< (MOST_FILES) of a program of -rdc=true */
    size_t file_count;
};

static void add_architecture(struct architectures *set, const struct fatbin_entry *entry) {
    unsigned architecture = entry->architecture << 8 | (unsigned char)entry->suffix;
    size_t at = 0;
    while (at < set->count && set->list[at] < architecture) {
        at++;
    }
    if ((at < set->count && set->list[at] == architecture) || set->count == MOST_ARCHITECTURES) {
        return;
    }
    memmove(set->list + at + 1, set->list + at, (set->count - at) * sizeof *set->list);
    set->list[at] = architecture;
    set->count++;
}

/** Writes "compute_75, compute_90a". */
static const char *name_architectures(const struct architectures *set, const char *prefix,
                                      char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t n = 0; n < set->count && used < size; n++) {
        const char letter[] = {(char)(set->list[n] & UINT8_MAX), '\0'};
        used += (size_t)snprintf(text + used, size - used, "%s%s%u%s", n > 0 ? ", " : "", prefix,
                                 set->list[n] >> 8, letter);
    }
    return text;
}

static void note_entries(struct visit *visit, const struct program_fatbin *fatbin) {
    struct fatbin_entry entry;
    bool ptx = false;
    bool packed = false;
    for (size_t at = 0; fatbin_next_entry(fatbin->data, fatbin->left, &at, &entry);) {
        add_architecture(entry.ptx ? &visit->ptx : &visit->code, &entry);
        ptx = ptx || entry.ptx;
        packed = packed || (entry.ptx && entry.compressed);
    }
    visit->units++;
    visit->with_ptx += ptx;
    visit->packed += packed;
}

/* ---- Kernels ---- */

/** The version of PTX says which CUDA wrote it: 7.x is that of CUDA 11, 8.x of CUDA 12. */
static void tell_version(struct visit *visit, const struct ptx_module *parsed) {
    enum { FIRST_KNOWN = 7, CUDA_OF_FIRST = 11 };
    if (!visit->told_of_version && parsed->version_major >= FIRST_KNOWN) {
        doctor_ok(visit->doctor, "compiled by CUDA %u (PTX %u.%u)",
                  parsed->version_major - FIRST_KNOWN + CUDA_OF_FIRST, parsed->version_major,
                  parsed->version_minor);
        visit->told_of_version = true;
    }
}

/** Refuses with a line of the emulator's, which begins with the name of a symbol. */
static void refuse_symbol(struct visit *visit, const char *line) {
    if (++visit->refused > MOST_LISTED) {
        visit->doctor->refused++;
        return;
    }
    size_t length = strcspn(line, " :");
    char *mangled = strndup(line, length);
    char *name = mangled != NULL ? report_source_name(mangled) : NULL;
    if (name != NULL) {
        doctor_refuse(visit->doctor, "%s%s", name, line + length);
    } else {
        doctor_refuse(visit->doctor, "%s", line);
    }
    free(name);
    free(mangled);
}

static bool has_lines(const struct ptx_function *function) {
    for (size_t n = 0; n < function->instruction_count; n++) {
        if (function->instructions[n].location != NULL) {
            return true;
        }
    }
    return false;
}

/** Decodes all kernels of a module, as their launch would. */
static void look_at_module(struct visit *visit, struct ptx_module *parsed) {
    struct simt_module *module = NULL;
    struct error error = {0};
    enum status status = simt_module_load(&module, parsed, visit->memory, &error);
    if (status != STATUS_OK) {
        refuse_symbol(visit, error_text(&error, status));
        return;
    }
    for (size_t n = 0; n < parsed->function_count; n++) {
        const struct ptx_function *function = &parsed->functions[n];
        struct simt_kernel_info info;
        error = (struct error){0};
        if (!function->entry || function->external) {
            continue;
        }
        visit->kernels++;
        visit->lines = visit->lines || has_lines(function);
        status = simt_kernel_info(module, function->name, &info, &error);
        if (status != STATUS_OK) {
            refuse_symbol(visit, error_text(&error, status));
        }
    }
    simt_module_unload(module);
}

/** Parses PTX. @return NULL when it was refused */
static struct ptx_module *parse(struct visit *visit, const char *text, size_t size) {
    struct ptx_module *parsed = NULL;
    struct error error = {0};
    enum status status = ptx_parse(&parsed, text, size, &error);
    if (status != STATUS_OK) {
        doctor_refuse(visit->doctor, "%s", error_text(&error, status));
        return NULL;
    }
    tell_version(visit, parsed);
    return parsed;
}

/** Finds the PTX that simt would take, and keeps or examines it. */
static enum status look_at_ptx(struct visit *visit, const struct program_fatbin *fatbin,
                               bool relocatable, struct error *error) {
    const struct simt_gpu *gpu = visit->doctor->gpu;
    unsigned highest = (unsigned)(gpu->major * 10 + gpu->minor);
    struct fatbin_ptx ptx = {0};
    struct fatbin_packed packed;
    char *unpacked = NULL;
    struct error why = {0};
    enum status status = fatbin_find_ptx(fatbin->data, fatbin->left, highest, &ptx, &why);
    if (status == STATUS_UNSUPPORTED &&
        fatbin_find_packed(fatbin->data, fatbin->left, highest, &packed)) {
        status = fatbin_unpack(&packed, &unpacked, &ptx.size, &why);
        ptx.text = unpacked;
    }
    if (status == STATUS_UNSUPPORTED) {
        if (fatbin_has_code(fatbin->data, fatbin->left) && visit->without++ == 0 && !relocatable) {
            doctor_refuse(visit->doctor, "%s", error_text(&why, status));
        }
        return STATUS_OK;
    }
    if (status != STATUS_OK) {
        return error_set(error, status, "%s", error_text(&why, status));
    }
    struct ptx_module *parsed = parse(visit, ptx.text, ptx.size);
    free(unpacked);
    if (parsed != NULL && relocatable && visit->file_count < MOST_FILES) {
        visit->files[visit->file_count++] = parsed;
    } else if (parsed != NULL) {
        look_at_module(visit, parsed);
    }
    return STATUS_OK;
}

static void link_files(struct visit *visit) {
    struct ptx_module *linked = NULL;
    struct error error = {0};
    if (visit->file_count == 0) {
        doctor_refuse(visit->doctor,
                      "no file of the program has PTX for this GPU: build all with -gencode "
                      "arch=compute_75,code=compute_75");
        return;
    }
    enum status status = simt_module_link(&linked, visit->files, visit->file_count, &error);
    visit->file_count = 0;
    if (status != STATUS_OK) {
        refuse_symbol(visit, error_text(&error, status));
    } else {
        look_at_module(visit, linked);
    }
}

/* ---- All of them ---- */

static void tell_architectures(struct visit *visit) {
    struct doctor *doctor = visit->doctor;
    char text[512];
    if (visit->code.count > 0) {
        doctor_note(doctor, "machine code for %s, which simt does not run",
                    name_architectures(&visit->code, "sm_", text, sizeof text));
    }
    if (visit->ptx.count == 0) {
        return;
    }
    doctor_ok(doctor, "PTX for %s in %zu fat binar%s",
              name_architectures(&visit->ptx, "compute_", text, sizeof text), visit->with_ptx,
              visit->with_ptx == 1 ? "y" : "ies");
    if (visit->packed == 0) {
        doctor_ok(doctor, "PTX is not compressed");
    } else if (fatbin_can_unpack()) {
        doctor_ok(doctor, "PTX is compressed, and libzstd.so.1 is here");
    } else {
        doctor_note(doctor, "PTX is compressed, and libzstd.so.1 is not here: install it, or build "
                            "with nvcc --compress-mode=none");
    }
}

static void tell_kernels(struct visit *visit) {
    struct doctor *doctor = visit->doctor;
    if (visit->refused > MOST_LISTED) {
        fprintf(doctor->stream, "           and %zu more\n", visit->refused - MOST_LISTED);
    }
    if (visit->without > 1) {
        doctor_note(doctor, "so it is with %zu of %zu fat binaries, one a source file",
                    visit->without, visit->units);
    }
    if (visit->kernels == 0) {
        return;
    }
    doctor_ok(doctor, "%zu kernel%s in PTX", visit->kernels, visit->kernels == 1 ? "" : "s");
    if (visit->lines) {
        doctor_ok(doctor, "messages name source lines (-lineinfo)");
    } else {
        doctor_note(doctor, "messages cannot name source lines: build with nvcc -lineinfo");
    }
}

static enum status create_memory(struct visit *visit, struct error *error) {
    enum { LEAST = 1 << 26 };
    size_t bytes = visit->doctor->gpu->memory_bytes;
    enum status status = simt_memory_create(&visit->memory, bytes);
    while (status != STATUS_OK && bytes > LEAST) {
        bytes /= 2; /* a limit on address space */
        status = simt_memory_create(&visit->memory, bytes);
    }
    visit->files = calloc(MOST_FILES, sizeof *visit->files);
    if (status != STATUS_OK || visit->files == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    return STATUS_OK;
}

static enum status go_through(struct visit *visit, const struct program_contents *contents,
                              struct error *error) {
    struct program_fatbin fatbin;
    for (size_t at = 0; program_next_fatbin(contents, &at, &fatbin);) {
        note_entries(visit, &fatbin);
    }
    tell_architectures(visit);
    TRY(create_memory(visit, error));
    for (size_t at = 0; program_next_fatbin(contents, &at, &fatbin);) {
        TRY(look_at_ptx(visit, &fatbin, contents->relocatable, error));
    }
    if (contents->relocatable) {
        link_files(visit);
    }
    tell_kernels(visit);
    return STATUS_OK;
}

enum status doctor_look_at_kernels(struct doctor *doctor, const struct program_contents *contents,
                                   struct error *error) {
    struct visit visit = {.doctor = doctor};
    enum status status = go_through(&visit, contents, error);
    for (size_t n = 0; n < visit.file_count; n++) {
        ptx_free(visit.files[n]);
    }
    free(visit.files);
    simt_memory_free(visit.memory);
    return status;
}
