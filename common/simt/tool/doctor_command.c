/* simt doctor PROGRAM: what a program needs, and what of it would be refused. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "common/simt/doctor/doctor.h"
#include "common/simt/tool/commands.h"

static const char EPILOGUE[] =
    "Reads the file and runs nothing of it. Lines begin with ok, note or refused. Exit status:\n"
    "0 it will run, 1 something would be refused, 2 the file is no program or cannot be read.\n";

/** A program with another owner's rights does not get LD_PRELOAD. */
static void look_at_mode(struct doctor *doctor, const char *path) {
    struct stat facts;
    if (stat(path, &facts) == 0 && (facts.st_mode & (S_ISUID | S_ISGID)) != 0) {
        doctor_refuse(doctor, "the file has the set-user-ID or set-group-ID bit, so that the "
                              "loader ignores LD_PRELOAD: remove it with chmod ug-s");
    }
}

static void look_at_machine(struct doctor *doctor) {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
        !__builtin_cpu_supports("bmi2")) {
        doctor_refuse(doctor, "this machine's CPU: simt needs AVX2, FMA and BMI2 (x86-64-v3)");
    }
}

/** Examines the file; its lines are printed when all is known. */
static enum status examine(struct doctor *doctor, const char *path, struct error *error) {
    struct file_view file = {0};
    TRY(file_view_open(&file, path, error));
    const struct elf_file elf = {.data = file.data, .size = file.size};
    look_at_machine(doctor);
    look_at_mode(doctor, path);
    enum status status = doctor_examine(doctor, &elf, error);
    file_view_close(&file);
    return status != STATUS_OK ? error_prefix(error, status, path) : STATUS_OK;
}

static enum status run(const char *path, const struct simt_gpu *gpu, size_t *refused,
                       struct error *error) {
    char *text = NULL;
    size_t size = 0;
    struct doctor doctor = {.stream = open_memstream(&text, &size), .gpu = gpu};
    if (doctor.stream == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    enum status status = examine(&doctor, path, error);
    fclose(doctor.stream);
    if (status == STATUS_OK) {
        printf("%s, for an emulated %s:\n%s", path, gpu->name, text != NULL ? text : "");
        printf(doctor.refused == 0 ? "it runs\n" : "would be refused: %zu\n", doctor.refused);
    }
    free(text);
    *refused = doctor.refused;
    return status;
}

static enum status find_gpu(const char *key, const struct simt_gpu **gpu, struct error *error) {
    char keys[128];
    *gpu = simt_gpu_find(key);
    return *gpu != NULL ? STATUS_OK
                        : error_set(error, STATUS_INVALID_ARGUMENT, "--gpu is one of %s, not '%s'",
                                    simt_gpu_keys(keys, sizeof keys), key);
}

int doctor_command(const char *program, int argc, char **argv) {
    const char *key = "h200";
    const struct flag table[] = {
        {"gpu", 'g', FLAG_STRING, &key, "NAME", "the GPU that the program would run on"}};
    const struct flags flags = {.program = program,
                                .positional = "PROGRAM",
                                .summary =
                                    "Says what a CUDA program needs and what would be refused.",
                                .table = table,
                                .count = sizeof table / sizeof *table,
                                .epilogue = EPILOGUE};
    struct arguments arguments;
    struct error error = {0};
    const struct simt_gpu *gpu;
    size_t refused = 0;
    enum status status = flags_read(&flags, argc, argv, &arguments, &error);
    const char *path = arguments.count == 1 ? arguments.values[0] : NULL;
    free(arguments.values);
    if (status == STATUS_OK && arguments.help) {
        return 0;
    }
    if (status == STATUS_OK && path == NULL) {
        status = error_set(&error, STATUS_INVALID_ARGUMENT, "it takes one program; --help helps");
    }
    status = status == STATUS_OK ? find_gpu(key, &gpu, &error) : status;
    status = status == STATUS_OK ? run(path, gpu, &refused, &error) : status;
    if (status != STATUS_OK) {
        (void)report_failure(program, &error, status);
        return SIMT_EXIT_BAD_INPUT;
    }
    return refused > 0 ? SIMT_EXIT_REFUSED : 0;
}
