#include "common/simt/doctor/doctor.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

#include "common/simt/doctor/doctor_internal.h"
#include "common/simt/runtime/unsupported/host_library_list.h"
#include "common/simt/runtime/unsupported/unsupported_list.h"

/* Names come from the program: a control character in one would end the line or command the
   terminal. */
static void print_line(struct doctor *doctor, const char *word, const char *format, va_list args) {
    char text[2000];
    vsnprintf(text, sizeof text, format, args);
    for (char *c = text; *c != '\0'; c++) {
        if (iscntrl((unsigned char)*c)) {
            *c = '?';
        }
    }
    fprintf(doctor->stream, "  %-8s %s\n", word, text);
}

void doctor_ok(struct doctor *doctor, const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_line(doctor, "ok", format, args);
    va_end(args);
}

void doctor_note(struct doctor *doctor, const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_line(doctor, "note", format, args);
    va_end(args);
}

void doctor_refuse(struct doctor *doctor, const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_line(doctor, "refused", format, args);
    va_end(args);
    doctor->refused++;
}

/* ---- The CUDA runtime ---- */

static void look_at_runtime(struct doctor *doctor, const struct program_contents *contents) {
    if (contents->dynamic_runtime) {
        doctor_ok(doctor, "CUDA runtime: shared, libcudart.so.13 of CUDA 13");
    } else if (contents->other[0] != '\0') {
        doctor_refuse(doctor,
                      "CUDA runtime: shared, %s; simt stands in for libcudart.so.13: build the "
                      "program with CUDA 13",
                      contents->other);
    } else if (contents->kernels != NULL) {
        doctor_refuse(doctor, "CUDA runtime: linked statically, which is nvcc's default: link the "
                              "program again with nvcc -cudart shared");
    } else {
        doctor_note(doctor, "CUDA runtime: not linked, and no kernels; the program's libraries may "
                            "have both");
    }
    if (!contents->dynamic) {
        doctor_refuse(doctor, "the whole program is linked statically, so that no library can "
                              "take the place of another: link it without -static");
    }
}

/* ---- Libraries ---- */

static const struct {
    const char *file, *name;
} host_libraries[] = {
#define HOST_LIBRARY(file, name) {file, name},
    HOST_LIBRARY_LIST(HOST_LIBRARY)
#undef HOST_LIBRARY
};

static void look_at_library(void *context, const char *library) {
    struct doctor *doctor = context;
    for (size_t n = 0; n < sizeof host_libraries / sizeof *host_libraries; n++) {
        if (strncmp(library, host_libraries[n].file, strlen(host_libraries[n].file)) == 0) {
            doctor_refuse(doctor,
                          "%s: %s holds machine code and needs the driver of a real GPU: its "
                          "calls fail",
                          library, host_libraries[n].name);
            return;
        }
    }
    if (strncmp(library, "libnvidia-ml.so", 15) == 0) {
        doctor_refuse(doctor, "%s: simt has the CUDA runtime and not the driver", library);
    }
}

/* ---- Functions of the runtime ---- */

/** Is called by code that nvcc puts into programs which never use it. */
static bool is_harmless(const char *function) {
    return strncmp(function, "__cuda", 6) == 0;
}

/** A function of the driver, cuInit() and the like, that simt's libcuda.so.1 lacks. */
static bool is_missing_driver_function(const char *function) {
    static const char *const HAS[] = {"cuInit", "cuDriverGetVersion", "cuTensorMapEncodeTiled",
                                      "cuGetErrorName", "cuGetErrorString"};
    for (size_t n = 0; n < sizeof HAS / sizeof *HAS; n++) {
        if (strcmp(function, HAS[n]) == 0) {
            return false;
        }
    }
    return strncmp(function, "cu", 2) == 0 && function[2] >= 'A' && function[2] <= 'Z';
}

static void look_at_import(void *context, const char *function) {
    static const char *const UNSUPPORTED[] = {
#define NAME(name) #name,
        UNSUPPORTED_LIST(NAME)
#undef NAME
    };
    struct doctor *doctor = context;
    if (is_missing_driver_function(function)) {
        doctor_refuse(doctor, "%s(): simt has the CUDA runtime and not the driver", function);
    }
    for (size_t n = 0; n < sizeof UNSUPPORTED / sizeof *UNSUPPORTED; n++) {
        if (strcmp(function, UNSUPPORTED[n]) == 0 && !is_harmless(function)) {
            doctor_refuse(doctor, "%s(): returns cudaErrorNotSupported", function);
        }
    }
}

enum status doctor_examine(struct doctor *doctor, const struct elf_file *file,
                           struct error *error) {
    struct program_contents contents;
    bool foreign = false;
    TRY(doctor_look_at_file(doctor, file, &foreign, error));
    if (foreign) {
        return STATUS_OK;
    }
    program_contents_read(file, &contents);
    look_at_runtime(doctor, &contents);
    program_each_needed(file, look_at_library, doctor);
    program_each_import(file, look_at_import, doctor);
    return doctor_look_at_kernels(doctor, &contents, error);
}
