/**
 * @file generate_kernels.c
 * @brief Writes random kernels into files of CUDA C, and a table of them.
 *
 *     bazel run //common/simt/random:generate_kernels -- --count 50 --output DIR
 *
 * A line of DIR/kernels.tsv: file, kernel, seed, approximate results, hash of the text.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "common/simt/random/random_expression.h"
#include "common/simt/random/random_kernel.h"

struct options {
    uint64_t seed, count, per_file;
    const char *output;
};

static enum status write_text(const char *folder, const char *name, struct random_text *text,
                              struct error *error) {
    char path[4096];
    if (text->failed) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "%s: out of memory", name);
    }
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) {
        return error_set(error, STATUS_TOO_LONG, "%s: path is too long", name);
    }
    return file_write(path, text->data, text->size, error);
}

/* Adds one kernel to the file and to the table. */
static enum status add_kernel(uint64_t seed, const char *file, struct random_text *text,
                              struct random_text *table) {
    struct random_kernel kernel;
    TRY(random_kernel_create(seed, &kernel));
    random_text_add(text, kernel.text, kernel.size);
    random_text_print(table, "%s\tk_%" PRIu64 "\t%" PRIu64 "\t%zu\t%016" PRIx64 "\n", file, seed,
                      seed, kernel.approximate_count,
                      random_kernel_text_hash(kernel.text, kernel.size));
    random_kernel_free(&kernel);
    return STATUS_OK;
}

/* Kernels of seeds `first`, `first + 5`, ...: either all or none of them have half values. */
static enum status write_file(const struct options *options, uint64_t first, unsigned number,
                              struct random_text *table, struct error *error) {
    struct random_text text = {0};
    char name[64];
    enum status status = STATUS_OK;
    (void)snprintf(name, sizeof name, "kernels_%02u.cu", number);
    random_text_add(&text, random_prelude, strlen(random_prelude));
    if (first % 5 == 4) {
        random_text_add(&text, random_prelude_half, strlen(random_prelude_half));
    }
    random_text_print(&text, "#define ATOMICS %uu\n\n", (unsigned)RANDOM_ATOMICS_AT);
    const uint64_t end = options->seed + options->count;
    for (uint64_t i = 0; i < options->per_file && first + 5 * i < end && status == STATUS_OK; i++) {
        status = add_kernel(first + 5 * i, name, &text, table);
    }
    if (status == STATUS_OK) {
        status = write_text(options->output, name, &text, error);
    }
    free(text.data);
    return status;
}

static enum status write_all(const struct options *options, struct error *error) {
    struct random_text table = {0};
    unsigned number = 0;
    enum status status = STATUS_OK;
    const uint64_t end = options->seed + options->count;
    for (uint64_t start = options->seed; start < end; start += 5 * options->per_file) {
        for (uint64_t residue = 0; residue < 5 && status == STATUS_OK; residue++) {
            if (start + residue < end) {
                status = write_file(options, start + residue, number++, &table, error);
            }
        }
    }
    if (status == STATUS_OK) {
        status = write_text(options->output, "kernels.tsv", &table, error);
    }
    free(table.data);
    return status;
}

static enum status run(int argc, char **argv, struct error *error) {
    struct options options = {.seed = 0, .count = 1000, .per_file = 25};
    const struct flag table[] = {
        {"seed", 's', FLAG_U64, &options.seed, "N", "seed of the first kernel"},
        {"count", 'n', FLAG_U64, &options.count, "N", "number of kernels"},
        {"per-file", 'p', FLAG_U64, &options.per_file, "N", "kernels in a file"},
        {"output", 'o', FLAG_STRING, &options.output, "DIR", "folder to write to"},
    };
    const struct flags flags = {"generate_kernels",
                                "",
                                "Writes random CUDA kernels.",
                                table,
                                sizeof table / sizeof table[0],
                                NULL};
    struct arguments arguments;
    enum status status = flags_read(&flags, argc, argv, &arguments, error);
    free(arguments.values);
    if (status != STATUS_OK || arguments.help) {
        return status;
    }
    if (options.output == NULL || options.per_file == 0 || options.per_file > 10000 ||
        options.count == 0 || options.count > 1000000 || options.seed > UINT64_MAX / 32) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "give --output, 1 to 1000000 kernels and 1 to 10000 in a file");
    }
    file_enter_working_directory();
    (void)mkdir(options.output, 0777);
    return write_all(&options, error);
}

int main(int argc, char **argv) {
    struct error error = {0};
    enum status status = run(argc, argv, &error);
    return status == STATUS_OK ? 0 : report_failure("generate_kernels", &error, status);
}
